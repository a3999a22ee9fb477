// Package check collects what is wrong with a configuration, so that New and Build name every bad field at once.
package check

import (
	"errors"
	"fmt"
	"math"
	"reflect"
)

// List is the problems of one configuration. The zero List has none and is ready to use.
type List struct{ errs []error }

// Bad adds "pkg: field value: want …": the field by its Go name, the value as it was given, and what would be right.
func (l *List) Bad(pkg, field string, value any, want string) {
	l.errs = append(l.errs, fmt.Errorf("%s: %s is %v: want %s", pkg, field, value, want))
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
