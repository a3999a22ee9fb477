package pipeline_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	endings "github.com/fairlead/fairlead/internal/ended" // the model has an ended of its own
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// followed is a failure that wants to know of its retry.
type followed struct{ tell func() }

func (*followed) Error() string                { return "followed" }
func (f *followed) RetryFollows(endings.Asked) { f.tell() }

// A failure is told of its retry when it has been paid for and before the wait for it, also where there is none, once per backoff;
// nothing but the retry's reservation is held then.
func TestAFailureIsToldOfItsRetry(t *testing.T) {
	for name, row := range map[string]struct {
		delay time.Duration
		total time.Duration
		wrap  bool
		want  []time.Duration
	}{
		"delays":      {delay: time.Second, want: []time.Duration{0, time.Second}},
		"no delay":    {want: []time.Duration{0, 0}},
		"in a tree":   {delay: time.Second, wrap: true, want: []time.Duration{0, time.Second}},
		"too near":    {delay: time.Second, total: time.Second, want: nil},
		"one fits in": {delay: time.Second, total: 1500 * time.Millisecond, want: []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var at []time.Duration
				held := 0
				g := &rule{acquire: func(context.Context) error { held++; return nil }, settle: func(leaf.Outcome) error { held--; return nil }}
				var fail error = &followed{func() {
					at = append(at, time.Since(began))
					require.Zero(t, held)
				}}
				if row.wrap {
					fail = fmt.Errorf("wrapped: %w", fail)
				}
				b := pipeline.For("p").Retry(steady(func(c *retry.Config) { c.Backoff = retry.Constant(row.delay) })).With(g)
				if row.total > 0 {
					b = b.Timeout(limitOf(row.total))
				}
				require.Error(t, b.MustBuild().Run(t.Context(), func(context.Context) error { return fail }))
				require.Equal(t, row.want, at)
			})
		})
	}
}

// Not told: what no retry follows, for whatever reason, and a refusal, after which nothing has failed yet.
func TestAFailureIsNotToldOfARetryThatDoesNotFollow(t *testing.T) {
	used := budget.MustNewTokens(budget.TokenConfig{Capacity: 1, Hold: time.Hour})
	_, _ = used.Reserve()
	peeked := &peeking{peek: func() error { return &breaker.OpenError{} }}
	for name, b := range map[string]pipeline.Builder{
		"no retry":      pipeline.For("p"),
		"out of tries":  pipeline.For("p").Retry(steady(func(c *retry.Config) { c.MaxAttempts = 1 })),
		"not wanted":    pipeline.For("p").Retry(steady(func(c *retry.Config) { c.RetryIf = func(error) bool { return false } })),
		"no budget":     pipeline.For("p").Retry(steady(func(c *retry.Config) { c.Budget = used })),
		"peeked":        pipeline.For("p").Retry(steady()).Breaker(peeked),
		"refused first": pipeline.For("p").Retry(steady()).Bulkhead(&rule{acquire: func(context.Context) error { return &bulkhead.FullError{Max: 1} }}).RetryOnBulkheadFull(),
	} {
		n := 0
		require.Error(t, b.MustBuild().Run(t.Context(), func(context.Context) error { return &followed{func() { n++ }} }), name)
		require.Zero(t, n, name)
	}
}

// Told again where a guard refuses the retry and that is retried in its turn: it may be told many times.
func TestAFailureIsToldOfEveryBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, n := 0, 0
		p := pipeline.For("p").Retry(steady(func(c *retry.Config) { c.MaxAttempts = 4 })).
			Bulkhead(&rule{acquire: func(context.Context) error {
				if asked++; asked > 1 {
					return &bulkhead.FullError{Max: 1}
				}
				return nil
			}}).RetryOnBulkheadFull().MustBuild()
		require.Error(t, p.Run(t.Context(), func(context.Context) error { return &followed{func() { n++ }} }))
		require.Equal(t, 3, n)
	})
}

// It panics, or ends the goroutine: the token comes back, every guard is settled as what fn did, and it goes on.
func TestAFailureThatDiesOfItsRetry(t *testing.T) {
	for _, outside := range []bool{false, true} {
		tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 1, Hold: time.Hour})
		b, rules := guarded(outside, nil)
		finished := 0
		p := b.Retry(steady(func(c *retry.Config) { c.Budget = tokens })).Observe(func(_ context.Context, e pipeline.Event) {
			if e.Kind == pipeline.CallFinished {
				finished++
			}
		}).MustBuild()
		var kept context.Context
		fail := func(die func()) func(context.Context) error {
			return func(ctx context.Context) error { kept = ctx; return &followed{die} }
		}
		require.PanicsWithValue(t, "told", func() { _ = p.Run(t.Context(), fail(func() { panic("told") })) })
		require.Equal(t, 1, tokens.Balance())
		require.ErrorIs(t, kept.Err(), context.Canceled)
		goexits(t, func() { _ = p.Run(t.Context(), fail(runtime.Goexit)) })
		require.Equal(t, 1, tokens.Balance())
		require.Equal(t, 2, finished)
		for _, r := range rules {
			require.Equal(t, []leaf.Verdict{leaf.Returned, leaf.Returned}, r.verdicts())
		}
	}
}

// Telling costs no allocation, neither where somebody wants to know nor where nobody does.
func TestTellingAllocatesNothing(t *testing.T) {
	n := 0
	f := &followed{func() { n++ }}
	for name, err := range map[string]error{"wants to know": f, "in a tree": fmt.Errorf("%w", f), "plain": errDown} {
		require.Zero(t, testing.AllocsPerRun(100, func() { endings.TellRetry(err) }), name)
	}
	require.Positive(t, n)
}
