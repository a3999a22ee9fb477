package guardtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
)

// suite is one check under way.
type suite struct {
	testing.TB
	cfg Config
}

// ask is Acquire or TryAcquire.
type ask = func(context.Context) (leaf.Permit, error)

// way is one of the ways to ask a guard.
type way struct {
	name string
	ask  ask
}

func ways(g leaf.Guard) []way {
	all := []way{{"Acquire", g.Acquire}}
	if t, ok := g.(leaf.Trier); ok {
		all = append(all, way{"TryAcquire", t.TryAcquire})
	}
	return all
}

// call is one call that asks for admission.
type call struct {
	permit leaf.Permit
	err    error
	done   chan struct{}
}

// start asks in a goroutine of its own, so that what hangs can be told from what takes its time.
func start(ctx context.Context, ask ask) *call {
	c := &call{done: make(chan struct{}), err: errors.New("no answer: runtime.Goexit in the guard")}
	go func() {
		defer close(c.done)
		defer func() {
			if v := recover(); v != nil {
				c.err = fmt.Errorf("the guard panicked: %v", v)
			}
		}()
		c.permit, c.err = ask(ctx)
	}()
	return c
}

func (c *call) settle(v leaf.Verdict) { _ = c.permit.Settle(context.Background(), outcome(v)) }

// settleAll settles with one verdict.
func settleAll(calls []*call, v leaf.Verdict) {
	for _, c := range calls {
		c.settle(v)
	}
}

var errWork = errors.New("the callback's own error")

// outcome is a likely one of verdict v.
func outcome(v leaf.Verdict) leaf.Outcome {
	o := leaf.Outcome{Verdict: v, Took: time.Millisecond, Given: time.Second}
	switch v {
	case leaf.TimedOut, leaf.CallerExpired:
		o.Err = context.DeadlineExceeded
	case leaf.CallerCancelled:
		o.Err = context.Canceled
	case leaf.Ignored:
		o.Err = errWork
	case leaf.NotRun:
		o.Err, o.Took = context.Canceled, 0
	}
	return o
}

var verdicts = []leaf.Verdict{
	leaf.Returned, leaf.TimedOut, leaf.CallerCancelled, leaf.CallerExpired, leaf.Panicked, leaf.NotRun, leaf.Ignored,
}

// ended waits for c, no longer than Patience. When that is over, cancel frees what hangs.
func (s *suite) ended(c *call, cancel context.CancelFunc, what string) {
	s.Helper()
	if within(c.done, s.cfg.Patience) {
		return
	}
	cancel()
	if within(c.done, s.cfg.Patience) { // so that it does not run on under the next test
		c.settle(leaf.NotRun)
	}
	s.Fatalf("%s did not return within %v", what, s.cfg.Patience)
}

func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// prompt asks, and expects an answer at once.
func (s *suite) prompt(ctx context.Context, ask ask, what string) *call {
	s.Helper()
	ctx, cancel := context.WithCancel(ctx)
	c := start(ctx, ask)
	s.ended(c, cancel, what)
	cancel() // after the admission, as a caller's own context would be
	return c
}

// admitted asks, and expects a yes; within Lag it asks again.
func (s *suite) admitted(ask ask, what string) *call {
	s.Helper()
	for waited := time.Duration(0); ; waited += time.Millisecond {
		c := s.prompt(context.Background(), ask, what)
		if c.err == nil {
			return c
		}
		if waited >= s.cfg.Lag {
			s.Fatalf("%s: got error %q (%T), want an admission", what, c.err, c.err)
		}
		<-time.After(time.Millisecond)
	}
}

// fill uses a guard up.
func (s *suite) fill(g leaf.Guard) []*call {
	s.Helper()
	var calls []*call
	for i := range s.cfg.Capacity {
		calls = append(calls, s.admitted(g.Acquire, fmt.Sprintf("Acquire %d of %d", i+1, s.cfg.Capacity)))
	}
	return calls
}

// intact checks that everything is there: exactly Capacity calls are admitted; afterwards they are given back.
func (s *suite) intact(g leaf.Guard, after string) {
	s.Helper()
	if s.cfg.Capacity == 0 {
		s.admitted(g.Acquire, "Acquire after "+after).settle(leaf.NotRun)
		return
	}
	var calls []*call
	for i := range s.cfg.Capacity {
		calls = append(calls, s.admitted(g.Acquire, fmt.Sprintf("Acquire %d of %d after %s", i+1, s.cfg.Capacity, after)))
	}
	s.full(g, after)
	settleAll(calls, leaf.NotRun)
}

