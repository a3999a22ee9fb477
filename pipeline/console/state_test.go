package console

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// bubble runs a test in virtual time.
func bubble(name string, t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// after lets virtual time pass, and everybody finish what it brought.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// "which circuit is open, why, since when, what is being refused, and is it getting better"
func TestAnOpenCircuitIsTheFirstThingThatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		calm := pipeline.For("aaa calm").MustBuild()
		c := started(t, Pipelines(calm, p))
		after(10500 * time.Millisecond)
		require.NoError(t, p.Run(bg, succeed))
		opened := time.Now()
		for range 3 {
			require.Error(t, p.Run(bg, down)) // 2 + 2 + 1 failures, and the circuit is open
		}
		for range 7 {
			require.ErrorIs(t, p.Run(bg, succeed), breaker.ErrOpen)
		}
		after(time.Second)

		r := state(t, c).row(t, "billing")
		require.Equal(t, "bad", r.Level)
		require.Equal(t, `breaker "bank" is open: 5 failures in a row`, r.Why[0])
		require.Contains(t, r.Why, "7 of 11 calls refused in 10 s, by breaker")
		circuit := r.layer(t, "breaker").Breaker
		require.Equal(t, "open", circuit.State)
		require.Equal(t, "5 failures in a row", circuit.Trip)
		require.InDelta(t, opened.UnixMilli(), circuit.Since, 1000)
		require.False(t, circuit.AtLeast)
		require.InDelta(t, 29.5, float64(circuit.Wait), 0.01)
		require.InDelta(t, 30, float64(circuit.OpenFor), 1)
		require.Equal(t, "50 % of at least 20 calls in 10s fail, or 5 failures in a row, below 20 calls", circuit.Rules)

		require.Equal(t, totals{Calls: 11, Failed: 3, Refused: 7, Attempts: 6, Broken: 5, Retries: 2}, r.Totals)
		require.Equal(t, r.Totals, r.Last)
		require.Equal(t, uint64(8), r.layer(t, "breaker").Refused, "seven calls, and one retry of the third call")
		require.Equal(t, uint64(6), r.layer(t, "breaker").Admitted)
		require.Equal(t, map[string]uint64{"attempts_exhausted": 2, "refused": 1}, r.Stops)
		require.Equal(t, "worse", trend(1, 0, true))
		require.Equal(t, "", r.Trend, "half a minute ago there was nothing to compare with")
	})
}

// The trip's reason is what matters, not that the last probe failed.
func TestTheReasonOfTheTripOutlivesProbesAndTheReturn(t *testing.T) {
	for name, opts := range map[string]func(*Journal) (func(breaker.Change), []Option){
		"by looking":       func(*Journal) (func(breaker.Change), []Option) { return nil, nil },
		"by what it hears": func(j *Journal) (func(breaker.Change), []Option) { return j.OnChange, []Option{WithJournal(j)} },
	} {
		bubble(name, t, func(t *testing.T) {
			hook, opts := opts(new(Journal))
			p, b := bank(hook)
			c := started(t, Pipelines(p), opts...)
			after(500 * time.Millisecond)
			for range 3 {
				require.Error(t, p.Run(bg, down))
			}
			tripped := time.Now()
			after(31 * time.Second)
			circuit := state(t, c).row(t, "billing").layer(t, "breaker").Breaker
			require.Equal(t, "half-open", circuit.State, "what the next call would meet")
			require.Equal(t, "5 failures in a row", circuit.Trip)
			require.Error(t, p.Run(bg, down)) // the probe
			after(time.Second)
			circuit = state(t, c).row(t, "billing").layer(t, "breaker").Breaker
			require.Equal(t, "open", circuit.State)
			require.Equal(t, "probe failed", circuit.Reason)
			require.Equal(t, "5 failures in a row", circuit.Trip)
			require.InDelta(t, tripped.UnixMilli(), circuit.TripAt, 1000)
			after(30 * time.Second)
			require.NoError(t, p.Run(bg, succeed))
			require.Equal(t, breaker.Closed, b.State())
			after(time.Second)
			circuit = state(t, c).row(t, "billing").layer(t, "breaker").Breaker
			require.Equal(t, "closed", circuit.State)
			require.Equal(t, "5 failures in a row", circuit.Trip)
			changes := state(t, c).Journal
			require.NotEmpty(t, changes)
			require.Equal(t, "closed", changes[len(changes)-1].To)
			if hook != nil {
				require.Equal(t, tripped.UnixMilli(), circuit.TripAt, "to the millisecond")
				require.Len(t, changes, 5, "closed→open→half-open→open→half-open→closed, none twice")
			}
		})
	}
}

// undated is a circuit of somebody else's, which does not know when it changed.
type undated struct{ *breaker.Breaker }

func (u undated) Snapshot() breaker.Snapshot {
	s := u.Breaker.Snapshot()
	s.Since, s.Trip, s.TripAgo = 0, "", 0
	return s
}

