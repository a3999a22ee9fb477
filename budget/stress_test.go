package budget

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// together runs f in n goroutines that start at once.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func TestAHundredGoroutinesOnTenTokensSendExactlyTen(t *testing.T) { // C08
	for name, make := range map[string]func() Retry{
		"tokens": func() Retry { return MustNewTokens(TokenConfig{Capacity: 10, Clock: newClock()}) },
		"ratio":  func() Retry { return MustNewRatio(RatioConfig{Ratio: Off, MinPerSecond: 1, Clock: newClock()}) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				b := make()
				var sent atomic.Int32
				together(100, func(int) {
					if token, ok := b.Reserve(); ok {
						sent.Add(1)
						token.Commit()
					}
				})
				require.EqualValues(t, 10, sent.Load())
			}
		})
	}
}

func TestConcurrentCommitAndCancelDecideOnce(t *testing.T) {
	for range 200 {
		b := MustNewTokens(TokenConfig{Capacity: 10, Clock: newClock()})
		r := MustNewRatio(RatioConfig{Ratio: Off, MinPerSecond: 1, Clock: newClock()})
		token, _ := b.Reserve()
		token2, _ := r.Reserve()
		together(8, func(i int) {
			if i%2 == 0 {
				token.Cancel()
				token2.Cancel()
			} else {
				token.Commit()
				token2.Commit()
			}
		})
		require.Contains(t, []int{9, 10}, b.Balance())
		require.Contains(t, []int{9, 10}, r.Balance())
	}
}

func TestConcurrentDepositsAreAllCounted(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{Ratio: 1, MinPerSecond: Off, Clock: clock})
	for range 30 { // over three times the window, so that words are taken over concurrently
		before := r.Balance()
		together(8, func(int) {
			for range 500 {
				r.Deposit()
			}
		})
		require.Equal(t, before+8*500, r.Balance())
		clock.Advance(time.Second / 2)
		if clock.Since(year2026) >= 10*time.Second {
			clock.Advance(10 * time.Second)
			require.Equal(t, 0, r.Balance())
		}
	}
}

// Everything at once; what counts is the race detector, and that the books are right afterwards.
func TestBudgetsUnderConcurrency(t *testing.T) {
	clock := newClock()
	tokens := MustNewTokens(TokenConfig{Capacity: 50, Refill: 100, Hold: 2 * time.Second, Clock: clock})
	ratio := MustNewRatio(RatioConfig{TTL: time.Second, Clock: clock})
	together(8, func(i int) {
		for n := range 2000 {
			for _, b := range []Retry{tokens, ratio} {
				b.Deposit()
				if token, ok := b.Reserve(); ok {
					if n%3 == 0 {
						token.Cancel()
					} else if n%3 == 1 {
						token.Commit()
					}
				}
			}
			switch {
			case i == 0 && n%10 == 0:
				clock.Advance(10 * time.Millisecond)
			case i == 1 && n%100 == 0:
				ttl := time.Duration(1+n/100%3) * time.Second
				require.NoError(t, ratio.Update(RatioConfig{TTL: ttl, Clock: clock}))
				require.NoError(t, tokens.Update(TokenConfig{Capacity: 50 + n/100, Refill: 100, Hold: 2 * time.Second, Clock: clock}))
			case i == 2:
				require.GreaterOrEqual(t, tokens.Balance(), 0)
				require.GreaterOrEqual(t, ratio.Balance(), 0)
				_, _ = tokens.Config(), ratio.Config()
			}
		}
	})
	clock.Advance(time.Minute)
	require.Equal(t, tokens.Config().Capacity, tokens.Balance())
	require.Equal(t, 10*int(ratio.Config().TTL/time.Second), ratio.Balance())
}
