package pipeline_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// teller is a rule that writes down also what it is peeked and hinted.
type teller struct {
	rule
	peek func() error
}

func (g *teller) Peek(context.Context) error {
	g.log.add("peek " + g.name)
	if g.peek != nil {
		return g.peek()
	}
	return nil
}

func (g *teller) Hint(_ context.Context, wait time.Duration) {
	g.log.add(fmt.Sprintf("hint %s %v", g.name, wait))
}

func (j *journal) guard(name string) *teller { return &teller{rule: rule{name: name, log: j}} }

// payer is a retry budget that writes down what it is told.
type payer struct {
	log   *journal
	empty bool
}

func (p *payer) Deposit() { p.log.add("deposit") }
func (p *payer) Reserve() (budget.Reservation, bool) {
	p.log.add("reserve")
	return p, !p.empty
}
func (p *payer) Commit() { p.log.add("commit") }
func (p *payer) Cancel() { p.log.add("cancel") }

// observe writes events down.
func (j *journal) observe(_ context.Context, e pipeline.Event) { j.add(e.Kind.String()) }

// watched is a pipeline whose every step is written down.
func (j *journal) watched(change ...func(*retry.Config)) pipeline.Builder {
	change = append(change, func(c *retry.Config) {
		c.Budget = &payer{log: j}
		c.OnRetry = func(context.Context, retry.Scheduled) { j.add("OnRetry") }
	})
	return pipeline.For("p").Retry(steady(change...)).Cooldown(j.guard("cooldown")).Breaker(j.guard("breaker")).
		RateLimit(j.guard("ratelimit")).Bulkhead(j.guard("bulkhead")).Observe(j.observe)
}

// Section 3, row 11: settle in reverse order, then attempt event, hint to the cooldown, peek, budget, sleep.
func TestWhatHappensBetweenTwoAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		began := time.Now()
		runs := 0
		_, err := pipeline.Do(t.Context(), j.watched().MustBuild(), func(context.Context) (int, error) {
			j.add(fmt.Sprintf("fn at %v", time.Since(began)))
			if runs++; runs == 1 {
				return 0, &later{wait: 3 * time.Second}
			}
			return 1, nil
		})
		require.NoError(t, err)
		require.Equal(t, []string{
			"call_started",
			"acquire cooldown", "acquire breaker", "acquire ratelimit", "acquire bulkhead", "deposit", "fn at 0s",
			"settle bulkhead ignored", "settle ratelimit ignored", "settle breaker ignored", "settle cooldown ignored",
			"attempt_finished",
			"hint cooldown 3s",
			"peek cooldown", "peek breaker",
			"reserve", "OnRetry", "retry_scheduled",
			"acquire cooldown", "acquire breaker", "acquire ratelimit", "acquire bulkhead", "commit", "fn at 3s",
			"settle bulkhead returned", "settle ratelimit returned", "settle breaker returned", "settle cooldown returned",
			"attempt_finished",
			"call_finished",
		}, j.lines)
	})
}

// The same between a refusal that is retried and the next try: nothing is hinted, since a refusal is no word of the other side's.
func TestWhatHappensAfterARefusalThatIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		full, asked := j.guard("bulkhead"), 0
		full.acquire = func(context.Context) error {
			if asked++; asked == 2 {
				return &no{wait: time.Second}
			}
			return nil
		}
		_, err := pipeline.Do(t.Context(), j.watched().Bulkhead(full).RetryOnBulkheadFull().MustBuild(), fails(1, errDown))
		require.NoError(t, err)
		first := []string{
			"call_started", "acquire cooldown", "acquire breaker", "acquire ratelimit", "acquire bulkhead", "deposit",
			"settle bulkhead returned", "settle ratelimit returned", "settle breaker returned", "settle cooldown returned",
			"attempt_finished", "peek cooldown", "peek breaker", "reserve", "OnRetry", "retry_scheduled",
		}
		refused := []string{
			"acquire cooldown", "acquire breaker", "acquire ratelimit", "acquire bulkhead",
			"settle ratelimit not_run", "settle breaker not_run", "settle cooldown not_run",
			"rejected", "peek cooldown", "peek breaker", "OnRetry", "retry_scheduled", // the token is kept
		}
		require.Equal(t, append(first, refused...), j.lines[:len(first)+len(refused)])
	})
}

