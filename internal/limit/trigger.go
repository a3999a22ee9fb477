package limit

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
)

// trigger lets an injected clock end a context with DeadlineExceeded, which package context itself does in real time only.
//
// It embeds a context that the limit's timer cancels with the limit's cause, and that the parent cancels with its own:
// what came first is on record there. The context that a Ctx hands out derives from the trigger, and package context asks
// a parent that has an AfterFunc method to call back: pull then cancels it with the trigger's Err and Cause. Being a plain
// cancelled context of package context, it needs no goroutine for its own children.
type trigger struct {
	context.Context // the record
	cause           error
	cut             func() // cancels what derives from the trigger; idempotent
}

// never tells package context that a trigger can end, and that it should ask for AfterFunc. Nobody waits for it.
var never = make(chan struct{})

func (t *trigger) Done() <-chan struct{} { return never }

func (t *trigger) Err() error {
	err := t.Context.Err()
	if err != nil && context.Cause(t.Context) == t.cause {
		return context.DeadlineExceeded
	}
	return err
}

// AfterFunc is called by context.WithCancel, once, before anybody else knows the trigger.
func (t *trigger) AfterFunc(f func()) (stop func() bool) {
	t.cut = f
	return func() bool { return true }
}

// pull passes on what the record says.
func (t *trigger) pull() {
	if t.Context.Err() != nil {
		t.cut()
	}
}

// triggered arms a limit on an injected clock.
func triggered(parent context.Context, clk clock.Clock, left time.Duration, cause error) armed {
	record, end := context.WithCancelCause(parent)
	t := &trigger{Context: record, cause: cause}
	ctx, cancel := context.WithCancel(t)
	unwatch := context.AfterFunc(record, t.pull)
	stop := clk.AfterFunc(left, func() {
		end(cause)
		t.pull()
	})
	return armed{Context: ctx, cause: cause, trigger: t, cancel: func() {
		unwatch()
		stop()
		cancel()
		end(nil)
	}}
}
