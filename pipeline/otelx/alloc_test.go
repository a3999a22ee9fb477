package otelx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// full is retry, breaker, rate limit and bulkhead, none of which is near its limit.
func full() pipeline.Builder {
	return pipeline.For("full").
		Retry(retry.MustNew(retry.Config{Backoff: retry.Immediate, NoBudget: true})).
		Breaker(breaker.MustNew(breaker.Config{FailureRate: breaker.Off, FailureCount: 1 << 20, Consecutive: breaker.Off})).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1_000_000, Burst: 1_000_000_000})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1000}))
}

// Recording costs no allocation once a series is known, with the SDK behind it: calls that succeed, are mended, and are refused.
func TestAllocRecordingAddsNothing(t *testing.T) {
	d := newDesk(t)
	open := breaker.MustNew(breaker.Config{})
	require.NoError(t, open.ForceOpen(t.Context()))
	for name, test := range map[string]struct {
		b     pipeline.Builder
		fails int
	}{
		"succeeded": {full(), 0}, "mended": {full(), 2}, "refused": {full().Breaker(open), 0},
	} {
		per := func(p *pipeline.Pipeline) float64 {
			n := 0
			fn := func(context.Context) error {
				if n++; n <= test.fails {
					return errDown
				}
				return nil
			}
			return testing.AllocsPerRun(500, func() { n = 0; _ = p.Run(t.Context(), fn) })
		}
		p := test.b.MustBuild()
		silent := per(p)
		stop := d.watch(t, p)
		require.Equal(t, silent, per(p), "%s, watched", name)
		stop()
		require.Equal(t, silent, per(test.b.Observe(d.Observe).MustBuild()), "%s, observed", name)
	}
}

// Names without end are bounded; what is not remembered is counted all the same.
func TestNamesWithoutEnd(t *testing.T) {
	d := newDesk(t)
	for n := range 2100 {
		d.Observe(t.Context(), pipeline.Event{Kind: pipeline.AttemptFinished, Pipeline: fmt.Sprint(n)})
	}
	d.Observe(t.Context(), pipeline.Event{Kind: pipeline.AttemptFinished, Pipeline: "0"})
	got := d.read(t)
	require.Equal(t, "2", got["counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=0}"])
	require.Equal(t, 2000, d.Names())
}

// Words that this package does not know, of a later version, are words all the same.
func TestWordsOfALaterVersion(t *testing.T) {
	d := newDesk(t)
	for range 2 {
		d.Observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Pipeline: "p", Disposition: 99, Reason: 98})
		d.Observe(t.Context(), pipeline.Event{Kind: pipeline.GuardRejected, Pipeline: "p", Layer: "mirror"})
		d.Observe(t.Context(), pipeline.Event{Kind: 99, Pipeline: "p"})
	}
	require.Equal(t, map[string]string{
		"histogram resilience.pipeline.duration s{outcome=Disposition(99) pipeline.name=p reason=Reason(98)}": "2 calls, 0.000s: 2<=0.005",
		"counter resilience.rejections {rejection}{layer=mirror pipeline.name=p reason=refused}":              "2",
	}, d.read(t))
}

// A call beside the same call that somebody hears, that is watched, with the SDK's aggregation behind it; and the floor: the SDK's own
// two recordings that a call makes.
func BenchmarkWatched(b *testing.B) {
	d := newDesk(b)
	fn := func(context.Context) error { return nil }
	for _, c := range []struct {
		name string
		b    pipeline.Builder
	}{
		{"nobody", full()},
		{"heard", full().Observe(func(context.Context, pipeline.Event) {})},
		{"watched", full().Observe(d.Observe)},
	} {
		p := c.b.MustBuild()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = p.Run(b.Context(), fn)
			}
		})
	}
	meter := d.provider.Meter("floor")
	counter, err := meter.Int64Counter("floor.counter")
	require.NoError(b, err)
	histogram, err := meter.Float64Histogram("floor.histogram")
	require.NoError(b, err)
	set := attribute.NewSet(attribute.String("resilience.pipeline.name", "full"), attribute.String("resilience.outcome", "succeeded"))
	add, record := []metric.AddOption{metric.WithAttributeSet(set)}, []metric.RecordOption{metric.WithAttributeSet(set)}
	b.Run("the SDK alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			counter.Add(b.Context(), 1, add...)
			histogram.Record(b.Context(), 0.001, record...)
		}
	})
}
