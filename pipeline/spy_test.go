package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/pipeline"
)

// entry is one line of a trace: what was asked, told or seen, and when. The model writes the same lines as the spies.
// Fields that do not apply are zero, so that two entries can be compared.
type entry struct {
	at    time.Duration // since the call began
	what  string
	layer string
	n     int // token, attempt
	err   string
	word  string // verdict, reason
	took  time.Duration
	given time.Duration
	until time.Duration // the deadline of the context that was handed over
	delay time.Duration
	wait  time.Duration
}

func (e entry) String() string {
	s := fmt.Sprintf("%10v  %-16s", e.at, e.what)
	for _, f := range []struct {
		name  string
		value any
		show  bool
	}{
		{"", e.layer, e.layer != ""}, {"#", e.n, e.n != 0}, {"", e.word, e.word != ""}, {"err=", e.err, e.err != ""},
		{"took=", e.took, e.took != 0}, {"given=", e.given, e.given != 0}, {"until=", e.until, e.until != 0}, {"delay=", e.delay, e.delay != 0},
		{"wait=", e.wait, e.wait != 0},
	} {
		if f.show {
			s += fmt.Sprint(" ", f.name, f.value)
		}
	}
	return s
}

// world is one run of one scenario: the caller, the spies, and what they saw.
type world struct {
	sc           *scenario
	timed        bool // Took is defined: a guard asked for it, or the call has a deadline
	limited      bool // each run has a context of its own
	hookPanicsAt int  // Observe and OnRejected panic when they are called for the nth time; 0 = never
	ctx          context.Context
	leave        func() // the caller goes away
	stop         func() // releases its deadline
	timers       []*time.Timer
	began        time.Time

	mu     sync.Mutex
	trace  []entry
	asked  map[layer]int
	peeked map[layer]int
	runs   int
	hooked int             // calls of Observe and OnRejected
	last   context.Context // of the last run
	tokens uint64
	held   map[uint64]layer
	wrong  []string // broken promises that have no place in the trace
}

type callerKey struct{}

// newWorld makes the caller. It is to be called inside the bubble: contexts and timers belong to it.
func newWorld(sc *scenario, p plan) *world {
	w := &world{
		sc: sc, timed: p.has(breaking) || p.has(total) || sc.deadline > 0,
		limited: p.has(attempt),
		asked:   map[layer]int{}, peeked: map[layer]int{}, held: map[uint64]layer{},
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), callerKey{}, w))
	w.leave, w.stop = func() { cancel(errLeft) }, func() {}
	if sc.deadline > 0 {
		deadline := time.Now().Add(sc.deadline)
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, deadline, errDue)
		w.stop = stop
	}
	w.ctx, w.began = ctx, time.Now()
	if sc.gone {
		w.leave()
	}
	if sc.overdue {
		w.await(sc.deadline + time.Millisecond)
		w.began = time.Now()
	}
	if sc.leavesAt > 0 {
		w.timers = append(w.timers, time.AfterFunc(sc.leavesAt, w.leave))
	}
	return w
}

func (w *world) end() {
	for _, t := range w.timers {
		t.Stop()
	}
	w.leave()
	w.stop()
}

func (w *world) add(e entry) {
	e.at = time.Since(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, e)
}

