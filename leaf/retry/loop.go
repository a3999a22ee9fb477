package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/reading"
	"github.com/fairlead/fairlead/internal/refusal"
)

// Loop is one call's retry loop: a value, for one goroutine. Do and the pipeline drive the same one:
//
//	l, err := r.Begin(ctx, safety)
//	if err != nil { return zero, err }
//	defer l.End()
//	for {
//		l.Sent()
//		v, err := fn(ctx)
//		if err == nil { return v, nil }
//		if final := l.Judge(ctx, err); final != nil { return zero, final }
//		// a pipeline peeks its guards here: final := l.Refused(ctx, refusal, false), or l.NotBefore(ctx, wait)
//		if final := l.Reserve(ctx); final != nil { return zero, final }
//		// a pipeline tells its observer l.Delay() here
//		if final := l.Sleep(ctx); final != nil { return zero, final }
//	}
//
// final is always the call's result; nil = go on. ctx is the call's own context (with a pipeline's total timeout), never an
// attempt's. While fn has never run, a stop is the last refusal itself: nothing happened yet.
type Loop struct {
	plan    *plan
	held    budget.Reservation // for the retry that was decided on; nil = none
	last    error              // fn's last real failure
	refusal error              // a guard's, after last
	began   int64              // read only where MaxElapsed or a declaration needs it
	valid   time.Duration      // of the declaration, from began; 0 = none, or for ever
	delay   time.Duration      // before the next attempt
	above   time.Duration      // the upward jitter of a wait that is asked for
	wait    time.Duration      // what was asked for; 0 = nothing
	runs    int                // of fn
	tries   int                // runs, and refusals that were retried
	reason  Reason
}

// Begin starts a loop. Its error says why nothing may be sent: nothing bounds an Unlimited loop, a Strict policy without a
// declared safety (an [*Error] with reason UnsafeReplay and 0 attempts), or ctx is done (ctx's own error, matching its Cause).
func (r *Retry) Begin(ctx context.Context, s Safety) (Loop, error) {
	var l Loop
	err := r.BeginIn(ctx, s, &l)
	return l, err
}

// BeginIn is Begin in a zero Loop that the caller holds: copying one is a tenth of what a call costs. On an error l stays zero.
func (r *Retry) BeginIn(ctx context.Context, s Safety, l *Loop) error {
	p := r.plan.Load()
	if ctx.Err() != nil {
		return ended.Err(ctx)
	}
	if p.MaxAttempts == Unlimited && p.MaxElapsed == 0 {
		if _, ok := ctx.Deadline(); !ok {
			return fmt.Errorf("%s: nothing bounds its unlimited attempts: want a deadline of ctx or MaxElapsed", check.Called("retry", p.Name))
		}
	}
	if p.Strict && p.MaxAttempts != 1 && !s.declared() {
		return &Error{Reason: UnsafeReplay, name: p.Name}
	}
	l.plan = p
	if s.validFor < longest {
		l.valid = s.validFor
	}
	if l.valid > 0 || p.MaxElapsed > 0 {
		l.began = p.clock.Now()
	}
	return nil
}

// Sent: fn is about to run. The first deposits into the budget, a later one commits its reservation.
func (l *Loop) Sent() {
	if l.runs == 0 && l.plan.Budget != nil {
		l.plan.Budget.Deposit()
	}
	l.sent()
}

// SentAt is Sent for a caller who has read real time just now, when the attempt began: the pipeline, which shares the
// reading with others.
func (l *Loop) SentAt(now reading.Instant) {
	if l.runs == 0 && l.plan.Budget != nil {
		if b, ok := l.plan.Budget.(*budget.Ratio); ok {
			b.DepositAt(now)
		} else {
			l.plan.Budget.Deposit()
		}
	}
	l.sent()
}

func (l *Loop) sent() {
	l.runs++
	l.tries++
	if h := l.held; h != nil {
		l.held = nil
		h.Commit()
	}
}