// A console that is made later knows since when all the same, from the circuit itself; of one that does not know, it says at least.
func TestSinceWhenIsKnownAlsoToAConsoleThatIsMadeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.MustNew(breaker.Config{Name: "bank"})
		opened := time.Now()
		require.NoError(t, b.ForceOpen(bg))
		after(time.Hour)
		c := started(t, Pipelines(pipeline.For("known").Breaker(b).MustBuild(), pipeline.For("unknown").Breaker(undated{b}).MustBuild()))
		after(10500 * time.Millisecond)
		known := state(t, c).row(t, "known")
		require.Equal(t, []string{`breaker "bank" is forced open`}, known.Why)
		require.Equal(t, opened.UnixMilli(), known.Layers[0].Breaker.Since)
		require.False(t, known.Layers[0].Breaker.AtLeast)
		require.Zero(t, known.Layers[0].Breaker.TripAt, "a force is no trip")
		unknown := state(t, c).row(t, "unknown").Layers[0].Breaker
		require.True(t, unknown.AtLeast)
		require.InDelta(t, time.Now().Add(-10500*time.Millisecond).UnixMilli(), unknown.Since, 1)
	})
}

// "counters on each layer (admitted, refused, waiting)"
func TestEachLayerCountsWhatItAdmittedAndRefusedAndWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("p").
			RateLimit(ratelimit.MustNew(ratelimit.Config{Name: "r", Rate: 1, Per: time.Hour, Burst: 6})).
			Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "b", MaxConcurrent: 2, MaxWait: 10 * time.Second})).
			MustBuild()
		c := started(t, Pipelines(p))
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				_ = p.Run(bg, func(context.Context) error { <-time.After(2500 * time.Millisecond); return nil })
			})
		}
		after(2 * time.Second)
		r := state(t, c).row(t, "p")
		limit, slots := r.layer(t, "ratelimit"), r.layer(t, "bulkhead")
		require.Equal(t, uint64(4), limit.Refused)
		require.Equal(t, uint64(6), r.InFlight)
		require.InDelta(t, 4, float64(*slots.Waiting), 0)
		require.Equal(t, gauge{"in_use", 2, 2}, slots.Gauges[0])
		require.Contains(t, r.Why, `bulkhead "b" is full: 2 of 2`)
		after(20 * time.Second)
		calls.Wait()
		r = state(t, c).row(t, "p")
		require.Equal(t, uint64(6), r.layer(t, "ratelimit").Admitted)
		require.Equal(t, uint64(6), r.layer(t, "bulkhead").Admitted)
		require.Zero(t, r.InFlight)
	})
}

func TestABreakerOutsideTheRetryCountsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.MustNew(breaker.Config{Name: "b", Consecutive: 2})
		p := pipeline.For("p").Retry(retry.MustNew(retry.Config{Backoff: retry.Immediate, NoBudget: true})).Breaker(b).BreakerOutsideRetry().MustBuild()
		c := started(t, Pipelines(p))
		for range 5 {
			_ = p.Run(bg, down)
		}
		after(1500 * time.Millisecond)
		r := state(t, c).row(t, "p")
		require.Equal(t, "call", r.layer(t, "breaker").Per)
		require.Equal(t, uint64(2), r.layer(t, "breaker").Admitted)
		require.Equal(t, uint64(3), r.layer(t, "breaker").Refused)
		require.Equal(t, uint64(6), r.Totals.Attempts)
		require.Equal(t, "none", r.layer(t, "retry").Retry.Budget)
	})
}

// A limit that fired is counted where it fired, also where a nested pipeline's own limit comes out of fn.
func TestTimeoutsCountTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		c := started(t, Pipelines(p))
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		require.Error(t, p.Run(bg, hang)) // two attempts of a second: the second meets the total's end
		after(1500 * time.Millisecond)
		r := state(t, c).row(t, "billing")
		require.Equal(t, uint64(1), r.layer(t, "attempt-timeout").Fired)
		require.Equal(t, uint64(1), r.layer(t, "timeout").Fired)
	})
}

func TestWhoWentAwayIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		c := started(t, Pipelines(p))
		ctx, cancel := context.WithCancel(bg)
		go func() { <-time.After(10 * time.Millisecond); cancel() }()
		require.Error(t, p.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
		after(1500 * time.Millisecond)
		got := state(t, c).row(t, "billing").Totals
		require.Equal(t, uint64(1), got.Left)
		require.Zero(t, got.Failed)
	})
}

func TestAnInstanceThatSeveralPipelinesHaveSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := bulkhead.MustNew(bulkhead.Config{Name: "db", MaxConcurrent: 2})
		c := started(t, Pipelines(pipeline.For("a").Bulkhead(shared).MustBuild(), pipeline.For("b").Bulkhead(shared).MustBuild()))
		require.Equal(t, []string{"b"}, state(t, c).row(t, "a").Layers[0].Sharers)
		require.Equal(t, []string{"a"}, state(t, c).row(t, "b").Layers[0].Sharers)
	})
}

// rude is a guard whose own code misbehaves when it is looked at. It is not comparable either: its function sees to that.
type rude struct {
	leaf.Guard
	inspect func() leaf.Snapshot
}

func (r rude) Acquire(context.Context) (leaf.Permit, error) { return leaf.Permit{}, nil }
func (r rude) Inspect() leaf.Snapshot                       { return r.inspect() }

func TestAGuardThatPanicsWhenItIsLookedAtIsATextOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		p := pipeline.For("p").With(rude{inspect: func() leaf.Snapshot {
			if broken.Load() {
				panic(errors.New("secret"))
			}
			return leaf.Snapshot{Kind: "rude"}
		}}).MustBuild()
		c := started(t, Pipelines(p))
		broken.Store(true)
		after(1500 * time.Millisecond)
		r := state(t, c).row(t, "p")
		require.Equal(t, "warn", r.Level)
		require.Contains(t, r.Why[0], "panic of type *errors.errorString")
		broken.Store(false)
		after(time.Second)
		require.Equal(t, "idle", state(t, c).row(t, "p").Level)
	})
}
