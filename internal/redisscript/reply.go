package redisscript

import (
	"fmt"
	"strconv"
)

// Reply is what a script returned: nothing, an integer, a string, or a list of replies.
type Reply struct{ v any }

// Nil says that the script returned nothing (nil or false).
func (r Reply) Nil() bool { return r.v == nil }

// Int is an integer, or a string of digits as the prelude's int makes.
func (r Reply) Int() (int64, error) {
	switch v := r.v.(type) {
	case int64:
		return v, nil
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("the script returned %#v: want an integer", r.v)
}

// Ints is a list of exactly n integers.
func (r Reply) Ints(n int) ([]int64, error) {
	list, ok := r.v.([]any)
	if !ok || len(list) != n {
		return nil, fmt.Errorf("the script returned %#v: want %d integers", r.v, n)
	}
	ints := make([]int64, n)
	for i, v := range list {
		var err error
		if ints[i], err = (Reply{v}).Int(); err != nil {
			return nil, err
		}
	}
	return ints, nil
}

// Text is a string, or an integer's digits; "" for everything else.
func (r Reply) Text() string {
	switch v := r.v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// Len is the length of a list; 0 for everything else.
func (r Reply) Len() int {
	list, _ := r.v.([]any)
	return len(list)
}

// At is an element of a list; nothing where there is none.
func (r Reply) At(i int) Reply {
	list, _ := r.v.([]any)
	if i < 0 || i >= len(list) {
		return Reply{}
	}
	return Reply{list[i]}
}
