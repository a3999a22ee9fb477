package pipeline

import (
	"fmt"
	"iter"
	"strings"

	"github.com/fairlead/fairlead/leaf"
)

// Description is a pipeline's nesting.
type Description struct {
	Name   string
	Layers []Layer // outermost first
}

// Layer is one layer of a [Description].
type Layer struct {
	Kind string // timeout, breaker, retry, cooldown, ratelimit, guard, bulkhead, attempt-timeout
	Name string // the instance's, as far as it is known
}

// Describe is the nesting as data.
func (p *Pipeline) Describe() Description { return p.current().describe() }

func (pl *plan) describe() Description {
	d := Description{Name: pl.name}
	for l := range pl.layers {
		d.Layers = append(d.Layers, l)
	}
	return d
}

// Layers is the nesting, outermost first, each layer with what stands behind it, for consoles and metrics: a
// *timeout.Timeout, a *retry.Retry, or the leaf.Guard that the Builder was given (ask it for leaf.Inspector).
func (p *Pipeline) Layers() iter.Seq2[Layer, any] {
	return p.current().layers
}

func (pl *plan) layers(yield func(Layer, any) bool) {
	if pl.total != nil && !yield(Layer{kindTimeout.String(), pl.total.Config().Name}, pl.total) {
		return
	}
	if pl.outside != nil && !yield(pl.outside.described()) {
		return
	}
	if pl.retry != nil && !yield(Layer{kindRetry.String(), pl.retry.Config().Name}, pl.retry) {
		return
	}
	for i := range pl.guards {
		if !yield(pl.guards[i].described()) {
			return
		}
	}
	if pl.attempt != nil {
		yield(Layer{kindAttemptTimeout.String(), pl.attempt.Config().Name}, pl.attempt)
	}
}

func (l *layer) described() (Layer, any) {
	return Layer{Kind: l.kind.String(), Name: nameOf(l.guard)}, l.guard
}

// nameOf is what an Inspector calls itself; one that panics has no name, and hides no other layer.
func nameOf(g leaf.Guard) (name string) {
	i, ok := g.(leaf.Inspector)
	if !ok {
		return ""
	}
	defer func() { _ = recover() }()
	return i.Inspect().Name
}

// String prints the nesting, outermost first.
func (p *Pipeline) String() string {
	pl := p.current()
	d := pl.describe()
	var s strings.Builder
	fmt.Fprintf(&s, "%s: ", d.Name)
	for _, l := range d.Layers {
		s.WriteString(l.Kind)
		if l.Name != "" {
			fmt.Fprintf(&s, " %q", l.Name)
		}
		switch l.Kind {
		case kindTimeout.String():
			fmt.Fprintf(&s, " %v", pl.total.Config().Limit)
		case kindAttemptTimeout.String():
			fmt.Fprintf(&s, " %v", pl.attempt.Config().Limit)
		}
		s.WriteString(" > ")
	}
	s.WriteString("fn")
	return s.String()
}