// Judge decides on fn's failure: its kind, the attempts left, the safety's validity, the delay and whether it fits. It waits for
// nothing and takes no token.
//
// What is never retried by its kind comes back unchanged, whether ctx has ended or not. Otherwise a ctx that has ended
// makes an [*Error] with reason ContextEnded that matches ctx's Err and Cause. In it Last is fn's failure; where that
// is the caller's own context error and an earlier attempt really failed, Last is the earlier failure and Stop has both.
func (l *Loop) Judge(ctx context.Context, err error) (final error) {
	p := l.plan
	if !refusal.Plain(err) {
		if refusal.Is(err) {
			if l.runs == 1 {
				return err
			}
			wait, _ := refusal.LowerBound(err)
			return l.stop(Refused, err, wait, wait)
		}
		if refusal.Nested(err) || isPermanent(err) || !p.RetryNested && isNested(err) {
			return err
		}
	}
	over := ended.Err(ctx)
	if over != nil && (ended.Is(err, ctx.Err()) || ended.Is(err, context.Cause(ctx))) {
		return l.stop(ContextEnded, l.callersOwn(over, err), 0, 0)
	}
	if p.StopIf != nil && p.StopIf(err) || p.RetryIf != nil && !p.RetryIf(err) {
		return err
	}
	l.last, l.refusal = err, nil
	if over != nil {
		return l.stop(ContextEnded, over, 0, 0)
	}
	if reason, wait, asked := l.decide(ctx, p.asked(err)); reason != 0 {
		return l.stop(reason, nil, wait, asked)
	}
	return nil
}

// callersOwn keeps an earlier, real failure as Last, and err in Stop.
func (l *Loop) callersOwn(over, err error) (stop error) {
	if l.last == nil {
		l.last = err
		return over
	}
	if ended.Is(over, err) { // it would add nothing
		return over
	}
	return fmt.Errorf("%w: %w", over, err)
}