func (w *world) complain(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func (w *world) await(d time.Duration) { <-time.After(d) }

// pass lets a step's time pass; false = ctx ended it.
func (w *world) pass(ctx context.Context, s step) bool {
	if s.leavesIn > 0 {
		t := time.AfterFunc(s.leavesIn, w.leave)
		w.mu.Lock()
		w.timers = append(w.timers, t)
		w.mu.Unlock()
	}
	switch {
	case s.takes == 0:
	case s.heeds:
		t := time.NewTimer(s.takes)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	default:
		w.await(s.takes)
	}
	if s.leaves {
		w.leave()
	}
	return true
}

// until is ctx's deadline since the call began; 0 = none. It arms nothing.
func (w *world) until(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return deadline.Sub(w.began)
}

// over is the error that matches how ctx ended.
func over(ctx context.Context) error {
	return fmt.Errorf("spy: %w (%w)", ctx.Err(), context.Cause(ctx))
}

// fn is the callback.
func (w *world) fn(ctx context.Context) (int, error) {
	w.mu.Lock()
	w.runs++
	run := w.runs
	w.mu.Unlock()
	s := w.sc.run(run)
	if ctx.Value(callerKey{}) != w {
		w.complain("run %d: ctx does not derive from the caller's", run)
	}
	if err := ctx.Err(); err != nil {
		w.complain("run %d: began with a ctx that is done: %v", run, err)
	}
	if w.limited && w.last != nil && w.last.Err() == nil {
		w.complain("run %d: the last run's ctx is still alive", run)
	}
	w.last = ctx
	w.add(entry{what: "run", n: run, until: w.until(ctx)})
	if !w.pass(ctx, s) && s.says {
		return 1, ctx.Err()
	}
	w.add(entry{what: "ran", n: run})
	switch s.then {
	case panics:
		panic(boom)
	case exits:
		runtime.Goexit()
	}
	return 1, s.err
}

// observe is Builder.Observe's function. Only the fields that the kind's documentation names are compared.
func (w *world) observe(_ context.Context, e pipeline.Event) {
	if e.Pipeline != "matrix" || e.Operation != "op" || !e.Time.Equal(time.Now()) {
		w.complain("event %v: pipeline %q, operation %q, time %v at %v", e.Kind, e.Pipeline, e.Operation, e.Time, time.Now())
	}
	line := entry{what: e.Kind.String()}
	switch e.Kind {
	case pipeline.CallStarted:
	case pipeline.CallFinished:
		line.err = w.sc.tell(e.Err)
	case pipeline.AttemptFinished:
		line.n, line.took, line.err = e.Attempt, e.Took, w.sc.tell(e.Err)
	case pipeline.RetryScheduled:
		line.n, line.delay, line.wait = e.Attempt, e.Delay, e.Wait
	case pipeline.RetryStopped:
		line.word = e.Reason.String()
	case pipeline.GuardRejected:
		line.layer, line.err, line.wait = e.Layer, w.sc.tell(e.Err), e.Wait
	default:
		w.complain("an event of kind %v", e.Kind)
	}
	w.add(line)
	w.hook()
}

// hook panics where the test wants it.
func (w *world) hook() {
	w.hooked++
	if w.hooked == w.hookPanicsAt {
		panic(hookBoom)
	}
}

// mapper is Builder.OnRejected's function.
func (w *world) mapper(m mapping) func(context.Context, error) error {
	return func(ctx context.Context, err error) error {
		if ctx != w.ctx {
			w.complain("OnRejected: ctx is not the caller's own")
		}
		w.add(entry{what: "on_rejected", err: w.sc.tell(err)})
		w.hook()
		return m.answer()
	}
}

// spy is a guard that does what the scenario says, and writes down what it was asked and told.
type spy struct {
	w *world
	layer
}

func (s *spy) Acquire(ctx context.Context) (leaf.Permit, error) {
	if ctx.Value(callerKey{}) != s.w {
		s.w.complain("%v: ctx does not derive from the caller's", s.layer)
	}
	if ctx.Err() != nil {
		return leaf.Permit{}, over(ctx) // the contract: takes nothing; whether it is asked at all is the engine's business
	}
	s.w.mu.Lock()
	s.w.asked[s.layer]++
	ask := s.w.asked[s.layer]
	s.w.mu.Unlock()
	st := s.w.sc.ask(s.layer, ask)
	s.w.add(entry{what: "acquire", layer: s.String(), n: ask, until: s.w.until(ctx)})
	if !s.w.pass(ctx, st) {
		s.w.add(entry{what: "left", layer: s.String(), n: ask})
		return leaf.Permit{}, over(ctx)
	}
	switch st.then {
	case panics:
		panic(boom)
	case exits:
		runtime.Goexit()
	}
	if st.err != nil {
		s.w.add(entry{what: "refused", layer: s.String(), n: ask})
		return leaf.Permit{}, st.err
	}
	s.w.add(entry{what: "admitted", layer: s.String(), n: ask})
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.tokens++
	s.w.held[s.w.tokens] = s.layer
	return leaf.NewPermit(s, s.w.tokens), nil
}

// Settle fails, as a store may: that must never change the call's result.
func (s *spy) Settle(ctx context.Context, token uint64, o leaf.Outcome) error {
	if ctx != s.w.ctx {
		s.w.complain("%v: settled with a ctx that is not the caller's own", s.layer)
	}
	s.w.mu.Lock()
	l, ok := s.w.held[token]
	delete(s.w.held, token)
	s.w.mu.Unlock()
	if !ok || l != s.layer {
		s.w.complain("%v: settled a token that it does not hold: %d", s.layer, token)
	}
	e := entry{what: "settle", layer: s.String(), word: o.Verdict.String(), err: s.w.sc.tell(o.Err), given: o.Given}
	if s.w.timed {
		e.took = o.Took
	}
	s.w.add(e)
	if slices.Contains(s.w.sc.settlePanics, s.layer) {
		panic(settleBoom)
	}
	return errors.New("spy: the store is gone")
}

// peekSpy also tells without taking. Looks are not in the trace: how often the engine looks is its own business, and
// what it saw is.
type peekSpy struct{ spy }

func (s *peekSpy) Peek(context.Context) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.peeked[s.layer]++
	return s.w.sc.peek(s.layer, s.w.runs, time.Since(s.w.began))
}

// coolSpy stands for the cooldown.
type coolSpy struct{ peekSpy }

func (s *coolSpy) Hint(_ context.Context, wait time.Duration) {
	s.w.add(entry{what: "hint", layer: s.String(), wait: wait})
}

// breakSpy stands for the breaker.
type breakSpy struct{ peekSpy }

func (s *breakSpy) WantsTook() bool { return true }

// bulkSpy stands for the bulkhead.
type bulkSpy struct{ spy }

func (s *bulkSpy) Occupies() bool { return true }

// purse is a retry budget that writes down what is taken and given back.
type purse struct{ w *world }

func (p *purse) Deposit() { p.w.add(entry{what: "deposit"}) }

func (p *purse) Reserve() (budget.Reservation, bool) {
	if p.w.sc.broke {
		p.w.add(entry{what: "no_token"})
		return nil, false
	}
	p.w.add(entry{what: "reserve"})
	return &purseToken{w: p.w}, true
}

type purseToken struct {
	w       *world
	decided bool
}

func (t *purseToken) Commit() { t.decide("commit") }
func (t *purseToken) Cancel() { t.decide("cancel") }

func (t *purseToken) decide(how string) {
	if !t.decided {
		t.decided = true
		t.w.add(entry{what: how})
	}
}
