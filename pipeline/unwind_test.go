package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// goexits runs f in a goroutine of its own and says that it ended by runtime.Goexit, not by returning or panicking.
func goexits(t *testing.T, f func()) {
	t.Helper()
	var wg sync.WaitGroup
	returned, panicked := false, any(nil)
	wg.Go(func() {
		defer func() { panicked = recover() }()
		f()
		returned = true
	})
	wg.Wait()
	require.False(t, returned)
	require.Nil(t, panicked)
}

// guarded has every kind of guard as a rule, in both orders of the breaker.
func guarded(outside bool, settle func(o leaf.Outcome) error) (pipeline.Builder, []*rule) {
	var rules []*rule
	add := func() *rule {
		r := &rule{settle: settle}
		rules = append(rules, r)
		return r
	}
	b := pipeline.For("p").Timeout(limitOf(time.Hour)).AttemptTimeout(limitOf(time.Minute)).Retry(steady()).
		Cooldown(add()).Breaker(add()).RateLimit(add()).With(add()).Bulkhead(add())
	if outside {
		b = b.BreakerOutsideRetry()
	}
	return b, rules
}

// Section 1: Panicked (panic or runtime.Goexit) is a failure, never retried; every permit is settled and it goes on
// unwinding on the caller's goroutine. A panic inside a Settle while unwinding never replaces fn's.
func TestPanicAndGoexitSettleEverythingAndGoOn(t *testing.T) {
	for _, outside := range []bool{false, true} {
		for _, settle := range []func(leaf.Outcome) error{nil, func(leaf.Outcome) error { panic("settle") }} {
			b, rules := guarded(outside, settle)
			p := b.MustBuild()
			runs := 0
			require.PanicsWithValue(t, "fn", func() {
				_ = p.Run(t.Context(), func(context.Context) error { runs++; panic("fn") })
			})
			goexits(t, func() {
				_ = p.Run(t.Context(), func(context.Context) error { runs++; runtime.Goexit(); return nil })
			})
			require.Equal(t, 2, runs)
			for _, r := range rules {
				require.Equal(t, []leaf.Verdict{leaf.Panicked, leaf.Panicked}, r.verdicts())
			}
		}
	}
}

// Section 2: a hook's panic propagates only after every permit is settled.
func TestPanicInASettleSettlesTheOthersFirst(t *testing.T) {
	for _, outside := range []bool{false, true} {
		for _, fail := range []error{nil, errDown} {
			calls := 0
			b, rules := guarded(outside, func(leaf.Outcome) error {
				if calls++; calls == 1 {
					panic("hook")
				}
				return nil
			})
			p := b.MustBuild()
			require.PanicsWithValue(t, "hook", func() { _ = p.Run(t.Context(), func(context.Context) error { return fail }) })
			for _, r := range rules {
				require.Equal(t, []leaf.Verdict{leaf.Returned}, r.verdicts(), "what fn did stands")
				require.Equal(t, fail, r.told[0].Err)
			}
		}
	}
}

// A guard that panics in Acquire: those before it get NotRun.
func TestPanicInAnAcquireGivesBackWhatIsHeld(t *testing.T) {
	first, second := &rule{}, &rule{acquire: func(context.Context) error { panic("acquire") }}
	p := pipeline.For("p").Breaker(first).Bulkhead(second).MustBuild()
	require.PanicsWithValue(t, "acquire", func() { _ = p.Run(t.Context(), func(context.Context) error { return nil }) })
	require.Equal(t, []leaf.Verdict{leaf.NotRun}, first.verdicts())
	require.Empty(t, second.told)
}

// A reservation comes back when a hook panics between reserving and sending.
func TestPanicInOnRetryGivesTheTokenBack(t *testing.T) {
	tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 2})
	r := steady(func(c *retry.Config) {
		c.Budget = tokens
		c.OnRetry = func(context.Context, retry.Scheduled) { panic("hook") }
	})
	outer := &rule{}
	p := pipeline.For("p").Retry(r).Breaker(outer).BreakerOutsideRetry().MustBuild()
	require.PanicsWithValue(t, "hook", func() { _ = p.Run(t.Context(), func(context.Context) error { return errDown }) })
	require.Equal(t, 2, tokens.Balance())
	require.Equal(t, []leaf.Verdict{leaf.Returned}, outer.verdicts())
	require.Equal(t, errDown, outer.told[0].Err)
}

// A judge that panics: the run counts as panicked, and nothing stays held.
func TestPanicInAJudge(t *testing.T) {
	for _, outside := range []bool{false, true} {
		b, rules := guarded(outside, nil)
		require.PanicsWithValue(t, "judge", func() {
			_ = b.MustBuild().Run(t.Context(), func(context.Context) error { return badJudge{} })
		})
		for _, r := range rules {
			require.Equal(t, []leaf.Verdict{leaf.Panicked}, r.verdicts())
		}
	}
}

type badJudge struct{}

