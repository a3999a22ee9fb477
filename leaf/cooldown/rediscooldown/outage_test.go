package rediscooldown

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// alone is a fleet in real time on a server of its own.
func alone(t testing.TB, timeout time.Duration) *fleet {
	t.Helper()
	s := redistest.Start(t)
	return &fleet{t: t, server: s, client: s.Client(t), opts: Options{Timeout: timeout}}
}

func storeError(t testing.TB, err error) *leaf.StoreError {
	t.Helper()
	e, ok := errors.AsType[*leaf.StoreError](err)
	require.True(t, ok, "%v", err)
	return e
}

// Section 13: while the store cannot be asked the policy decides about what nobody knows. No policy lets through what this process
// was asked to hold back.
func TestPolicyDecidesWhatIsNotKnown(t *testing.T) {
	for _, policy := range []leaf.Outage{leaf.FailLocal, leaf.FailOpen, leaf.FailClosed} {
		t.Run(policy.String(), func(t *testing.T) {
			f := alone(t, 0)
			var h told
			f.opts.OnOutage, f.opts.OnStore = policy, h.hook
			c := f.join(cooldown.Config{})
			f.server.Kill(t)
			for range 10 { // the store's breaker opens meanwhile
				_, err := c.Acquire(bg)
				if policy != leaf.FailClosed {
					require.NoError(t, err)
					continue
				}
				e := storeError(t, err)
				require.True(t, e.Rejected())
				require.True(t, e.NotExecuted)
				require.Equal(t, leaf.OpAdmit, e.Op)
				require.Equal(t, "partner", e.Name)
			}
			require.NoError(t, c.Peek(bg))
			require.Equal(t, []string{"failed"}, h.kinds())
			c.Hint(bg, 30*time.Second)
			require.Greater(t, refused(t, c), 29*time.Second)
			f.server.Restart(t)
			redistest.Eventually(t, "the other process hears", func() bool { return refused(t, f.join(cooldown.Config{})) > 0 })
			redistest.Eventually(t, "recovered", func() bool { return len(h.kinds()) == 2 })
			require.Equal(t, []string{"failed", "recovered"}, h.kinds())
		})
	}
}

// Section 13, test 5: Redis is stopped for 2 s. No call takes longer than its budget and 20 ms, a hint none at all, and within a
// second after it goes on the fleet has heard.
func TestStoppedServerHoldsNobodyUp(t *testing.T) {
	f := alone(t, 0)
	c := f.join(cooldown.Config{})
	require.Zero(t, refused(t, c))
	f.server.Pause(t)
	began := time.Now()
	var longest, lag atomic.Int64
	slower := func(max *atomic.Int64, since time.Time, less time.Duration) {
		took := int64(time.Since(since) - less)
		for was := max.Load(); took > was && !max.CompareAndSwap(was, took); was = max.Load() {
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for time.Since(began) < 2*time.Second {
				at := time.Now()
				_, _ = c.Acquire(bg)
				slower(&longest, at, 0)
				at = time.Now()
				<-time.After(time.Millisecond)
				slower(&lag, at, time.Millisecond) // what the scheduler adds to everything just now
			}
		})
	}
	wg.Wait()
	at := time.Now()
	c.Hint(bg, 30*time.Second)
	hint := time.Since(at)
	require.Positive(t, refused(t, c))
	f.server.Resume(t)
	resumed := time.Now()
	b := f.join(cooldown.Config{})
	redistest.Eventually(t, "the other process hears", func() bool { return refused(t, b) > 0 })
	t.Logf("longest Acquire %v, Hint %v, heard %v after SIGCONT, timers late by up to %v",
		time.Duration(longest.Load()), hint, time.Since(resumed), time.Duration(lag.Load()))
	require.Less(t, time.Since(resumed), time.Second)
	require.LessOrEqual(t, time.Duration(longest.Load()), redisscript.DefaultTimeout+20*time.Millisecond+time.Duration(lag.Load()))
	require.Less(t, hint, redisscript.DefaultTimeout/2)
}

