package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
)

var (
	errDown  = errors.New("down")
	errJudge = errors.New("whoever judges this panics")
)

// hook is what hooks panic with.
type hook struct{}

// asks is a failure that asks for a wait.
type asks struct{ wait time.Duration }

func (asks) Error() string                       { return "busy" }
func (e asks) RetryAfter() (time.Duration, bool) { return e.wait, true }

// judged is a failure that judges itself, and does it badly now and then. It may not say NotRun: guards believe it, and give
// back what was used.
type judged struct{ as leaf.Verdict }

func (judged) Error() string { return "judged" }
func (e judged) Judge(o leaf.Outcome) leaf.Outcome {
	if e.as == leaf.Panicked {
		panic(hook{})
	}
	o.Verdict = e.as
	return o
}

// uncomparable is an error that == panics at.
type uncomparable []int

func (uncomparable) Error() string { return "uncomparable" }

// refusal is one that fn returns: somebody's further on.
type refusal struct{}

func (refusal) Error() string                     { return "somebody refuses" }
func (refusal) Rejected() bool                    { return true }
func (refusal) RetryAfter() (time.Duration, bool) { return time.Second, true }

// calmly marks a call of the recovery: nothing goes wrong any more.
type calmly struct{}

func calm(ctx context.Context) bool { return ctx.Value(calmly{}) != nil }

// suffer is what a callback does: takes its time, and something goes wrong with it.
func (c *call) suffer(ctx context.Context, rnd *rand.Rand) (int, error) {
	w, u := c.stage.w, c.stage.w.unit
	if calm(ctx) {
		return 1, nil
	}
	if rnd.IntN(2) == 0 {
		if err := obeying(ctx, time.Duration(rnd.Int64N(int64(5*u)))); err != nil && rnd.IntN(4) > 0 {
			return -1, err
		}
	}
	switch n := rnd.IntN(100); {
	case n < 35:
		return 1 + rnd.IntN(1000), nil
	case n < 55:
		return -2, errDown
	case n < 58:
		return -3, retry.Permanent(errDown)
	case n < 63:
		return -4, asks{time.Duration(rnd.Int64N(int64(40*u))) - u}
	case n < 66:
		return -5, judged{[]leaf.Verdict{leaf.Returned, leaf.TimedOut, leaf.CallerExpired, leaf.Panicked, leaf.Ignored, 99}[rnd.IntN(6)]}
	case n < 68:
		return -6, refusal{}
	case n < 70:
		return -7, fmt.Errorf("%w: %w", errDown, refusal{})
	case n < 72:
		return -8, []error{context.Canceled, context.DeadlineExceeded, uncomparable{1}, errJudge, (*retry.Error)(nil),
			errors.Join(errDown, asks{time.Hour})}[rnd.IntN(6)]
	case n < 76:
		v := any(fmt.Sprint("panic ", rnd.IntN(1000)))
		c.throw(v)
		panic(v)
	case n < 79:
		c.throw(exit{})
		runtime.Goexit()
		panic("unreachable")
	case n < 85: // hangs until its context ends
		<-ctx.Done()
		if rnd.IntN(4) == 0 {
			return 7, nil
		}
		return -9, []error{ctx.Err(), context.Cause(ctx), errDown}[rnd.IntN(3)]
	case n < 90: // ignores its context
		d := time.Duration(rnd.Int64N(int64(40 * u)))
		c.deafUntil(time.Now().Add(d))
		<-time.After(d)
		if rnd.IntN(2) == 0 {
			return 8, nil
		}
		return -10, errDown
	case n < 96 && c.stage == w.outer:
		return w.inner.call(ctx, rnd)
	default:
		return -11, &retry.Error{Attempts: 3, Reason: retry.AttemptsExhausted, Last: errDown}
	}
}

// exit stands for runtime.Goexit.
type exit struct{}

func obeying(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