func isNested(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// NotBefore raises the delay to at least wait: a cooldown asks for it, before the sleep or after it. No attempt is consumed and a
// reservation is kept. A wait over MaxRetryAfter or the time left is a deferral. wait <= 0 changes nothing.
func (l *Loop) NotBefore(ctx context.Context, wait time.Duration) (final error) {
	if wait <= 0 {
		return nil
	}
	if reason, wait, asked := l.raise(ctx, wait); reason != 0 {
		return l.stop(reason, nil, wait, asked)
	}
	return nil
}

// Refused: a guard refused before fn ran. retried: that guard's refusals are retried; then it counts against MaxAttempts, and
// the refusal's wait (never a bulkhead's) is the lower bound of the delay. final is the refusal itself while fn has never run,
// else an [*Error] with reason Refused, and the refusal's wait or the one that the failure before it asked for, whichever is longer;
// where ctx ended the guard's wait and refusal is ctx's error, with ContextEnded.
func (l *Loop) Refused(ctx context.Context, err error, retried bool) (final error) {
	l.refusal = err
	first := l.tries == 0
	reason, wait := Refused, time.Duration(0)
	if over := ended.Err(ctx); over != nil && !refusal.Is(err) {
		reason = ContextEnded
		if !ended.Is(err, over) {
			err = fmt.Errorf("%w: %w", over, err)
		}
		retried = false
	} else {
		wait, _ = refusal.LowerBound(err)
		retried = retried && over == nil
	}
	if retried {
		l.tries++
		why, _, _ := l.decide(ctx, wait)
		if why == 0 {
			return nil
		}
		if l.runs == 0 {
			reason = why // final is the refusal anyway: this tells the observer more
		}
	} else if first {
		reason = 0 // there was nothing to retry
	}
	return l.stop(reason, err, wait, wait)
}

// Reserve takes a token for the retry that was decided on (once per retry) and tells OnRetry. A retry that a guard refused
// after its token was taken keeps it. While fn has never run it takes none: what will be sent is a first attempt.
func (l *Loop) Reserve(ctx context.Context) (final error) {
	p := l.plan
	if p.Budget != nil && l.runs > 0 && l.held == nil {
		held, ok := p.Budget.Reserve()
		if !ok {
			return l.stop(RetryBudgetExhausted, nil, 0, 0)
		}
		l.held = held
	}
	if p.OnRetry != nil {
		err := l.last
		if l.refusal != nil {
			err = l.refusal
		}
		p.OnRetry(ctx, Scheduled{Retry: l.tries, Delay: l.delay, Err: err})
	}
	return nil
}

// Delay is what Sleep will sleep.
func (l *Loop) Delay() time.Duration { return l.delay }

// Wait is the part of Delay that was asked for, by the other side, a cooldown or a refusal; 0 = none. Of a loop that has
// stopped, what was asked for; 0 where a delay of our own is what did not fit.
func (l *Loop) Wait() time.Duration { return l.wait }

// Sleep waits, and gives the token back when ctx ends first. No timer at zero delay. Afterwards a ctx that is done wins,
// and neither ctx's deadline nor the declaration may have passed meanwhile.
func (l *Loop) Sleep(ctx context.Context) (final error) {
	slept := l.delay
	l.delay, l.wait = 0, 0 // a cooldown that asks for more after the sleep starts from here
	if err := budget.Sleep(ctx, l.plan.Clock, slept); err != nil {
		return l.ended(err)
	}
	if slept == 0 {
		return l.Ready() // OnRetry may have taken its time
	}
	if left, ok := l.plan.clock.Left(ctx); ok && left == 0 {
		return l.stop(RetryDelayExceedsDeadline, nil, slept, 0)
	}
	if l.valid > 0 && l.elapsed() > l.valid {
		return l.stop(UnsafeReplay, nil, 0, 0)
	}
	return nil
}

// Ready: the guards have admitted another run. Final where the declaration expired meanwhile.
func (l *Loop) Ready() (final error) {
	if l.runs > 0 && l.valid > 0 && l.elapsed() > l.valid {
		return l.stop(UnsafeReplay, nil, 0, 0)
	}
	return nil
}

// End gives back a reservation that was never sent. Also for a loop that panics.
func (l *Loop) End() {
	if h := l.held; h != nil {
		l.held = nil
		h.Cancel()
	}
}

// Attempts is how many times fn has run.
func (l *Loop) Attempts() int { return l.runs }

// Reason is why the loop stopped; the zero Reason while it has not, and after a failure that is not retried by its kind.
func (l *Loop) Reason() Reason { return l.reason }

// decide chooses the delay before the next attempt, or says why there is none.
func (l *Loop) decide(ctx context.Context, asked time.Duration) (why Reason, wait, askedFor time.Duration) {
	p := l.plan
	if p.MaxAttempts != Unlimited && l.tries >= p.MaxAttempts {
		return AttemptsExhausted, asked, asked
	}
	l.delay, l.above = p.delay(l.tries)
	l.wait = 0
	return l.raise(ctx, asked)
}

// raise makes the delay at least asked, spread upwards, or says why it does not fit. The jitter is cut where the sum would
// not fit, the wait never.
func (l *Loop) raise(ctx context.Context, asked time.Duration) (why Reason, wait, askedFor time.Duration) {
	p := l.plan
	if asked > p.MaxRetryAfter {
		return RetryAfterExceedsMaximumDelay, asked, asked
	}
	least := max(l.delay, asked)
	room, why := l.room(ctx, least)
	switch {
	case why == 0:
	case asked == 0 || asked <= room: // our own delay is what does not fit
		return why, least, asked
	case why == RetryDelayExceedsDeadline:
		return RetryAfterExceedsDeadline, asked, asked
	default:
		return why, asked, asked
	}
	l.wait = max(l.wait, asked)
	if asked > 0 {
		l.delay = max(least, min(plus(asked, l.above), p.MaxRetryAfter, room))
	}
	return 0, 0, 0
}

// room is the longest delay that fits ctx's deadline, MaxElapsed and the declaration, in this order; why is the first that
// least does not fit. The clock is read only for those that there are.
func (l *Loop) room(ctx context.Context, least time.Duration) (room time.Duration, why Reason) {
	p := l.plan
	room = longest
	if left, ok := p.clock.Left(ctx); ok {
		if room = left - max(p.Reserve, 1); least > room {
			return room, RetryDelayExceedsDeadline
		}
	}
	if p.MaxElapsed > 0 || l.valid > 0 {
		elapsed := l.elapsed()
		if p.MaxElapsed > 0 {
			if room = min(room, p.MaxElapsed-elapsed); least > room {
				return room, MaxElapsedExceeded
			}
		}
		if l.valid > 0 {
			if room = min(room, l.valid-elapsed); least > room {
				return room, UnsafeReplay
			}
		}
	}
	return room, 0
}

// elapsed is the time since Begin; a clock that has jumped back begins anew.
func (l *Loop) elapsed() time.Duration {
	now := l.plan.clock.Now()
	l.began = min(l.began, now)
	return time.Duration(now - l.began)
}
