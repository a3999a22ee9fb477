package leaf_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errWork  = errors.New("work failed")
	errCause = errors.New("the caller's cause")
)

// refusal is somebody's no.
type refusal struct{ wait time.Duration }

func (refusal) Error() string                       { return "refused" }
func (refusal) Rejected() bool                      { return true }
func (r refusal) RetryAfter() (time.Duration, bool) { return r.wait, r.wait > 0 }

// tally is a guard that admits everybody, or nobody, and keeps what it is told.
type tally struct {
	acquire func(context.Context) error // nil = admit
	settle  func(leaf.Outcome) error    // nil = no error

	mu       sync.Mutex
	asked    int
	inside   int
	outcomes []leaf.Outcome
	ctxs     []context.Context
	tokens   []uint64
}

func (g *tally) Acquire(ctx context.Context) (leaf.Permit, error) {
	g.mu.Lock()
	g.asked++
	token := uint64(g.asked)
	g.mu.Unlock()
	if g.acquire != nil {
		if err := g.acquire(ctx); err != nil {
			return leaf.Permit{}, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
	return leaf.NewPermit(g, token), nil
}

func (g *tally) Settle(ctx context.Context, token uint64, o leaf.Outcome) error {
	g.mu.Lock()
	g.inside--
	g.outcomes = append(g.outcomes, o)
	g.ctxs = append(g.ctxs, ctx)
	g.tokens = append(g.tokens, token)
	g.mu.Unlock()
	if g.settle != nil {
		return g.settle(o)
	}
	return nil
}

// only is the single outcome that g was told.
func (g *tally) only(t *testing.T) leaf.Outcome {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Len(t, g.outcomes, 1, "settled exactly once")
	require.Zero(t, g.inside)
	return g.outcomes[0]
}

// timedTally wants Took.
type timedTally struct{ tally }

func (*timedTally) WantsTook() bool { return true }

// open admits and settles without any bookkeeping: the floor of benchmarks and allocation tests.
type open struct{}

func (open) Acquire(context.Context) (leaf.Permit, error)       { return leaf.NewPermit(open{}, 1), nil }
func (open) Settle(context.Context, uint64, leaf.Outcome) error { return nil }
func (open) TryAcquire(context.Context) (leaf.Permit, error)    { return leaf.NewPermit(open{}, 1), nil }
func succeed(context.Context) (int, error)                      { return 1, nil }
func fail(context.Context) (int, error)                         { return 1, errWork }
func settle(p *leaf.Permit, v leaf.Verdict) {
	_ = p.Settle(context.Background(), leaf.Outcome{Verdict: v})
}
func done(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

// unwound runs f in a goroutine of its own and says how it ended.
func unwound(f func()) (returned bool, panicked any) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { panicked = recover() }()
		f()
		returned = true
	})
	wg.Wait()
	return returned, panicked
}

// ends is every way not to return.
var ends = map[string]func(){"panic": func() { panic(errWork) }, "Goexit": runtime.Goexit}

// wantUnwound checks that f ended as ends[how] does.
func wantUnwound(t *testing.T, how string, f func()) {
	t.Helper()
	returned, panicked := unwound(f)
	require.False(t, returned)
	if how == "panic" {
		require.Equal(t, errWork, panicked)
	} else {
		require.Nil(t, panicked)
	}
}
