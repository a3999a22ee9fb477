package otelx

import (
	"context"
	"slices"

	"github.com/fairlead/fairlead/pipeline"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// collect fills the gauges when a reader asks. The guards are looked at without mu: they may be anybody's.
func (t *Telemetry) collect(_ context.Context, o metric.Observer) error {
	c := tally{instruments: &t.instruments, sums: map[place]int64{}, met: map[sight]bool{}}
	for _, p := range t.pipelines() {
		c.pipeline(p)
	}
	for at, sum := range c.sums {
		attrs := slices.DeleteFunc(at.attrs[:], func(a attribute.KeyValue) bool { return !a.Valid() })
		o.ObserveInt64(*at.gauge, sum, metric.WithAttributeSet(attribute.NewSet(attrs...)))
	}
	return nil
}

// pipelines is what is watched now. Sources are asked for what has come and gone.
func (t *Telemetry) pipelines() []*pipeline.Pipeline {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.sources {
		func() {
			defer func() { _ = recover() }() // as of a guard
			t.refresh(s)
		}()
	}
	all := make([]*pipeline.Pipeline, 0, len(t.watched))
	for p := range t.watched {
		all = append(all, p)
	}
	return all
}
