package pipeline_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

// since is a scenario's clock: at waits until so many seconds after its beginning.
func since() (at func(seconds float64)) {
	began := time.Now()
	return func(seconds float64) { <-time.After(time.Until(began.Add(time.Duration(seconds * 1e9)))) }
}

func ok(context.Context) error   { return nil }
func down(context.Context) error { return errDown }
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// C13, through a pipeline: a probe that the caller cancels is neutral and gives its slot back; cancellations count nothing, our own
// timeouts do.
func TestACancelledProbeIsNeutral(t *testing.T) {
	cfg := breaker.Config{Window: breaker.Count(5), MinCalls: 5, Consecutive: breaker.Off, OpenFor: 10 * time.Second}
	synctest.Test(t, func(t *testing.T) { // (a)
		at := since()
		b := breaker.MustNew(cfg)
		p := pipeline.For("p").Breaker(b).AttemptTimeout(limitOf(time.Minute)).MustBuild()
		for range 5 {
			require.ErrorIs(t, p.Run(t.Context(), down), errDown)
		}
		at(9.999)
		require.ErrorIs(t, p.Run(t.Context(), ok), breaker.ErrOpen)
		at(10)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		require.ErrorIs(t, p.Run(ctx, hang), context.Canceled)
		require.Equal(t, breaker.HalfOpen, b.State())
		require.Zero(t, b.Snapshot().Probes)
		at(10.6)
		require.NoError(t, p.Run(t.Context(), ok))
		require.Equal(t, breaker.Closed, b.State())
	})
	synctest.Test(t, func(t *testing.T) { // (b)
		var opened []string
		cfg := cfg
		cfg.OnChange = func(c breaker.Change) { opened = append(opened, c.Reason) }
		b := breaker.MustNew(cfg)
		p := pipeline.For("p").Breaker(b).AttemptTimeout(limitOf(time.Second)).MustBuild()
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(500*time.Millisecond, cancel)
			require.ErrorIs(t, p.Run(ctx, hang), context.Canceled)
		}
		require.Zero(t, b.Snapshot().Calls)
		for i := range 5 {
			require.Equal(t, i, b.Snapshot().Failures)
			require.Equal(t, i, b.Snapshot().Calls)
			require.ErrorIs(t, p.Run(t.Context(), hang), timeout.ErrTimeout)
		}
		require.Equal(t, breaker.Open, b.State())
		require.Equal(t, []string{"failure rate 5/5"}, opened)
	})
}

// C14, run 1, through a pipeline: a probe that a full bulkhead stops gives its lease back and says nothing of the downstream; so
// does one that a limiter stops.
func TestAProbeThatIsRefusedFurtherInGivesItsLeaseBack(t *testing.T) {
	for name, inner := range map[string]func() (b func(pipeline.Builder) pipeline.Builder, take, give func(), is error){
		"bulkhead": func() (func(pipeline.Builder) pipeline.Builder, func(), func(), error) {
			h := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
			var held leaf.Permit
			return func(b pipeline.Builder) pipeline.Builder { return b.Bulkhead(h) },
				func() { held, _ = h.Acquire(context.Background()) },
				func() { _ = held.Settle(context.Background(), leaf.Outcome{}) }, bulkhead.ErrFull
		},
		"limiter": func() (func(pipeline.Builder) pipeline.Builder, func(), func(), error) {
			l := ratelimit.MustNew(ratelimit.Config{Rate: 1, Per: time.Second, Burst: 2})
			return func(b pipeline.Builder) pipeline.Builder { return b.RateLimit(l) },
				func() { _ = l.AllowN(2) }, func() {}, ratelimit.ErrLimited
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at := since()
				layer, take, give, is := inner()
				b := breaker.MustNew(breaker.Config{MinCalls: 2, OpenFor: 10 * time.Second})
				p := layer(pipeline.For("p").Breaker(b)).MustBuild()
				runs := 0
				fn := func(fail error) func(context.Context) error {
					return func(context.Context) error { runs++; return fail }
				}
				for range 2 {
					require.ErrorIs(t, p.Run(t.Context(), fn(errDown)), errDown)
				}
				require.Equal(t, breaker.Open, b.State())
				at(10)
				take()
				for _, when := range []float64{10, 10.5} {
					at(when)
					err := p.Run(t.Context(), fn(nil))
					require.ErrorIs(t, err, is)
					require.True(t, rejection.Is(err))
					s := b.Snapshot()
					require.Equal(t, breaker.HalfOpen, s.State)
					require.Zero(t, s.Probes)
					require.Zero(t, s.Failures)
				}
				require.Equal(t, 2, runs)
				at(11)
				give()
				at(11.1)
				require.NoError(t, p.Run(t.Context(), fn(nil)))
				require.Equal(t, 3, runs)
				require.Equal(t, breaker.Closed, b.State())
			})
		})
	}
}

