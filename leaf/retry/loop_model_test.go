package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/stretchr/testify/require"
)

// driven is one call of the real Loop, driven as a pipeline drives it.
type driven struct {
	l       *Loop
	ctx     context.Context
	start   time.Time
	errs    []error // what each try's error was
	ran     []time.Duration
	slept   []time.Duration
	success int
}

// drive gives the call's result; nil = success.
func (d *driven) drive(tries []try) error {
	defer d.l.End()
	for i, t := range tries {
		if t.refused {
			d.errs[i] = refusalOf(t)
			if final := d.l.Refused(d.ctx, d.errs[i], t.retried); final != nil {
				return final
			}
			if final := d.wait(0); final != nil {
				return final
			}
			continue
		}
		d.l.Sent()
		d.ran = append(d.ran, time.Since(d.start))
		<-time.After(t.took)
		if t.kind == "success" {
			d.success = i
			return nil
		}
		d.errs[i] = d.errorOf(i, t)
		if final := d.l.Judge(d.ctx, d.errs[i]); final != nil {
			return final
		}
		if final := d.l.NotBefore(d.ctx, t.before); final != nil {
			return final
		}
		if t.peeked {
			if final := d.l.Refused(d.ctx, &refused{wait: t.hint}, false); final != nil {
				return final
			}
		}
		if final := d.wait(t.after); final != nil {
			return final
		}
	}
	return nil
}

func (d *driven) wait(after time.Duration) error {
	if final := d.l.Reserve(d.ctx); final != nil {
		return final
	}
	if final := d.sleep(); final != nil || after == 0 {
		return final
	}
	if final := d.l.NotBefore(d.ctx, after); final != nil {
		return final
	}
	return d.sleep()
}

func (d *driven) sleep() error {
	d.slept = append(d.slept, d.l.Delay())
	return d.l.Sleep(d.ctx)
}

func refusalOf(t try) error {
	if t.full {
		return &fullUp{refused{wait: t.hint}}
	}
	return &refused{wait: t.hint}
}

func (d *driven) errorOf(i int, t try) error {
	switch t.kind {
	case "throttled":
		return &throttled{t.hint}
	case "rejection":
		return &refused{wait: t.hint}
	case "permanent":
		return Permanent(fmt.Errorf("permanent %d", i))
	case "nested":
		return &Error{Attempts: i, Reason: AttemptsExhausted, Last: fmt.Errorf("nested %d", i)}
	case "ctx":
		if d.ctx.Err() != nil {
			return d.ctx.Err()
		}
	case "stopped":
		return fmt.Errorf("%w %d", errStopped, i)
	}
	return fmt.Errorf("%s %d", t.kind, i)
}

var errStopped = errors.New("stopped")

func realConfig(c modelConfig, pool *budget.Tokens) Config {
	cfg := Config{
		Name: "model", MaxAttempts: c.attempts, MaxDelay: c.maxDelay, MaxRetryAfter: c.maxAfter, MaxElapsed: c.elapsed,
		Reserve: c.reserve, RetryNested: c.nested, ReturnLast: c.bare, NoBudget: c.noBudget,
		Backoff: func(k int) time.Duration { return c.ladder[min(k, len(c.ladder))-1] },
		StopIf:  func(err error) bool { return errors.Is(err, errStopped) },
		Rand:    func() float64 { return float64(c.u4) / 4 },
		Jitter: map[string]Jitter{"full": Full, "equal": Equal, "proportional": Proportional(0.5),
			"additive": Additive(8 * time.Millisecond), "none": None}[c.jitter],
	}
	if !c.noBudget {
		cfg.Budget = pool
	}
	return cfg
}

// checkFinal compares what the call returned with what the model says it should be.
func (d *driven) checkFinal(t *testing.T, want modelResult, final error) {
	switch want.final {
	case "success":
		require.NoError(t, final)
		require.Equal(t, want.try, d.success)
		return
	case "unchanged", "refusal", "last":
		require.True(t, d.errs[want.try] == final, "%v", final)
		require.Equal(t, want.reason, d.l.Reason())
		return
	}
	stop := stopOf(t, final)
	require.Equal(t, want.reason, stop.Reason)
	require.Equal(t, want.reason, d.l.Reason())
	require.Equal(t, want.runs, stop.Attempts)
	require.Equal(t, want.wait, stop.Wait)
	asked, _ := stop.RetryAfter()
	require.Equal(t, want.asked, asked)
	if want.try < 0 {
		require.NoError(t, stop.Last)
	} else {
		require.True(t, d.errs[want.try] == stop.Last, "%v", stop.Last)
	}
	if want.stopBy >= 0 {
		require.True(t, refusal.Is(stop.Stop), "%v", stop.Stop)
	}
	if want.reason == ContextEnded {
		require.ErrorIs(t, final, d.ctx.Err())
		require.ErrorIs(t, final, context.Cause(d.ctx))
	}
}

// call makes one call, and says how it should have gone.
func (c modelConfig) call(t *testing.T, tries []try) modelResult {
	pool := budget.MustNewTokens(budget.TokenConfig{Capacity: c.tokens, Hold: time.Hour})
	r := mustNew(t, realConfig(c, pool))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if c.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.deadline)
		defer stop()
	}
	if c.cancel > 0 {
		defer time.AfterFunc(c.cancel, func() { cancel(errShutdown) }).Stop()
	}
	var safety Safety
	if c.valid > 0 {
		safety = ReadOnly("model", c.valid)
	}
	l, err := r.Begin(ctx, safety)
	require.NoError(t, err)
	d := &driven{l: &l, ctx: ctx, start: time.Now(), errs: make([]error, len(tries))}
	final := d.drive(tries)

	want := (&model{c: c}).run(tries)
	d.checkFinal(t, want, final)
	require.Equal(t, want.at, time.Since(d.start), "when it returned")
	require.Equal(t, want.ran, d.ran, "when fn ran")
	require.Equal(t, want.slept, d.slept, "what was slept")
	require.Equal(t, want.runs, l.Attempts())
	require.Equal(t, want.left, pool.Balance(), "tokens")
	return want
}

func TestTheLoopAgainstTheNaiveModel(t *testing.T) {
	rng := newRand(t)
	reasons, finals := map[Reason]int{}, map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		for done := 0; done < *ops; {
			c, tries := randomModel(rng)
			want := c.call(t, tries)
			reasons[want.reason]++
			finals[want.final]++
			done += want.runs + len(want.slept)
		}
	})
	for r := range Reason(UnsafeReplay + 1) {
		require.Positive(t, reasons[r], "%q was never met", r)
	}
	for _, final := range []string{"success", "unchanged", "refusal", "last", "stop"} {
		require.Positive(t, finals[final], "%s was never met", final)
	}
}
