package main

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// shape is what the full pipelines have in common: three attempts without a pause between them, a breaker, a rate limit that
// is never reached, a bulkhead, and what a group wants besides.
type shape struct {
	rate    bool          // the breaker judges a rate over 10 s instead of failures in a row
	attempt time.Duration // limit of an attempt
	request bool          // under a request's context, which somebody may cancel
	full    bool          // the one slot is taken
	spent   bool          // there is one token an hour
	budget  bool          // retries are paid for from a budget
	observe func(context.Context, pipeline.Event)
}

const (
	attempts    = 3
	row         = 100 // failures in a row that open a circuit
	failureRate = 0.9 // and the rate that does: above that of two failures and a success
	minCalls    = 20
	window      = 10 * time.Second
	perSecond   = 1_000_000
	burst       = 1_000_000_000
	slots       = 1000
	limit       = time.Minute // no attempt takes so long
)

func (s shape) slots() int {
	if s.full {
		return 1
	}
	return slots
}

// context is the caller's.
func (s shape) context() (context.Context, context.CancelFunc) {
	if s.request {
		return context.WithCancel(context.Background())
	}
	return context.Background(), func() {}
}

func fairleadBreaker(rate bool) *breaker.Breaker {
	if rate {
		return breaker.MustNew(breaker.Config{Name: "b", Window: breaker.Time(window), MinCalls: minCalls, FailureRate: failureRate, OpenFor: patience})
	}
	return breaker.MustNew(breaker.Config{Name: "b", Window: breaker.Count(row), FailureCount: row,
		FailureRate: breaker.Off, Consecutive: breaker.Off, OpenFor: patience})
}

func fairleadLimiter(spent bool) *ratelimit.Limiter {
	if spent {
		return ratelimit.MustNew(ratelimit.Config{Name: "r", Rate: 1, Per: patience, Burst: 1})
	}
	return ratelimit.MustNew(ratelimit.Config{Name: "r", Rate: perSecond, Burst: burst})
}

func fairleadRetry(paid bool) *retry.Retry {
	return retry.MustNew(retry.Config{Name: "t", MaxAttempts: attempts, Backoff: retry.Immediate, NoBudget: !paid})
}

func fairleadPipeline(s shape) (*pipeline.Pipeline, *bulkhead.Bulkhead) {
	room := bulkhead.MustNew(bulkhead.Config{Name: "h", MaxConcurrent: s.slots()})
	b := pipeline.For("full").Retry(fairleadRetry(s.budget)).Breaker(fairleadBreaker(s.rate)).RateLimit(fairleadLimiter(s.spent)).Bulkhead(room)
	if s.attempt > 0 {
		b = b.AttemptTimeout(timeout.MustNew(timeout.Config{Limit: s.attempt}))
	}
	if s.observe != nil {
		b = b.Observe(s.observe)
	}
	return b.MustBuild(), room
}

func fairleadFull(name string, s shape) contender {
	setup := "pipeline.For: Retry (3 attempts, retry.Immediate, NoBudget), Breaker (Count(100), FailureCount 100), RateLimit (1,000,000/s, burst 1e9), Bulkhead (1000); pipeline.Do"
	if s.observe != nil {
		setup = "the same with Observe of a function that does nothing with the three events of a call"
	} else if s.budget {
		setup = "the same without NoBudget: every call pays into the retry's own budget"
	} else if s.rate {
		setup = "the same with a Breaker of Time(10 s), FailureRate 0.9, MinCalls 20"
	}
	return contender{name: name, setup: setup, begin: func() work {
		p, room := fairleadPipeline(s)
		ctx, cancel := s.context()
		end := cancel
		if s.full {
			held, err := room.Acquire(ctx)
			if err != nil {
				panic(err)
			}
			end = func() { _ = held.Settle(context.Background(), leaf.Outcome{}); cancel() }
		}
		return work{refusal: s.refusal(breaker.ErrOpen, ratelimit.ErrLimited, bulkhead.ErrFull), end: end, run: func(n int, j *job) {
			for range n {
				j.ended(pipeline.Do(ctx, p, func(ctx context.Context) (int, error) { return j.fn(ctx) }))
			}
		}}
	}}
}

// refusal is what a refused call's error has to be.
func (s shape) refusal(open, limited, full error) error {
	switch {
	case s.full:
		return full
	case s.spent:
		return limited
	}
	return open
}
