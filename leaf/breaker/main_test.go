package breaker

import (
	"context"
	"errors"
	"flag"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	ops  = flag.Int("ops", 100_000, "operations of the model test")
	seed = flag.Uint64("seed", 0, "of the model test; 0 = another one each time")
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

var (
	bg       = context.Background()
	errDown  = errors.New("down")
	success  = leaf.Outcome{}
	failure  = leaf.Outcome{Err: errDown}
	canceled = leaf.Outcome{Verdict: leaf.CallerCancelled, Err: context.Canceled}
	notRun   = leaf.Outcome{Verdict: leaf.NotRun}
)

// steppedClock goes where a test puts it, also backwards. The breaker must not ask anything else of it.
type steppedClock struct {
	clockwork.Clock
	at    atomic.Int64
	reads atomic.Int64
}

var steppedEpoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *steppedClock) Now() time.Time { return steppedEpoch.Add(time.Duration(c.at.Load())) }

func (c *steppedClock) Since(t time.Time) time.Duration {
	c.reads.Add(1)
	return c.Now().Sub(t)
}

func (c *steppedClock) step(d time.Duration) { c.at.Add(int64(d)) }

// rig is a breaker on a virtual clock with everything that it told.
type rig struct {
	*Breaker
	t     *testing.T
	clock *steppedClock
	told  []Change
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t, clock: &steppedClock{}}
	cfg.Clock = r.clock
	if cfg.OnChange == nil {
		cfg.OnChange = func(c Change) { r.told = append(r.told, c) }
	}
	b, err := New(cfg)
	require.NoError(t, err)
	r.Breaker = b
	return r
}

// to sets the clock, in seconds as the cases count them.
func (r *rig) to(seconds float64) {
	r.clock.at.Store(int64(time.Duration(seconds * 1e9).Round(time.Microsecond)))
}

// begin is an admission that must succeed; end settles it.
func (r *rig) begin() (end func(leaf.Outcome)) {
	r.t.Helper()
	p, err := r.Acquire(bg)
	require.NoError(r.t, err)
	return func(o leaf.Outcome) { _ = p.Settle(bg, o) }
}

// run is n admitted calls, one after the other.
func (r *rig) run(n int, o leaf.Outcome) {
	r.t.Helper()
	for range n {
		r.begin()(o)
	}
}

// refused is an Acquire that must be refused.
func (r *rig) refused() *OpenError {
	r.t.Helper()
	_, err := r.Acquire(bg)
	var refusal *OpenError
	require.ErrorAs(r.t, err, &refusal)
	return refusal
}

func (r *rig) is(s State) {
	r.t.Helper()
	require.Equal(r.t, s, r.State(), "%+v", r.Snapshot())
}

func (r *rig) counts(calls, failures int) {
	r.t.Helper()
	s := r.Snapshot()
	require.Equal(r.t, [2]int{calls, failures}, [2]int{s.Calls, s.Failures}, "calls, failures")
}

// route is the states that were told, beginning with the first From.
func (r *rig) route() []State {
	var states []State
	for i, c := range r.told {
		require.EqualValues(r.t, i+1, c.Seq, "numbered from 1 without gaps")
		if i == 0 {
			states = append(states, c.From)
		}
		require.Equal(r.t, states[len(states)-1], c.From, "every From is the To before")
		states = append(states, c.To)
	}
	return states
}