func TestContextEndsTheWaitForTheStore(t *testing.T) {
	f := alone(t, patient)
	c := f.join(cooldown.Config{})
	require.Zero(t, refused(t, c))
	f.server.Pause(t)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(bg)
	done := make(chan error, 1)
	<-time.After(stale)
	go func() {
		_, err := c.Acquire(ctx)
		done <- err
	}()
	redistest.Eventually(t, "it asks", func() bool {
		c.view.mu.Lock()
		defer c.view.mu.Unlock()
		return c.view.read != nil
	})
	cancel(gone)
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, gone)
	f.server.Resume(t)
	require.Zero(t, refused(t, c))
}

// Section 13, test 6: a reply that is lost after the execution, and the hint that is sent again for it, do not move the instant.
func TestHintSentAgainChangesNothing(t *testing.T) {
	f := virtual(t)
	f.opts.Prefix = f.server.Prefix(t)
	p := redistest.NewProxy(t, f.server.Addr)
	client := redis.NewClient(&redis.Options{Addr: p.Addr})
	defer client.Close()
	var h told
	opts := f.opts
	opts.OnStore = h.hook
	c, err := New(client, cooldown.Config{Name: "partner", Clock: f.clock}, opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(bg)) }()
	p.DropEvery(1, "evalsha", "eval")
	c.Hint(bg, 30*time.Second)
	redistest.Eventually(t, "three replies are lost", func() bool { return p.Dropped() >= 3 })
	f.clock.Advance(10 * time.Second)
	p.OnReply(nil)
	heard(t, c)
	require.Equal(t, 20*time.Second, refused(t, f.join(cooldown.Config{})))
	require.Equal(t, 20*time.Second, refused(t, c))
	require.Equal(t, []string{"failed", "recovered"}, h.kinds())
}

// A hint that the store never heard is given up when its instant has passed.
func TestHintIsGivenUpWithItsInstant(t *testing.T) {
	f := virtual(t)
	gone := redistest.Start(t)
	gone.Kill(t)
	f.client = gone.Client(t)
	f.opts.Timeout = 0
	c := f.join(cooldown.Config{})
	c.Hint(bg, 30*time.Second)
	f.clock.Advance(30 * time.Second)
	heard(t, c)
	require.False(t, c.news.untold)
	// So is one that a jump of the clock left behind.
	c.Hint(bg, 30*time.Second)
	f.clock.Advance(-20 * 365 * 24 * time.Hour)
	heard(t, c)
	require.False(t, c.news.untold)
	require.Zero(t, c.Wait())
}

func TestHintsThatComeMeanwhileRideOnTheNext(t *testing.T) {
	f := alone(t, patient)
	c := f.join(cooldown.Config{Max: time.Hour})
	require.Zero(t, refused(t, c))
	calls := f.server.Calls(t, "evalsha")
	f.server.Pause(t)
	for i := range 1000 {
		c.Hint(bg, time.Duration(i+1)*time.Second)
	}
	f.server.Resume(t)
	heard(t, c)
	require.LessOrEqual(t, f.server.Calls(t, "evalsha")-calls, 2)
	require.InDelta(t, 1000*time.Second, refused(t, f.join(cooldown.Config{Max: time.Hour})), float64(patient))
}

// After the store lost its data each process keeps what it knows.
func TestFlushedStoreForgetsAndProcessesDoNot(t *testing.T) {
	f := alone(t, patient)
	a, b := f.join(cooldown.Config{}), f.join(cooldown.Config{})
	a.Hint(bg, 50*time.Second)
	heard(t, a)
	require.Positive(t, refused(t, b))
	f.server.Do(t, "flushall")
	require.Positive(t, refused(t, a))
	require.Positive(t, refused(t, b))
	require.Zero(t, refused(t, f.join(cooldown.Config{})))
}

