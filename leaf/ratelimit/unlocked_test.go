package ratelimit

import (
	"runtime"
	"testing"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// Section 3, speed: with nobody in the queue, a token is taken by a compare-and-swap of one word, and so it is refused and refunded:
// none of it waits for the queue's lock, which somebody holds here all the while.
func TestTokensAreTakenWithoutTheLock(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Burst: 10})
	shared := MustNew(Config{Rate: 1, Per: 1e15, Burst: 10}) // in real time
	done := make(chan struct{})
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	shared.queue.mu.Lock()
	defer shared.queue.mu.Unlock()
	go func() {
		defer close(done)
		if !f.Allow() || f.AllowN(2) != nil || f.Wait(bg, 3) != nil {
			t.Error("there were 10")
		}
		for range 2 {
			p, err := f.Acquire(bg)
			if err != nil {
				t.Error(err)
			}
			_ = p.Settle(bg, leaf.Outcome{})
			p, err = f.TryAcquire(bg)
			if err != nil {
				t.Error(err)
			}
			_ = p.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun})
		}
		if f.AllowN(2) != nil || f.Allow() || f.AllowN(1) == nil {
			t.Error("10 are taken")
		}
		for range 10 {
			p, fresh, err := shared.AcquireAt(bg, shared.clock.Reading())
			if err != nil || !fresh {
				t.Error(err, fresh)
			}
			_ = p.Settle(bg, leaf.Outcome{})
		}
	}()
	for range 10_000_000 { // no clock decides
		select {
		case <-done:
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("somebody waits for the lock")
}

// A decision costs nothing but that word.
func TestATokenAllocatesNothing(t *testing.T) {
	l := MustNew(Config{Rate: 1_000_000, Burst: 1_000_000_000})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p, err := l.Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Settle(bg, leaf.Outcome{})
		p, _, err = l.AcquireAt(bg, l.clock.Reading())
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun})
		if !l.Allow() {
			t.Fatal("there were enough")
		}
	}))
}
