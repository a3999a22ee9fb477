// Package check collects what is wrong with a configuration, so that New and Build name every bad field at once.
package check

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// List is the problems of one configuration. The zero List has none and is ready to use.
type List struct {
	Name string // of what is configured, so that one of many is found; "" = it has none
	errs []error
}

// Bad adds "pkg: field is value: want …", or `pkg "name": …`: the field by its Go name, the value as it was given, and what
// would be right.
func (l *List) Bad(pkg, field string, value any, want string) {
	l.errs = append(l.errs, fmt.Errorf("%s: %s is %v: want %s", Called(pkg, l.Name), field, value, want))
}

// Called is how a message names an instance: `pkg "name"`, or pkg alone where it has no name.
func Called(pkg, name string) string {
	if name == "" {
		return pkg
	}
	return pkg + " " + strconv.Quote(name)
}

// Type says what v is, in a message: its type, "a nil" one, or "nil" where there is none.
func Type(v any) string {
	switch {
	case v == nil:
		return "nil"
	case Nil(v):
		return fmt.Sprintf("a nil %T", v)
	}
	return fmt.Sprintf("a %T", v)
}

// Add adds a problem that has its text already; nil adds nothing.
func (l *List) Add(err error) {
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// Err joins what was found; nil if nothing was.
func (l *List) Err() error { return errors.Join(l.errs...) }

// Finite says that f is a number: neither NaN nor infinite.
func Finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Nil says that v is nil or an interface around a nil pointer, map, func, channel or slice.
func Nil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Slice, reflect.UnsafePointer:
		return r.IsNil()
	}
	return false
}
