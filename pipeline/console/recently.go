package console

import "container/list"

// recently is what is known of the last journalNames names. The zero value is empty.
type recently[T any] struct {
	byName map[string]*list.Element
	order  list.List // of named[T], what was heard of last in front
}

type named[T any] struct {
	name  string
	value T
}

// at is what is known of name, the zero T at first: it was heard of just now. It is valid until the next at.
func (r *recently[T]) at(name string) *T {
	if e := r.byName[name]; e != nil {
		r.order.MoveToFront(e)
		return &e.Value.(*named[T]).value
	}
	if r.byName == nil {
		r.byName = map[string]*list.Element{}
	}
	if r.order.Len() == journalNames {
		delete(r.byName, r.order.Remove(r.order.Back()).(*named[T]).name)
	}
	n := &named[T]{name: name}
	r.byName[name] = r.order.PushFront(n)
	return &n.value
}

// known is nil where nothing is.
func (r *recently[T]) known(name string) *T {
	if e := r.byName[name]; e != nil {
		return &e.Value.(*named[T]).value
	}
	return nil
}

// oldest would make room for a new name; nil where there is room.
func (r *recently[T]) oldest() *T {
	if r.order.Len() < journalNames {
		return nil
	}
	return &r.order.Back().Value.(*named[T]).value
}