// A peek that refuses comes before the budget is asked and before OnRetry is told: a retry that is never sent is no retry.
func TestARefusedPeekTellsNobodyOfARetry(t *testing.T) {
	for name, layer := range map[string]func(pipeline.Builder, leaf.Guard) pipeline.Builder{
		"cooldown": pipeline.Builder.Cooldown, "breaker": pipeline.Builder.Breaker,
	} {
		var j journal
		g := j.guard(name)
		g.peek = func() error { return &no{} }
		require.Error(t, layer(j.watched(), g).MustBuild().Run(t.Context(), func(context.Context) error { return errDown }))
		require.NotContains(t, j.lines, "reserve", name)
		require.NotContains(t, j.lines, "OnRetry", name)
		require.NotContains(t, j.lines, "retry_scheduled", name)
		require.Contains(t, j.lines, "rejected", name)
	}
}

// The hint is given also where no retry follows: others will want to know.
func TestTheHintIsGivenWhereNobodyRetries(t *testing.T) {
	for _, b := range []pipeline.Builder{
		pipeline.For("no retry"), pipeline.For("one attempt").Retry(steady(func(c *retry.Config) { c.MaxAttempts = 1 })),
		pipeline.For("never retried").Retry(steady(func(c *retry.Config) { c.RetryIf = func(error) bool { return false } })),
		pipeline.For("too long").Retry(steady(func(c *retry.Config) { c.MaxRetryAfter = time.Second })),
	} {
		cool := &peeking{}
		require.Error(t, b.Cooldown(cool).MustBuild().Run(t.Context(), func(context.Context) error { return &later{wait: time.Minute} }))
		require.Equal(t, []time.Duration{time.Minute}, cool.hint, b)
	}
}

// Row 11, at the end: outer breaker, OnRejected, end event, fallback.
func TestWhatHappensAtTheEnd(t *testing.T) {
	var j journal
	full := j.guard("bulkhead")
	full.acquire = func(context.Context) error { return &no{} }
	p := j.watched().BreakerOutsideRetry().Bulkhead(full).
		OnRejected(func(context.Context, error) error { j.add("OnRejected"); return nil }).MustBuild()
	v, err := pipeline.DoOr(t.Context(), p, fails(0, nil), func(context.Context, error) (int, error) { j.add("fallback"); return 9, nil })
	require.NoError(t, err)
	require.Equal(t, 9, v)
	require.Equal(t, []string{
		"call_started", "acquire breaker", "acquire cooldown", "acquire ratelimit", "acquire bulkhead",
		"settle ratelimit not_run", "settle cooldown not_run", "rejected",
		"settle breaker not_run", "OnRejected", "call_finished", "fallback",
	}, j.lines)
}

// The same where fn ran: the loop's stop is told before the call's end, and both before the fallback.
func TestWhatHappensAtTheEndOfARetriedCall(t *testing.T) {
	var j journal
	p := j.watched(func(c *retry.Config) { c.MaxAttempts = 1 }).BreakerOutsideRetry().MustBuild()
	_, err := pipeline.DoOr(t.Context(), p, fails(9, errDown), func(_ context.Context, err error) (int, error) { j.add("fallback"); return 0, err })
	require.ErrorIs(t, err, errDown)
	require.Equal(t, []string{"attempt_finished", "settle breaker returned", "retry_stopped", "call_finished", "fallback"}, j.lines[len(j.lines)-5:])
}

// Section 2: what the retry's own RetryAfter finds feeds the cooldown, and nothing else does.
func TestTheRetrysOwnRetryAfterFeedsTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cool := &peeking{}
		r := steady(func(c *retry.Config) {
			c.RetryAfter = func(err error) (time.Duration, bool) {
				if err == errDown {
					return 7 * time.Second, true
				}
				return 0, false
			}
		})
		p := pipeline.For("p").Retry(r).Cooldown(cool).MustBuild()
		require.Equal(t, 7*time.Second, in(func() {
			_, err := pipeline.Do(t.Context(), p, fails(1, errDown))
			require.NoError(t, err)
		}))
		require.Equal(t, []time.Duration{7 * time.Second}, cool.hint)

		cool.hint = nil
		require.Equal(t, 100*time.Millisecond, in(func() {
			_, err := pipeline.Do(t.Context(), p, fails(1, &later{wait: time.Second}))
			require.NoError(t, err)
		}), "the function replaces the error's own word")
		require.Empty(t, cool.hint)
	})
}

// A negative or zero wait, or one that is denied, is no hint.
func TestNoWaitIsNoHint(t *testing.T) {
	for _, found := range []struct {
		wait time.Duration
		ok   bool
	}{{-time.Second, true}, {0, true}, {time.Second, false}} {
		cool := &peeking{}
		r := steady(func(c *retry.Config) {
			c.MaxAttempts = 1
			c.RetryAfter = func(error) (time.Duration, bool) { return found.wait, found.ok }
		})
		require.Error(t, pipeline.For("p").Retry(r).Cooldown(cool).MustBuild().Run(t.Context(), func(context.Context) error { return errDown }))
		require.Empty(t, cool.hint)
	}
}
