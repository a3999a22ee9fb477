package pipelinetest

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/jonboulle/clockwork"
)

// Step is what a scripted callback does in one run. It is a value: its methods return changed copies. The zero Step returns
// the zero value and no error.
type Step struct {
	kind  stepKind
	value any // to return, or to panic with
	err   error

	after time.Duration
	deaf  bool
	many  bool // Times was called
	times int  // in a script, what is left of them
}

type stepKind uint8

const (
	returns stepKind = iota
	fails
	blocks
	panics
)

// Return is a run that succeeds with v, which has to be a T of the script's.
func Return[T any](v T) Step { return Step{kind: returns, value: v} }

// Fail is a run that returns err and the zero value. A nil err is a run that succeeds with the zero value.
func Fail(err error) Step { return Step{kind: fails, err: err} }

// Block is a run that hangs until its context is done, and then returns an error that matches its Err and its Cause, as
// well-behaved I/O does. Under a context that never ends it hangs for ever: a bubble then reports the deadlock.
func Block() Step { return Step{kind: blocks} }

// Panic is a run that panics with v.
func Panic(v any) Step { return Step{kind: panics, value: v} }

// After is s, d later. It obeys its context as Block does: when that ends first, the run ends then, with the context's error.
// d is from 0, on the script's clock; the last of several After and Late counts.
func (s Step) After(d time.Duration) Step {
	s.after, s.deaf = d, false
	return s
}

// Late is s, d later, whatever its context says: a callback that does not obey it, for DoDetached and for results that come
// after the deadline. d is as in After.
func (s Step) Late(d time.Duration) Step {
	s.after, s.deaf = d, true
	return s
}

// Times is s in n runs, one after the other; n from 1, math.MaxInt = for ever. It costs no more than one run does.
func (s Step) Times(n int) Step {
	s.times, s.many = n, true
	return s
}

// String is the step as it is written in Go, nearly.
func (s Step) String() string {
	var text string
	switch s.kind {
	case fails:
		text = fmt.Sprintf("Fail(%v)", s.err)
	case blocks:
		text = "Block()"
	case panics:
		text = fmt.Sprintf("Panic(%v)", s.value)
	default:
		text = fmt.Sprintf("Return(%v)", s.value)
	}
	switch {
	case s.deaf:
		text += fmt.Sprintf(".Late(%v)", s.after)
	case s.after != 0:
		text += fmt.Sprintf(".After(%v)", s.after)
	}
	if s.many {
		text += fmt.Sprintf(".Times(%d)", s.times)
	}
	return text
}

// run is one run; a nil value stands for the zero value.
func (s Step) run(ctx context.Context, clock clockwork.Clock) (value any, err error) {
	waits := ctx
	if s.deaf {
		waits = context.WithoutCancel(ctx)
	}
	if s.after > 0 {
		if err := budget.Sleep(waits, clock, s.after); err != nil {
			return nil, err
		}
	}
	switch s.kind {
	case fails:
		return nil, s.err
	case blocks:
		<-ctx.Done()
		return nil, ended.Err(ctx)
	case panics:
		panic(s.value)
	default:
		return s.value, nil
	}
}
