package redislimit

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// A wait that fits MaxWait is waited for, also where the clock stepped back and nobody is left who has seen a later instant; and
// what is advised is when it is worth asking again, not when the first token would come: nobody asks the store all the time.
func TestWhoWaitsIsServedAfterAStepOfTheClock(t *testing.T) {
	v, fake := newVirtual(), clockwork.NewFakeClock()
	p := on(t).frozen(v)
	v.at(3600)
	require.NoError(t, p.limiter(ratelimit.Config{Rate: 1000, Burst: 5}).AllowN(bg, 5))
	v.at(0)
	l := p.limiter(ratelimit.Config{Rate: 1000, Burst: 5, MaxWait: 2 * time.Second, Clock: fake})
	require.Equal(t, time.Second, waitOf(t, l.AllowN(bg, 1)))
	v.at(0.4)
	require.Equal(t, 600*time.Millisecond, waitOf(t, l.AllowN(bg, 1)))
	done := make(chan error, 1)
	go func() { done <- l.Wait(bg, 1) }()
	redistest.Eventually(t, "it stands in the line", func() bool { return queued(l) == 1 })
	v.at(1)
	redistest.Eventually(t, "it is served", func() bool { fake.Advance(10 * time.Millisecond); return len(done) == 1 })
	require.NoError(t, <-done)
}

// Who waits is refused once its wait grows beyond MaxWait, also where a larger bucket under the same name is what it waits for: that
// is in use, and no step of the clock.
func TestNobodyWaitsForALargerBucketBeyondMaxWait(t *testing.T) {
	v, fake := newVirtual(), clockwork.NewFakeClock()
	p := on(t).frozen(v)
	large := p.limiter(ratelimit.Config{Rate: 100, Burst: 1000})
	small := p.limiter(ratelimit.Config{Rate: 100, Burst: 5, MaxWait: 20 * time.Second, Clock: fake})
	require.NoError(t, large.AllowN(bg, 1000))
	done := make(chan error, 1)
	go func() { done <- small.Wait(bg, 1) }()
	redistest.Eventually(t, "it stands in the line", func() bool { return queued(small) == 1 })
	for second := 0.5; ; second += 0.5 {
		require.Less(t, second, 30.0)
		v.at(second)
		require.NoError(t, large.AllowN(bg, 50))
		redistest.Eventually(t, "it asks again", func() bool {
			fake.Advance(100 * time.Millisecond)
			return len(done) == 1 || heardAt(small) == v.µs.Load()
		})
		if len(done) == 1 {
			require.Greater(t, waitOf(t, <-done), 9*time.Second)
			return
		}
	}
}

func heardAt(l *Limiter) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.now
}
