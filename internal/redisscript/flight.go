package redisscript

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
)

// seats is how many calls of one store may be under way, those that were left behind included.
const seats = 64

// grace is how long a call that ran out of budget may take to say that it was still waiting for a connection: then it is
// certain that the script did not run.
const grace = 3 * time.Millisecond

var (
	errCrowded      = errors.New("64 earlier calls have not come back")
	errNoSeat       = errors.New("64 calls are under way and none came back in time")
	errNoConnection = errors.New("no connection in time")
	errGoexit       = errors.New("a hook of the redis client called runtime.Goexit")
)

// leftError is a call whose fate nobody knows: its caller left.
type leftError struct {
	after time.Duration
	ctx   error // the caller's own; nil = the store's timeout ran out
}

func (e *leftError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// Timeout is what net.Error asks for.
func (e *leftError) Timeout() bool { return true }

// flights counts the calls under way.
type flights struct {
	seats  chan struct{}
	behind atomic.Int32 // of them, those whose caller has left
}

func (f *flights) init() { f.seats = make(chan struct{}, seats) }

// Who gets a flight's result: whoever moves it first.
const (
	aboard int32 = iota
	landed       // the caller takes the result
	left         // the caller is gone
)

type flight struct {
	fate  atomic.Int32
	done  chan struct{} // closed after landed
	reply Reply
	err   error
}

// fly runs c in a goroutine of its own, because go-redis looks at no deadline of ctx while it reads (unless told to, and then
// it closes a connection per timeout), and leaves it there when the budget is over.
//
// A goroutine per call, and no pool of workers: BenchmarkGoroutine against BenchmarkWorker is 27 µs against 24 for a round trip on
// loopback, which is not worth goroutines that outlive their calls, and the bubble (testing/synctest) that they were born in.
func (s *Store) fly(ctx context.Context, c Call) (Reply, error) {
	budget := time.NewTimer(s.opts.Timeout)
	defer budget.Stop()
	if err := s.seat(ctx, budget); err != nil {
		return Reply{}, err
	}
	if !s.begin() {
		<-s.flights.seats
		return Reply{}, errClosed
	}
	f := &flight{done: make(chan struct{})}
	// Cancelled, but without a deadline: it ends a wait for a connection, and never cuts one that is in use.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go s.pilot(inner, cancel, f, c)
	select {
	case <-f.done:
		return f.reply, f.err
	case <-ctx.Done():
		cancel()
		return s.leave(f, &leftError{ctx: ended.Err(ctx)})
	case <-budget.C:
	}
	cancel()
	budget.Reset(grace)
	select {
	case <-f.done:
		return f.cancelled(nil)
	case <-ctx.Done():
		return s.leave(f, &leftError{ctx: ended.Err(ctx)})
	case <-budget.C:
		return s.leave(f, &leftError{after: s.opts.Timeout})
	}
}

// seat takes a seat, which the flight gives back.
func (s *Store) seat(ctx context.Context, budget *time.Timer) error {
	select {
	case s.flights.seats <- struct{}{}:
		return nil
	default:
	}
	if s.flights.behind.Load() >= seats {
		return errCrowded
	}
	select {
	case s.flights.seats <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &leftError{ctx: ended.Err(ctx)}
	case <-budget.C:
		return errNoSeat
	}
}

// leave gives the flight up, unless it has landed in this instant.
func (s *Store) leave(f *flight, why *leftError) (Reply, error) {
	s.flights.behind.Add(1) // first: the pilot takes it back
	if f.fate.CompareAndSwap(aboard, left) {
		return Reply{}, why
	}
	s.flights.behind.Add(-1)
	<-f.done
	return f.cancelled(why.ctx)
}

// cancelled is the result of a flight that landed after its context was cancelled; ctx is the caller's own error, if it ended.
func (f *flight) cancelled(ctx error) (Reply, error) {
	switch {
	case f.err == nil:
		return f.reply, nil
	case ctx != nil:
		return Reply{}, &leftError{ctx: ctx}
	case errors.Is(f.err, context.Canceled): // by us: go-redis asks ctx only before it writes
		return Reply{}, errNoConnection
	}
	return Reply{}, f.err
}

// pilot is the goroutine of one call.
func (s *Store) pilot(ctx context.Context, cancel context.CancelFunc, f *flight, c Call) {
	defer s.end()
	defer cancel()
	f.err = errGoexit
	defer s.land(f, c)
	f.reply, f.err = s.guarded(ctx, f, c)
}

// land gives the result to whoever it belongs to.
func (s *Store) land(f *flight, c Call) {
	<-s.flights.seats
	if f.fate.CompareAndSwap(aboard, landed) {
		close(f.done)
		return
	}
	s.flights.behind.Add(-1)
	if f.err == nil {
		s.health.hint()
		if c.Late != nil {
			c.Late(f.reply)
		}
	}
}

// guarded sends the script, a second time where that is safe and called for.
func (s *Store) guarded(ctx context.Context, f *flight, c Call) (Reply, error) {
	send := func() (Reply, error) { return eval(ctx, s.client, c.Script, s.key, s.now(), c.Args) }
	reply, err := safely(send)
	if err == nil || !c.Resend || !network(err) || classify(err).notExecuted || f.fate.Load() != aboard {
		return reply, err
	}
	return resent(safely(send))
}

// safely makes an error of a panic in a hook of the user's client, which would end the process on a goroutine of ours.
func safely(f func() (Reply, error)) (reply Reply, err error) {
	returned := false
	defer func() {
		if v := recover(); !returned && v != nil {
			reply, err = Reply{}, fmt.Errorf("the redis client panicked: %v", v)
		}
	}()
	reply, err = f()
	returned = true
	return reply, err
}

// resent is the result of a second sending: where it was certainly not executed, the first one still may have been.
func resent(reply Reply, err error) (Reply, error) {
	if err != nil && classify(err).notExecuted {
		return reply, fmt.Errorf("sent twice: %w", unknown{err})
	}
	return reply, err
}

// unknown hides from classify what an error says of its own sending.
type unknown struct{ err error }

func (e unknown) Error() string { return e.err.Error() }