// Bad input: a key that something else wrote is a clear error and the policy, and stays as it is.
func TestForeignKeyIsAClearError(t *testing.T) {
	for name, c := range map[string]struct {
		write []any
		text  string
	}{
		"another type":        {[]any{"rpush", "x"}, "WRONGTYPE"},
		"text":                {[]any{"set", "hello"}, "holds something that is no cooldown"},
		"a number":            {[]any{"set", "12"}, "holds something that is no cooldown"},
		"a negative number":   {[]any{"set", "-5:60"}, "holds something that is no cooldown"},
		"an empty value":      {[]any{"set", ""}, "holds something that is no cooldown"},
		"an exponent":         {[]any{"set", "1e300:1e300"}, "holds something that is no cooldown"},
		"more than it can be": {[]any{"set", "99999999999999999999999999:1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := virtual(t)
			key := redisscript.Key(f.opts.Prefix, "cooldown", "partner")
			f.server.Do(t, c.write[0], key, c.write[1])
			var h told
			f.opts.OnOutage, f.opts.OnStore = leaf.FailClosed, h.hook
			closed := f.join(cooldown.Config{})
			_, err := closed.Acquire(bg)
			if c.text == "" { // an instant that no hint can have made is none
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.text)
			require.True(t, storeError(t, err).Rejected())
			require.Equal(t, []string{"failed"}, h.kinds())
			f.opts.OnOutage, f.opts.OnStore = leaf.FailLocal, nil
			local := f.join(cooldown.Config{})
			require.Zero(t, refused(t, local))
			local.Hint(bg, time.Second)
			require.Equal(t, time.Second, refused(t, local))
			f.clock.Advance(time.Second)
			heard(t, local)
			require.NotContains(t, f.server.Do(t, "type", key), "none")
		})
	}
}

func TestCloseFlushesAndIsIdempotent(t *testing.T) {
	f := alone(t, patient)
	before := f.join(cooldown.Config{})
	require.Zero(t, refused(t, before))
	p := redistest.NewProxy(t, f.server.Addr)
	client := redis.NewClient(&redis.Options{Addr: p.Addr})
	defer client.Close()
	c, err := New(client, cooldown.Config{Name: "partner"}, f.opts)
	require.NoError(t, err)
	c.Hint(bg, 50*time.Second)
	require.NoError(t, c.Close(bg))
	require.NoError(t, c.Close(bg))
	require.Positive(t, refused(t, f.join(cooldown.Config{})), "the hint has arrived")
	require.Positive(t, refused(t, c), "what is known is known")
	require.NoError(t, client.Ping(bg).Err(), "the user's client lives")

	for policy, wantErr := range map[leaf.Outage]bool{leaf.FailLocal: false, leaf.FailClosed: true} {
		f.opts.OnOutage = policy
		closed := f.join(cooldown.Config{Name: "closed"})
		require.NoError(t, closed.Close(bg))
		_, err := closed.Acquire(bg)
		require.Equal(t, wantErr, err != nil, "%v: a store that cannot be asked: %v", policy, err)
		closed.Hint(bg, 10*time.Second)
		require.Positive(t, refused(t, closed))
	}
}

func TestCloseSaysWhatTheStoreHasNotHeard(t *testing.T) {
	f := alone(t, 0)
	f.server.Kill(t)
	c := f.join(cooldown.Config{})
	c.Hint(bg, 50*time.Second)
	began := time.Now()
	err := c.Close(bg)
	require.False(t, storeError(t, err).Rejected())
	require.Less(t, time.Since(began), patient)
	require.NoError(t, c.Close(bg))
}

func TestHooksPanicReachesAnAcquire(t *testing.T) {
	f := alone(t, 0)
	f.opts.OnStore = func(context.Context, leaf.StoreEvent) { panic("oh") }
	c := f.join(cooldown.Config{})
	f.server.Kill(t)
	require.Zero(t, refused(t, c))
	require.PanicsWithValue(t, "oh", func() { _, _ = c.Acquire(bg) })
	require.Zero(t, refused(t, c))
}
