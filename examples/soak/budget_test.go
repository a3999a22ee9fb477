package soak

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/budget"
)

// counter is how many calls were sent with a budget, and how many retries.
type counter struct{ calls, retries atomic.Int64 }

// pool is a retry budget and its oracle.
type pool struct {
	budget budget.Retry
	sent   counter
	check  func(rest bool) string // what is wrong
}

// newTokens is a pool that nothing refills: what was sent is what is missing.
func (w *world) newTokens() *pool {
	const capacity = 100
	b := budget.MustNewTokens(budget.TokenConfig{Capacity: capacity, Hold: time.Hour, Clock: w.timer()})
	p := &pool{budget: b}
	p.check = func(rest bool) string {
		sent, left := p.sent.retries.Load(), int64(b.Balance())
		switch {
		case left < 0 || left > capacity:
			return fmt.Sprintf("a pool of %d holds %d tokens", capacity, left)
		case rest && left != max(0, capacity-sent):
			return fmt.Sprintf("a pool of %d: %d retries were sent, %d tokens are left", capacity, sent, left)
		}
		return ""
	}
	return p
}

func (w *world) newRatio() *pool {
	cfg := budget.RatioConfig{Ratio: 0.1 + w.rnd.Float64(), MinPerSecond: 1 + w.rnd.IntN(5), TTL: time.Second, Clock: w.timer()}
	b := budget.MustNewRatio(cfg)
	p := &pool{budget: b}
	p.check = func(bool) string {
		left := float64(b.Balance()) // read first: calls only grow
		most := float64(cfg.MinPerSecond) + cfg.Ratio*float64(p.sent.calls.Load())
		if left < 0 || left > most {
			return fmt.Sprintf("a budget of %v with %d calls holds %v tokens", cfg, p.sent.calls.Load(), left)
		}
		return ""
	}
	return p
}