// C14, run 2: the inner policy is a second breaker, open for longer.
func TestAProbeThatAnInnerCircuitRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := since()
		outer := breaker.MustNew(breaker.Config{Name: "outer", MinCalls: 2, OpenFor: 10 * time.Second})
		inner := breaker.MustNew(breaker.Config{Name: "inner", MinCalls: 2, OpenFor: 20 * time.Second})
		p := pipeline.For("p").Breaker(outer).With(inner).MustBuild()
		nested := pipeline.For("outer").Breaker(outer).MustBuild()
		within := pipeline.For("inner").Breaker(inner).MustBuild()
		for range 2 {
			require.ErrorIs(t, p.Run(t.Context(), down), errDown)
		}
		for _, when := range []float64{10, 12, 15, 19.999} {
			at(when)
			err := p.Run(t.Context(), ok)
			refusal, is := err.(*breaker.OpenError)
			require.True(t, is, "%T", err)
			require.Equal(t, "inner", refusal.Name)
			// The same from a pipeline in fn: there the outer one's probe has run, and says nothing all the same.
			err = nested.Run(t.Context(), func(ctx context.Context) error { return within.Run(ctx, ok) })
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.False(t, rejection.Is(err))
			require.Equal(t, breaker.HalfOpen, outer.State())
			require.Zero(t, outer.Snapshot().Probes)
			require.Equal(t, breaker.Open, inner.State())
		}
		at(20)
		runs := 0
		require.NoError(t, p.Run(t.Context(), func(context.Context) error { runs++; return nil }))
		require.Equal(t, 1, runs)
		require.Equal(t, breaker.Closed, outer.State())
		require.Equal(t, breaker.Closed, inner.State())
	})
}

// C15, through a pipeline: Probes is a ceiling that releases restore and never exceed; a refusal is no outcome.
func TestProbesAreACeilingThroughAPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := since()
		b := breaker.MustNew(breaker.Config{Window: breaker.Count(5), MinCalls: 5, OpenFor: 10 * time.Second, Probes: 3, ProbeSuccesses: 3})
		p := pipeline.For("p").Breaker(b).Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1000})).MustBuild()
		trip := func() {
			for b.State() != breaker.Open {
				require.ErrorIs(t, p.Run(t.Context(), down), errDown)
			}
		}
		together := func() (ran, refused int64, done func()) {
			var in, out atomic.Int64
			results := make(chan error)
			for range 100 {
				go func() {
					err := p.Run(context.Background(), func(context.Context) error {
						in.Add(1)
						<-time.After(500 * time.Millisecond)
						return nil
					})
					if rejection.Is(err) {
						out.Add(1)
					}
					results <- err
				}()
			}
			synctest.Wait() // the admitted are in fn; the refused wait to tell
			return in.Load(), out.Load(), func() {
				for range 100 {
					<-results
				}
			}
		}
		trip()
		for range 1000 {
			at(5)
			require.ErrorIs(t, p.Run(t.Context(), ok), breaker.ErrOpen)
		}
		at(10)
		ran, refused, done := together()
		require.EqualValues(t, 3, ran)
		require.EqualValues(t, 97, refused)
		done()
		at(10.5)
		s := b.Snapshot()
		require.Equal(t, breaker.Closed, s.State)
		require.Zero(t, s.Calls)
		require.ErrorIs(t, p.Run(t.Context(), down), errDown)
		s = b.Snapshot()
		require.Equal(t, 1, s.Calls)
		require.Equal(t, breaker.Closed, s.State)

		at(20)
		trip()
		at(30)
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			require.ErrorIs(t, p.Run(ctx, func(ctx context.Context) error { cancel(); return hang(ctx) }), context.Canceled)
		}
		require.Equal(t, breaker.HalfOpen, b.State())
		ran, refused, done = together()
		require.EqualValues(t, 3, ran, "not 13")
		require.EqualValues(t, 97, refused)
		done()
	})
}
