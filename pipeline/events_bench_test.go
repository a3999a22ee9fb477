package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// What it costs that somebody listens: each pipeline with nobody, with an observer, and with an observer and a subscriber. A call
// that succeeds at once tells three events.
func BenchmarkEvents(b *testing.B) {
	told := 0
	observe := func(context.Context, pipeline.Event) { told++ }
	attempt := timeout.MustNew(timeout.Config{Limit: time.Minute})
	for _, c := range []struct {
		name string
		b    pipeline.Builder
	}{
		{"empty", pipeline.For("empty")},
		{"full", full(breaker.Window{})},
		{"full attempt timeout", full(breaker.Window{}).AttemptTimeout(attempt)},
	} {
		subscribed := c.b.Observe(observe).MustBuild()
		defer subscribed.Subscribe(observe)()
		for _, p := range []struct {
			name string
			*pipeline.Pipeline
		}{{"nobody", c.b.MustBuild()}, {"observer", c.b.Observe(observe).MustBuild()}, {"observer and subscriber", subscribed}} {
			b.Run(c.name+"/"+p.name, func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					_, _ = pipeline.Do(b.Context(), p.Pipeline, func(context.Context) (int, error) { n++; return n, nil })
				}
			})
		}
	}
}