func (badJudge) Error() string                   { return "bad judge" }
func (badJudge) Judge(leaf.Outcome) leaf.Outcome { panic("judge") }

// An observer that panics, at every event: nothing stays held, the panic goes on.
func TestPanicInAnObserver(t *testing.T) {
	for _, kind := range []pipeline.Kind{
		pipeline.CallStarted, pipeline.AttemptFinished, pipeline.RetryScheduled, pipeline.RetryStopped, pipeline.CallFinished,
	} {
		g := &rule{}
		first := true
		p := pipeline.For("p").Retry(retry.MustNew(retry.Config{MaxAttempts: 2, Backoff: retry.Immediate})).Breaker(g).
			Observe(func(_ context.Context, e pipeline.Event) {
				if e.Kind == kind && first {
					first = false
					panic(kind)
				}
			}).MustBuild()
		require.PanicsWithValue(t, kind, func() { _ = p.Run(t.Context(), func(context.Context) error { return errDown }) })
		for _, v := range g.verdicts() {
			require.Equal(t, leaf.Returned, v)
		}
	}
}

// The attempt's context is done when fn has panicked, too.
func TestPanicEndsTheAttemptsContext(t *testing.T) {
	p := pipeline.For("p").Timeout(limitOf(time.Hour)).AttemptTimeout(limitOf(time.Minute)).MustBuild()
	var kept context.Context
	require.Panics(t, func() { _ = p.Run(t.Context(), func(ctx context.Context) error { kept = ctx; panic("fn") }) })
	require.ErrorIs(t, kept.Err(), context.Canceled)
	require.Panics(t, func() {
		_ = p.Run(t.Context(), func(ctx context.Context) error { kept = ctx; <-closed(ctx); panic("fn") })
	})
	require.ErrorIs(t, kept.Err(), context.Canceled)
}

// closed asks for Done, so that the context is armed, and does not wait for it.
func closed(ctx context.Context) <-chan struct{} {
	_ = ctx.Done()
	c := make(chan struct{})
	close(c)
	return c
}

// The panic value that was given arrives as it was, errors and nil included.
func TestPanicValueIsUnchanged(t *testing.T) {
	p := pipeline.For("p").Bulkhead(&rule{}).MustBuild()
	want := errors.New("as it was")
	require.PanicsWithValue(t, want, func() { _ = p.Run(t.Context(), func(context.Context) error { panic(want) }) })
}

// runtime.Goexit in every Settle, whatever fn did: each guard is told, once, and nothing stays.
func TestGoexitInASettleSettlesTheOthers(t *testing.T) {
	for name, fn := range map[string]func() error{
		"panic": func() error { panic("fn") }, "goexit": func() error { runtime.Goexit(); return nil },
		"error": func() error { return errDown }, "success": func() error { return nil },
	} {
		for _, outside := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 1, Hold: time.Hour})
				slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
				b, rules := guarded(outside, func(leaf.Outcome) error { runtime.Goexit(); return nil })
				finished := 0
				p := b.With(slots).Retry(steady(func(c *retry.Config) { c.Budget = tokens })).
					Observe(func(_ context.Context, e pipeline.Event) {
						if e.Kind == pipeline.CallFinished {
							finished++
						}
					}).MustBuild()
				var kept context.Context
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { _ = recover() }()
					_ = p.Run(context.Background(), func(ctx context.Context) error { kept = ctx; return fn() })
				})
				wg.Wait()
				for _, r := range rules {
					require.Len(t, r.told, 1)
				}
				require.Zero(t, slots.InUse())
				require.Equal(t, 1, tokens.Balance())
				require.ErrorIs(t, kept.Err(), context.Canceled)
				require.Equal(t, 1, finished)
			})
		}
	}
}

// The same through a hook of a guard of ours.
func TestGoexitInOnChangeLosesNoSlot(t *testing.T) {
	slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
	b := breaker.MustNew(breaker.Config{Consecutive: 1, OnChange: func(breaker.Change) { runtime.Goexit() }})
	p := pipeline.For("p").With(slots, b).MustBuild()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { _ = recover() }()
		_ = p.Run(context.Background(), func(context.Context) error { panic("fn") })
	})
	wg.Wait()
	require.Zero(t, slots.InUse())
	require.Equal(t, breaker.Open, b.State())
}

// call_finished is told once, also where the observer does not return from it.
func TestObserverThatDiesOfCallFinishedIsToldOnce(t *testing.T) {
	for _, die := range []func(){func() { panic("observer") }, runtime.Goexit} {
		told := 0
		p := pipeline.For("p").Observe(func(_ context.Context, e pipeline.Event) {
			if e.Kind == pipeline.CallFinished {
				told++
				die()
			}
		}).MustBuild()
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			_ = p.Run(context.Background(), func(context.Context) error { return nil })
		})
		wg.Wait()
		require.Equal(t, 1, told)
	}
}
