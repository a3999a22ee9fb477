package pipeline

import (
	"fmt"
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
	add := func(k kind, name string) { d.Layers = append(d.Layers, Layer{Kind: k.String(), Name: name}) }
	if pl.total != nil {
		add(kindTimeout, pl.total.Config().Name)
	}
	if pl.outside != nil {
		add(kindBreaker, nameOf(pl.outside.guard))
	}
	if pl.retry != nil {
		add(kindRetry, pl.retry.Config().Name)
	}
	for _, l := range pl.guards {
		add(l.kind, nameOf(l.guard))
	}
	if pl.attempt != nil {
		add(kindAttemptTimeout, pl.attempt.Config().Name)
	}
	return d
}

func nameOf(g leaf.Guard) string {
	if i, ok := g.(leaf.Inspector); ok {
		return i.Inspect().Name
	}
	return ""
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
