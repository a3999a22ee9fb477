package pipeline_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
)

var errDown = errors.New("down")

// steady is a retry of three attempts, 100 ms apart, without jitter.
func steady(change ...func(*retry.Config)) *retry.Retry {
	cfg := retry.Config{Backoff: retry.Constant(100 * time.Millisecond), Jitter: retry.None}
	for _, f := range change {
		f(&cfg)
	}
	return retry.MustNew(cfg)
}

// rule is a guard that does what a test says and notes what it is told.
type rule struct {
	name    string
	acquire func(ctx context.Context) error
	settle  func(o leaf.Outcome) error
	log     *journal
	mu      sync.Mutex // late callbacks settle from goroutines of their own
	told    []leaf.Outcome
}

func (r *rule) Acquire(ctx context.Context) (leaf.Permit, error) {
	r.log.add("acquire " + r.name)
	if r.acquire != nil {
		if err := r.acquire(ctx); err != nil {
			return leaf.Permit{}, err
		}
	}
	return leaf.NewPermit(r, 7), nil
}

func (r *rule) Settle(_ context.Context, token uint64, o leaf.Outcome) error {
	if token != 7 {
		panic("a foreign token")
	}
	r.log.add("settle " + r.name + " " + o.Verdict.String())
	r.mu.Lock()
	r.told = append(r.told, o)
	r.mu.Unlock()
	if r.settle != nil {
		return r.settle(o)
	}
	return nil
}

func (r *rule) verdicts() []leaf.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	var vs []leaf.Verdict
	for _, o := range r.told {
		vs = append(vs, o.Verdict)
	}
	return vs
}

// peeking is a rule that also tells what it would say.
type peeking struct {
	rule
	peek func() error
	hint []time.Duration
}

func (p *peeking) Peek(context.Context) error {
	if p.peek == nil {
		return nil
	}
	return p.peek()
}

func (p *peeking) Hint(_ context.Context, wait time.Duration) { p.hint = append(p.hint, wait) }

// journal is what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// no is a refusal.
type no struct{ wait time.Duration }

func (*no) Error() string                       { return "no" }
func (*no) Rejected() bool                      { return true }
func (e *no) RetryAfter() (time.Duration, bool) { return e.wait, e.wait > 0 }

// later is a failure that asks for a wait, as a 429 does.
type later struct{ wait time.Duration }

func (*later) Error() string                       { return "later" }
func (e *later) RetryAfter() (time.Duration, bool) { return e.wait, true }
func (*later) Judge(o leaf.Outcome) leaf.Outcome {
	o.Verdict = leaf.Ignored
	return o
}

// in says how long something took, in a bubble.
func in(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// fails is a callback that fails n times, then succeeds with the number of its run.
func fails(n int, err error) func(context.Context) (int, error) {
	runs := 0
	return func(context.Context) (int, error) {
		if runs++; runs <= n {
			return -1, err
		}
		return runs, nil
	}
}

func limitOf(d time.Duration) *timeout.Timeout { return timeout.MustNew(timeout.Config{Limit: d}) }
