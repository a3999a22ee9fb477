package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

// Section 3, row 3: retry stops on a store failure, always; a cooldown's wait inside one is nothing to wait for (F9).
func TestStoreFailureOfTheCooldownStops(t *testing.T) {
	for name, peeked := range map[string]bool{"acquired": false, "peeked": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				down := &leaf.StoreError{Op: leaf.OpAdmit, Name: "c", Err: &no{wait: time.Second}}
				asked, runs := 0, 0
				cool := &peeking{}
				cool.acquire = func(context.Context) error {
					if asked++; asked == 2 {
						return down
					}
					return nil
				}
				if peeked {
					cool.peek = func() error { return down }
				}
				p := pipeline.For("p").Retry(steady()).Cooldown(cool).MustBuild()
				var err error
				took := in(func() { err = p.Run(t.Context(), func(context.Context) error { runs++; return errDown }) })
				require.Equal(t, 1, runs)
				require.LessOrEqual(t, took, 100*time.Millisecond, "the hint is not waited for")
				stop := stopped(t, err)
				require.Equal(t, retry.Refused, stop.Reason)
				require.Same(t, down, stop.Stop)
				require.Same(t, errDown, stop.Last)
				require.False(t, rejection.Is(err))
			})
		})
	}
}

// nestings are ways in which a refusal that stopped a pipeline deeper down comes out of fn.
func nestings() map[string]error {
	refusal := &no{wait: time.Second}
	return map[string]error{
		"bare":                 refusal,
		"wrapped":              fmt.Errorf("inner: %w", refusal),
		"RanError":             &pipeline.RanError{Err: refusal},
		"RanError, wrapped":    fmt.Errorf("inner: %w", &pipeline.RanError{Err: refusal}),
		"RanError in another":  &pipeline.RanError{Err: &pipeline.RanError{Err: refusal}},
		"retry.Error":          &retry.Error{Reason: retry.Refused, Attempts: 1, Last: errDown, Stop: refusal, Wait: time.Second},
		"retry.Error, wrapped": fmt.Errorf("inner: %w", &retry.Error{Reason: retry.Refused, Attempts: 1, Last: errDown, Stop: refusal, Wait: time.Second}),
	}
}

// A refusal out of fn is some guard's of this process, and no hint of the other side's to the cooldown (F14).
func TestARefusalOutOfFnIsNoHint(t *testing.T) {
	for name, err := range nestings() {
		for _, r := range []*retry.Retry{nil, steady(), steady(func(c *retry.Config) {
			c.RetryAfter = func(error) (time.Duration, bool) { return time.Minute, true }
		})} {
			cool := &peeking{}
			b := pipeline.For("p").Cooldown(cool)
			if r != nil {
				b = b.Retry(r)
			}
			require.Error(t, b.MustBuild().Run(t.Context(), func(context.Context) error { return err }))
			require.Empty(t, cool.hint, name)
		}
	}
}

// What another loop's stop carries of the other side's wait is a hint all the same: nobody refused.
func TestADeferralOutOfFnIsAHint(t *testing.T) {
	cool := &peeking{}
	stop := &retry.Error{Reason: retry.RetryAfterExceedsMaximumDelay, Attempts: 1, Last: &later{wait: time.Minute}, Wait: time.Minute}
	require.Error(t, pipeline.For("p").Cooldown(cool).MustBuild().Run(t.Context(), func(context.Context) error { return stop }))
	require.Equal(t, []time.Duration{time.Minute}, cool.hint)
}

