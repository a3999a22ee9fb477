package redisbreaker

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/stretchr/testify/require"
)

// Close is idempotent, flushes, ends every goroutine and leaves the user's client open.
func TestCloseFlushesAndLeavesTheClient(t *testing.T) {
	f := newFleet(t, counting).real()
	m := f.join()
	for range 100 {
		m.begin()(success)
	}
	hung := m.begin()
	require.NoError(t, m.Close(bg))
	require.NoError(t, m.Close(bg))
	require.NoError(t, f.client.Ping(bg).Err())
	hung(success)
	m.begin()(success) // it admits by what it knew last, and records nothing
	other := f.join()
	other.run(1, success)
	other.counts(101, 0)
}

func TestCloseEndsThePoll(t *testing.T) {
	f := newFleet(t, breaker.Config{OpenFor: time.Hour}).real()
	m := f.join()
	require.NoError(t, m.ForceOpen(bg))
	m.Breaker.mu.Lock()
	require.True(t, m.watching)
	m.Breaker.mu.Unlock()
	require.NoError(t, m.Close(bg))
	m.refused()
	require.Error(t, m.Auto(bg))
	m.refused()
}

// An idle process that knows open asks once a second, and learns of the closing.
func TestPollLearnsAndEnds(t *testing.T) {
	f := newFleet(t, breaker.Config{OpenFor: time.Hour}).real()
	a, b := f.join(), f.join()
	require.NoError(t, a.ForceOpen(bg))
	b.run(1, success)
	b.is(breaker.Open)
	require.NoError(t, a.Reset(bg))
	began := time.Now()
	redistest.Eventually(t, "b learns", func() bool { return b.State() == breaker.Closed })
	require.Less(t, time.Since(began), 2*every)
	redistest.Eventually(t, "the poll ends", func() bool {
		b.Breaker.mu.Lock()
		defer b.Breaker.mu.Unlock()
		return !b.watching
	})
}

// Successes wait 50 ms for company, a failure leaves at once; the caller waits for neither.
func TestFailuresFlushAtOnceAndSuccessesSoon(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, counting).real()
	m := f.join()
	m.begin()(failure)
	redistest.Eventually(t, "the failure leaves by itself", func() bool { return m.Snapshot().Calls == 1 })
	m.counts(1, 1)
	before, began := s.Calls(t, "evalsha", "eval"), time.Now()
	for range 100 {
		m.begin()(success)
	}
	redistest.Eventually(t, "so do the successes", func() bool { return m.Snapshot().Calls == 101 })
	m.counts(101, 1)
	require.LessOrEqual(t, s.Calls(t, "evalsha", "eval")-before, int(time.Since(began)/batching)+1)
}

// A panicking or goroutine-ending IsFailure is a failure, and a probe's slot is not lost with it.
func TestIsFailureThatDoesNotReturnIsAFailure(t *testing.T) {
	for what, end := range map[string]func(){"panic": func() { panic("IsFailure") }, "Goexit": runtime.Goexit} {
		t.Run(what, func(t *testing.T) {
			f := newFleet(t, breaker.Config{
				Window: breaker.Count(1), OpenFor: 10 * time.Second,
				IsFailure: func(error) bool { end(); return false },
			})
			m := f.join()
			in(func() { m.begin()(success) })
			m.sync()
			m.is(breaker.Open)
			f.to(10)
			in(func() { m.begin()(success) })
			m.is(breaker.Open)
			require.Equal(t, "probe failed", m.Snapshot().Reason)
		})
	}
}

// in runs f in a goroutine that it may end.
func in(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func TestCauseIsKnownWhereItHappened(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	a, b := f.join(), f.join()
	a.run(1, failure)
	require.Equal(t, errDown, a.refused().Cause)
	b.poll()
	require.NoError(t, b.refused().Cause, "a callback's result leaves no process")
	f.to(10)
	again := errors.New("still down")
	b.begin()(leaf.Outcome{Err: again})
	require.Equal(t, again, b.refused().Cause)
}

// What Ignore names is neither failure nor success, for the fleet and for the breaker underneath, and a probe's slot goes back.
func TestWhatIsIgnoredChangesNothing(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second, Ignore: func(err error) bool { return err == errIgnored }})
	m := f.join()
	ignored := leaf.Outcome{Err: errIgnored}
	m.run(1, ignored)
	m.sync()
	m.counts(0, 0)
	m.run(1, failure)
	m.is(breaker.Open)
	f.to(10)
	m.begin()(ignored)
	m.is(breaker.HalfOpen)
	m.begin()(success)
	m.is(breaker.Closed)
}

var errIgnored = errors.New("ignored")

// What may be asked of IsFailure: rejections, NotRun, cancelled and early expired calls are neutral, also here.
func TestNeutralOutcomesCountNowhere(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: time.Hour})
	m := f.join()
	for _, o := range []leaf.Outcome{
		notRun, {Verdict: leaf.Ignored, Err: errDown}, {Verdict: leaf.CallerCancelled, Err: context.Canceled},
		{Verdict: leaf.CallerExpired, Err: context.DeadlineExceeded, Took: 1, Given: time.Hour},
		{Err: &leaf.StoreError{Op: leaf.OpAdmit, Err: errDown}},
	} {
		m.run(1, o)
	}
	n, err := f.client.Exists(bg, f.key()).Result()
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, breaker.Closed, m.local.State())
}

func TestOpenJitterDrawsFromTheUpperHalf(t *testing.T) {
	u := 0.0
	f := newFleet(t, breaker.Config{
		Window: breaker.Count(1), OpenFor: 10 * time.Second, OpenJitter: true, OpenGrowth: 2, Rand: func() float64 { return u },
	})
	m := f.join()
	m.run(1, failure)
	require.Equal(t, 5*time.Second, m.refused().Wait)
	f.to(5)
	u = 0.5
	m.begin()(failure)
	require.Equal(t, 15*time.Second, m.refused().Wait)
	f.to(20)
	u = 1
	m.begin()(failure)
	require.Equal(t, 40*time.Second-time.Microsecond, m.refused().Wait)
}
