package otelx

import (
	"errors"
	"reflect"

	"github.com/fairlead/fairlead/pipeline"
)

// Source has pipelines that come and go. A *registry.Registry is one. It is asked by WatchAll and at each collection of the gauges,
// never by two goroutines at once; it must not block, nor use the Telemetry. What is nil in the list is left out.
type Source interface {
	Pipelines() []*pipeline.Pipeline
}

// WatchAll watches every pipeline of s until Close: those that it has now and, from the next collection on, those that come.
// To count them from the start, call it again when they have come, in registry.WithOnReload: it only adds what is new. A
// pipeline that s has no more is watched no longer. s must be comparable, as a pointer is. An error says that s is not, that
// it is nil, or ErrClosed.
func (t *Telemetry) WatchAll(s Source) error {
	switch v := reflect.ValueOf(s); {
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil():
		return errors.New("otelx: WatchAll: s is nil: want a source of pipelines, such as a *registry.Registry")
	case !v.Comparable():
		return errors.New("otelx: WatchAll: s is a " + v.Type().String() + ": want what can be compared, such as a pointer")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	t.refresh(s)
	return nil
}

// refresh is called with mu held. Where s panics, things are as they were.
func (t *Telemetry) refresh(s Source) {
	has := map[*pipeline.Pipeline]bool{}
	for _, p := range s.Pipelines() {
		if p != nil {
			has[p] = true
		}
	}
	had := t.sources[s]
	for p := range has {
		if !had[p] {
			t.hold(p)
		}
	}
	for p := range had {
		if !has[p] {
			t.release(p)
		}
	}
	t.sources[s] = has
}
