package pipeline

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
)

// Detached is told what a callback did after its call had returned. Both are optional, and run on the callback's goroutine
// after its guards were settled.
type Detached[T any] struct {
	Late      func(value T, err error) // it returned too late
	LatePanic func(value any)          // it panicked too late; nil = the panic ends the program, as any goroutine's
}

// DoDetached is Do for callbacks that ignore their context: each attempt runs in a goroutine of its own, and the call returns
// when the attempt's, the total or the caller's time is over. The breaker settles then, bulkhead slots (leaf.Occupier) when
// fn really ends. A panic in time goes on on the caller's goroutine. A result in time is not late.
func DoDetached[T any](ctx context.Context, p *Pipeline, fn func(context.Context) (T, error), d Detached[T], opts ...Option) (T, error) {
	var c call
	a := new(admission)
	defer func() { c.unwind(a) }()
	for ok := c.begin(ctx, p.current(), opts); ok; ok = c.again() {
		a = new(admission) // an earlier attempt may still hold its own
		if !c.admit(a) {
			continue
		}
		v, err := fly(&c, a, fn, d)
		if c.leave(a, err) {
			c.end()
			return v, nil
		}
	}
	var zero T
	return zero, c.end()
}

// flight is one detached attempt. Whoever comes second, the callback or the call that gives up on it, cleans up.
type flight[T any] struct {
	landed chan struct{} // closed when fn has ended in time

	mu        sync.Mutex
	done      bool // fn has ended in time
	abandoned bool // the call went on without it: fn is late

	value    T
	err      error
	returned bool // neither panicked nor called runtime.Goexit
	panicked any  // nil = runtime.Goexit
}

// fly runs fn in a goroutine of its own and waits for it, or for the end of the attempt's time.
func fly[T any](c *call, a *admission, fn func(context.Context) (T, error), d Detached[T]) (T, error) {
	f := &flight[T]{landed: make(chan struct{})}
	ctx := c.enter()
	late := &late{admission: a, ctx: c.caller, clock: c.plan.clock, timed: c.timed, entered: c.entered}
	late.outcome.Given = c.given
	go f.run(ctx, fn, d, late)
	select {
	case <-f.landed:
	case <-ctx.Done():
		if f.abandon(c, late) {
			c.abandoned = true
			var zero T
			return zero, cmp.Or(ended.Err(ctx), context.Canceled) // no context may be done and have no Err: that is no success
		}
		<-f.landed // just in time
	}
	switch {
	case f.returned:
		return f.value, f.err
	case f.panicked == nil:
		runtime.Goexit()
	}
	panic(f.panicked)
}

// abandon leaves fn to itself, unless it has ended in time. The guards that count what really runs stay with it.
func (f *flight[T]) abandon(c *call, l *late) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return false
	}
	f.abandoned = true
	l.take(c)
	return true
}

// run is the goroutine.
func (f *flight[T]) run(ctx context.Context, fn func(context.Context) (T, error), d Detached[T], l *late) {
	defer func() {
		if !f.returned {
			f.panicked = recover()
		}
		if f.land() {
			return
		}
		if v := l.settle(f.err, f.returned); v != nil && f.panicked == nil {
			f.panicked = v
		}
		switch {
		case f.panicked != nil && d.LatePanic != nil:
			d.LatePanic(f.panicked)
		case f.panicked != nil:
			panic(f.panicked)
		case f.returned && d.Late != nil:
			d.Late(f.value, f.err)
		}
	}()
	f.value, f.err = fn(ctx)
	f.returned = true
}

// land says whether fn ended in time; then the call takes it from here.
func (f *flight[T]) land() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.abandoned {
		return false
	}
	f.done = true
	close(f.landed)
	return true
}

// late is what an abandoned callback still holds.
type late struct {
	*admission
	ctx     context.Context
	clock   clock.Clock
	timed   bool
	entered int64
	kept    uint8        // the admission's permits that stay, as bits
	outcome leaf.Outcome // as the other guards were told
}

// take marks the permits that stay until fn really ends. It does so last: where a guard or a context panics when it is asked, the
// call settles them all, and fn none.
func (l *late) take(c *call) {
	var kept uint8
	for i := range l.held {
		if o, ok := c.plan.guards[i].guard.(leaf.Occupier); ok && o.Occupies() {
			kept |= 1 << i
		}
	}
	var now int64
	if l.timed {
		now = l.clock.Now()
	}
	l.outcome.Verdict = c.verdict(now)
	l.kept, l.admission.late = kept, kept
}

// settle gives them back, the innermost first; each of them, even where one panics. It returns what an error's Judge, or a
// Settle, panicked with: nobody waits for this goroutine who could be told otherwise.
func (l *late) settle(err error, returned bool) (panicked any) {
	defer func() { panicked = recover() }()
	o := l.outcome
	o.Err = err
	switch {
	case !returned:
		o.Verdict = leaf.Panicked
	case err == nil:
		o.Verdict = leaf.Returned
	}
	if l.timed {
		o.Took = max(0, time.Duration(l.clock.Now()-l.entered))
	}
	for i := range maxGuards {
		if l.kept&(1<<i) != 0 {
			defer func() { _ = l.permits[i].Settle(l.ctx, o) }()
		}
	}
	o = o.Judged()
	return nil
}