// full checks that one more is not admitted, without waiting for a guard that waits.
func (s *suite) full(g leaf.Guard, after string) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := (*call)(nil)
	if t, ok := g.(leaf.Trier); ok {
		c = s.prompt(ctx, t.TryAcquire, "TryAcquire of a full guard")
	} else {
		w := watch(ctx)
		c = start(w, g.Acquire)
		w.waits(c)
		cancel()
		s.ended(c, cancel, "Acquire of a full guard, cancelled,")
	}
	if c.err == nil {
		c.settle(leaf.NotRun)
		s.Fatalf("after %s: more than %d calls were admitted at once", after, s.cfg.Capacity)
	}
}

// refusing makes a guard that refuses; nil where nothing refuses.
func (s *suite) refusing() leaf.Guard {
	s.Helper()
	if s.cfg.Refusing != nil {
		return s.cfg.Refusing(s)
	}
	if s.cfg.Capacity == 0 {
		return nil
	}
	g := s.cfg.New(s)
	calls := s.fill(g)
	s.Cleanup(func() { settleAll(calls, leaf.NotRun) })
	return g
}

// kind is one of the guards to check.
type kind struct {
	name  string
	fresh func(testing.TB) leaf.Guard
}

func (s *suite) kinds() []kind {
	all := []kind{{"the guard", s.cfg.New}}
	if s.cfg.Waiting != nil {
		all = append(all, kind{"the waiting guard", s.cfg.Waiting})
	}
	return all
}

// wantRefusal checks a refusal from outside: it knows errors by their methods, as everybody does.
func (s *suite) wantRefusal(err error, what string) {
	s.Helper()
	switch {
	case err == nil:
		s.Fatalf("%s: got nil, want a refusal", what)
	case !refusal.Is(err):
		s.Fatalf("%s: got %q (%T), want a refusal, whose Rejected() is true", what, err, err)
	case err.Error() == "":
		s.Fatalf("%s: the refusal has no text", what)
	}
	var hint interface {
		RetryAfter() (time.Duration, bool)
	}
	if !errors.As(err, &hint) {
		s.Fatalf("%s: the refusal %q has no RetryAfter() (time.Duration, bool)", what, err)
	}
	if wait, ok := hint.RetryAfter(); ok && wait < 0 {
		s.Fatalf("%s: the refusal's RetryAfter is %v, want none or 0 and more", what, wait)
	}
}

// wantCtx checks that err is the error of ctx, which is done, and nothing else.
func (s *suite) wantCtx(ctx context.Context, err error, what string) {
	s.Helper()
	switch {
	case err == nil:
		s.Fatalf("%s: admitted, want ctx's error", what)
	case !errors.Is(err, ctx.Err()):
		s.Fatalf("%s: got %q (%T), which does not match ctx.Err()", what, err, err)
	case !errors.Is(err, context.Cause(ctx)):
		s.Fatalf("%s: got %q (%T), which does not match context.Cause(ctx) = %q", what, err, err, context.Cause(ctx))
	case refusal.Is(err):
		s.Fatalf("%s: ctx's error %q is a refusal, too", what, err)
	}
}

// wantZero checks the permit that came with an error.
func (s *suite) wantZero(c *call, what string) {
	s.Helper()
	if c.permit != (leaf.Permit{}) {
		c.settle(leaf.NotRun)
		s.Fatalf("%s: the error came with a permit, want the zero Permit", what)
	}
}

// watched is a context that tells when somebody is about to wait for its end.
type watched struct {
	context.Context
	once  sync.Once
	asked chan struct{}
}

func watch(ctx context.Context) *watched { return &watched{Context: ctx, asked: make(chan struct{})} }

func (w *watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.asked) })
	return w.Context.Done()
}

// waits returns once c waits, as far as anybody can see: it asked for ctx's end, or came back, or (a guard that polls)
// did neither for a while.
func (w *watched) waits(c *call) {
	timer := time.NewTimer(50 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-w.asked:
	case <-c.done:
	case <-timer.C:
	}
}
