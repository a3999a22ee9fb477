package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// call is one call of a pipeline and all that is seen of it.
type call struct {
	stage  *stage
	parent *call // whose callback makes it; nil = nobody's
	target *target
	way    way
	seed   uint64
	ctx    context.Context // the caller's
	began  time.Time
	dead   bool      // its context was over when it began
	over   time.Time // when its caller's time is over
	bound  time.Time // the latest instant at which it may return: over, or the end of its total timeout

	mu       sync.Mutex
	rnd      *rand.Rand // for hooks
	runs     int        // of fn
	values   []int      // of its successes
	failed   []error    // its failures
	thrown   []any      // what it ended with otherwise
	deaf     time.Time  // until when it ignores its context
	returned bool
	events   []pipeline.Event
}

type way uint8

const (
	do way = iota
	detailed
	or
	detached
	run
	ways
)

func (w way) String() string {
	return [...]string{"Do", "DoDetailed", "DoOr", "DoDetached", "Run"}[w]
}

type callKey struct{}

func callOf(ctx context.Context) *call { c, _ := ctx.Value(callKey{}).(*call); return c }

// call uses one of the pipelines under a context that ends, now or later, and checks what comes back.
func (s *stage) call(parent context.Context, rnd *rand.Rand) (int, error) {
	s.w.counts.calls.Add(1)
	c := &call{stage: s, parent: callOf(parent), target: s.any(rnd), way: way(rnd.IntN(int(ways))), seed: rnd.Uint64(), began: time.Now()}
	c.rnd = rand.New(rand.NewPCG(c.seed, 0))
	ctx, cancel := c.limit(parent, rnd)
	defer cancel()
	ctx = context.WithValue(context.WithValue(ctx, callKey{}, c), tenant{}, rnd.IntN(tenants))
	c.ctx, c.dead = ctx, ctx.Err() != nil
	if p := c.target.pool; p != nil {
		p.sent.calls.Add(1)
	}
	return c.do()
}

// limit is the caller's time: a deadline, or a cancellation with a cause, or a context that is over already.
func (c *call) limit(parent context.Context, rnd *rand.Rand) (context.Context, func()) {
	w := c.stage.w
	d := time.Duration(1 + rnd.Int64N(int64(150*w.unit)))
	var ctx context.Context
	var cancel func()
	switch rnd.IntN(10) {
	case 0, 1, 2, 3:
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(parent)
		t := time.AfterFunc(d, func() { stop(errShutdown) })
		cancel = func() { t.Stop(); stop(nil) }
	case 4:
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(parent)
		stop(errShutdown)
		d, cancel = 0, func() {}
	default:
		ctx, cancel = context.WithTimeout(parent, d)
	}
	c.bound = c.began.Add(d)
	// A limit on a clock that was set tells its Deadline on that clock: context.WithTimeout then keeps that one, not its own.
	deaf := c.parent != nil && w.clock != nil
	if c.parent != nil && (deaf || c.parent.bound.Before(c.bound)) {
		c.bound = c.parent.bound
	}
	c.over = c.bound
	if total := c.target.total; total > 0 && w.clock == nil && c.began.Add(total).Before(c.bound) {
		c.bound = c.began.Add(total)
	}
	return ctx, cancel
}

var errShutdown = errors.New("shutdown")

// do makes the call in its way. Whatever happens, it is looked at afterwards: also while a panic unwinds.
func (c *call) do() (v int, err error) {
	p, ctx := c.target.Pipeline, c.ctx
	var opts []pipeline.Option
	if c.choice(3) > 0 {
		opts = append(opts, pipeline.Declare([]retry.Safety{
			retry.ReadOnly("read", time.Hour), retry.Idempotent("key", 10*c.stage.w.unit),
		}[c.choice(2)]))
	}
	ended := false
	defer func() {
		if !ended {
			c.unwound(recover())
		}
	}()
	switch c.way {
	case do:
		v, err = pipeline.Do(ctx, p, c.fn, opts...)
	case detailed:
		var r pipeline.Report
		v, r, err = pipeline.DoDetailed(ctx, p, c.fn, opts...)
		c.checkReport(r, err)
	case or:
		fallen := false
		var original error
		v, err = pipeline.DoOr(ctx, p, c.fn, func(ctx context.Context, e error) (int, error) {
			fallen, original = true, e
			return c.planB(ctx, e)
		}, opts...)
		if fallen {
			ended = true
			c.checkFallback(v, err, original)
			return v, err
		}
	case detached:
		v, err = pipeline.DoDetached(ctx, p, c.fn, pipeline.Detached[int]{LatePanic: func(any) {}}, opts...)
	case run:
		err = p.Run(ctx, func(ctx context.Context) error {
			_, err := c.fn(ctx)
			return err
		}, opts...)
	}
	ended = true
	c.check(v, err)
	return v, err
}

// fn is the callback: it runs under all guards of its pipeline.
func (c *call) fn(ctx context.Context) (int, error) {
	c.mu.Lock()
	c.runs++
	n, late := c.runs, c.returned
	c.mu.Unlock()
	c.stage.w.counts.runs.Add(1)
	c.stage.w.inside.Add(1)
	defer c.stage.w.inside.Add(-1)
	if late && c.way != detached {
		c.fail("run %d began after the call had returned", n)
	}
	for _, p := range c.target.parts {
		if p.run != nil {
			p.run(ctx, true)
			defer p.run(ctx, false)
		}
	}
	v, err := c.suffer(ctx, rand.New(rand.NewPCG(c.seed, uint64(n))))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed = append(c.failed, err)
	} else {
		c.values = append(c.values, v)
	}
	return v, err
}

// throw is told before fn panics (or calls runtime.Goexit: exit).
func (c *call) throw(v any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thrown = append(c.thrown, v)
}

// deafUntil is told before fn ignores its context: who waits for fn waits until then.
func (c *call) deafUntil(t time.Time) {
	for ; c != nil; c = c.parent {
		c.mu.Lock()
		if t.After(c.deaf) {
			c.deaf = t
		}
		c.mu.Unlock()
	}
}

// choice is a random number below n, for hooks.
func (c *call) choice(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rnd.IntN(n)
}

// planB is DoOr's fallback: it answers, declines, or hangs as long as it may.
func (c *call) planB(ctx context.Context, err error) (int, error) {
	switch n := c.choice(3); {
	case n == 0:
		return -12, err
	case n == 1 && c.stage.w.clock == nil: // where the clock jumps, so may the end of the context's life
		c.parent.deafUntil(time.Now().Add(c.target.fallback)) // a life that is nobody's but this one's
		<-ctx.Done()
		return 98, nil
	default:
		return 99, nil
	}
}

func (c *call) observe(e pipeline.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

func (c *call) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	c.stage.w.fail("%v of %v, %d runs: %s\nevents: %s", c.way, c.target, c.runs, what, tell(c.events))
}