// Row 5: a refusal out of fn is not retried, however deep it comes from, and says nothing of the downstream (F15).
func TestARefusalOfANestedPipelineIsNeitherRetriedNorAFailure(t *testing.T) {
	for name, refusal := range nestings() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, outside := range []bool{false, true} {
					g, runs := &rule{}, 0
					b := pipeline.For("p").Retry(steady()).Breaker(g)
					if outside {
						b = b.BreakerOutsideRetry()
					}
					err := b.MustBuild().Run(t.Context(), func(context.Context) error { runs++; return refusal })
					require.Equal(t, 1, runs)
					require.ErrorIs(t, err, refusal)
					require.False(t, rejection.Is(err))
					if _, ran := errors.AsType[*retry.Error](refusal); !ran { // that one's own pipeline ran, and really failed
						require.Equal(t, []leaf.Verdict{leaf.Ignored}, g.verdicts(), "outside %v", outside)
					}
				}
			})
		})
	}
}

// The same with real pipelines, two deep: the open circuit inside is refused at once, and trips nobody outside.
func TestAnOpenCircuitTwoPipelinesDownTripsNobodyAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, top := breaker.MustNew(breaker.Config{}), breaker.MustNew(breaker.Config{Consecutive: 1})
		require.NoError(t, open.ForceOpen(t.Context()))
		inner, middle := pipeline.For("inner").Breaker(open).MustBuild(), pipeline.For("middle").Retry(steady()).MustBuild()
		outer := pipeline.For("outer").Retry(steady()).Breaker(top).MustBuild()
		runs := 0
		for range 3 {
			err := outer.Run(t.Context(), func(ctx context.Context) error {
				return middle.Run(ctx, func(ctx context.Context) error {
					runs++
					return inner.Run(ctx, func(context.Context) error { t.Error("refused"); return nil })
				})
			})
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.False(t, rejection.Is(err))
		}
		require.Equal(t, 3, runs, "one for each call")
		require.Equal(t, breaker.Closed, top.State())
		require.Zero(t, top.Snapshot().Calls)
	})
}

// Row 9: the mapper's own word is that of its outermost error alone: whatever it wrapped, its result stays a rejection (F7).
func TestAMapperMayWrapWhatSaysItIsNoRejection(t *testing.T) {
	for name, wrapped := range map[string]error{
		"a timeout": &timeout.Error{Limit: time.Second}, "a loop's stop": &retry.Error{Reason: retry.AttemptsExhausted},
		"a RanError": &pipeline.RanError{Err: errDown}, "a record failure": &leaf.StoreError{Op: leaf.OpRecord, Err: errDown},
		"a denial": stubborn{errDown},
	} {
		original := &no{wait: time.Minute}
		p := pipeline.For("p").Bulkhead(&rule{acquire: func(context.Context) error { return original }}).
			OnRejected(func(context.Context, error) error { return fmt.Errorf("busy, lately: %w", wrapped) }).MustBuild()
		err := p.Run(t.Context(), func(context.Context) error { return nil })
		require.True(t, rejection.Is(err), name)
		require.ErrorIs(t, err, original, name)
		require.ErrorIs(t, err, wrapped, name)
		wait, ok := rejection.RetryAfter(err)
		require.True(t, ok, name)
		require.Equal(t, time.Minute, wait, name)
	}
}

// Section 2, breaker, through a pipeline: an expiry that IsFailure does not count closes no half-open circuit (F8).
func TestExpiryThatIsNotCountedClosesNoCircuit(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context) error{
		"fn's own earlier deadline": func(ctx context.Context) error {
			inner, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			<-inner.Done()
			return inner.Err()
		},
		"the caller's": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.MustNew(breaker.Config{Consecutive: 1, IsFailure: breaker.IgnoreContext(nil)})
				p := pipeline.For("p").Breaker(b).MustBuild()
				require.Error(t, p.Run(t.Context(), func(context.Context) error { return errDown }))
				<-time.After(b.Config().OpenFor)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorIs(t, p.Run(ctx, end), context.DeadlineExceeded)
				require.Equal(t, breaker.HalfOpen, b.State())
				require.Zero(t, b.Snapshot().Probes, "the slot is free")
				require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
				require.Equal(t, breaker.Closed, b.State())
			})
		})
	}
}
