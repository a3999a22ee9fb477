package redisscript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func sick(h *heard) *health {
	var s health
	s.init("the guard", Options{OnOutage: leaf.FailClosed, OnStore: h.hook})
	return &s
}

func TestFiveFailuresInARowOpenTheBreaker(t *testing.T) {
	h := sick(&heard{})
	for range trips - 1 {
		require.Nil(t, h.failed(bg, leaf.OpAdmit, io.EOF))
	}
	h.succeeded(bg, leaf.OpAdmit)
	for range trips - 1 {
		require.Nil(t, h.failed(bg, leaf.OpAdmit, io.EOF))
	}
	require.NoError(t, h.refuses())
	opened := h.failed(bg, leaf.OpRecord, errors.New("the fifth"))
	require.NotNil(t, opened)
	require.EqualError(t, h.refuses(), "store breaker open after: the fifth")
	require.ErrorIs(t, h.refuses(), errOpen)
	require.Nil(t, h.failed(bg, leaf.OpAdmit, io.EOF), "it opens once")
	h.succeeded(bg, "")
	require.NoError(t, h.refuses())
	<-opened.over
}

// A server that answers and will not do this one thing has nothing to be probed for.
func TestAnsweredFailuresDoNotOpenTheBreaker(t *testing.T) {
	h := sick(&heard{})
	for _, text := range []string{"WRONGTYPE Operation", "OOM command not allowed", "READONLY You", "NOPERM this user", "MISCONF Redis", "ERR x"} {
		for range 2 * trips {
			require.Nil(t, h.failed(bg, leaf.OpAdmit, replyError(text)), text)
		}
	}
	for range trips - 1 {
		require.Nil(t, h.failed(bg, leaf.OpAdmit, io.EOF))
	}
	require.Nil(t, h.failed(bg, leaf.OpAdmit, replyError("OOM command")), "an answer ends the row")
	for range trips - 1 {
		require.Nil(t, h.failed(bg, leaf.OpAdmit, replyError("LOADING Redis is loading")))
	}
	require.NotNil(t, h.failed(bg, leaf.OpAdmit, replyError("LOADING Redis is loading")), "it serves nobody")
}

func TestEachSwitchIsOneEvent(t *testing.T) {
	var told heard
	h := sick(&told)
	h.succeeded(bg, leaf.OpAdmit)
	for range 3 * trips {
		h.failed(bg, leaf.OpRecord, io.EOF)
	}
	require.True(t, h.isDown())
	h.succeeded(bg, leaf.OpAdmit)
	h.succeeded(bg, leaf.OpAdmit)
	h.failed(bg, leaf.OpAdmit, io.ErrUnexpectedEOF)
	h.succeeded(bg, "")
	require.Equal(t, []leaf.StoreEvent{
		{Name: "the guard", Kind: "failed", Op: leaf.OpRecord, Policy: leaf.FailClosed, Err: io.EOF},
		{Name: "the guard", Kind: "recovered", Op: leaf.OpAdmit, Policy: leaf.FailClosed},
		{Name: "the guard", Kind: "failed", Op: leaf.OpAdmit, Policy: leaf.FailClosed, Err: io.ErrUnexpectedEOF},
		{Name: "the guard", Kind: "recovered", Op: leaf.OpAdmit, Policy: leaf.FailClosed},
	}, told.events)
	require.False(t, h.isDown())
}

// Whatever many goroutines find out, failed and recovered alternate, and each failure has its recovery.
func TestConcurrentSwitchesAlternate(t *testing.T) {
	var told heard
	h := sick(&told)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				h.failed(bg, leaf.OpAdmit, io.EOF)
				h.succeeded(bg, leaf.OpAdmit)
			}
		})
	}
	wg.Wait()
	kinds := told.kinds()
	for i, kind := range kinds {
		require.Equal(t, []string{"failed", "recovered"}[i%2], kind, "event %d", i)
	}
	require.False(t, h.isDown())
	require.Zero(t, len(kinds)%2)
	require.NoError(t, h.refuses())
}

// A hook may use the guard that it is told of: it runs outside every lock. A panic waits for a place where nothing is held.
func TestHooksPanicIsHeldBack(t *testing.T) {
	server := redistest.Start(t)
	var s *Store
	told := 0
	s = open(t, server.Client(t), Options{Timeout: patient, OnStore: func(context.Context, leaf.StoreEvent) {
		told++
		_ = s.Down()
		panic(fmt.Sprintf("oh %d", told))
	}})
	s.Repanic()
	server.Do(t, "set", s.Key(), "x")
	for range 3 {
		_, err := admit(t, s, Call{Script: countToken, Args: []any{1}})
		require.ErrorContains(t, err, "WRONGTYPE")
	}
	require.EqualValues(t, 1, told)
	server.Do(t, "del", s.Key())
	require.EqualValues(t, 1, count(t, s))
	require.EqualValues(t, 2, told)
	require.PanicsWithValue(t, "oh 1", s.Repanic, "the first")
	s.Repanic()
	s.Overage(bg, leaf.OpRecord, errors.New("late"))
	require.PanicsWithValue(t, "oh 3", s.Repanic)
}

func TestHooksGoexitLosesNothing(t *testing.T) {
	server := redistest.Start(t)
	var kinds []string
	s := open(t, server.Client(t), Options{Timeout: patient, OnStore: func(_ context.Context, e leaf.StoreEvent) {
		kinds = append(kinds, e.Kind)
		runtime.Goexit()
	}})
	server.Do(t, "set", s.Key(), "x")
	ask := func(script *Script) {
		returned := make(chan bool, 1)
		go func() {
			returns := false
			defer func() { returned <- returns }()
			_, _ = s.Do(bg, Call{Op: leaf.OpAdmit, Script: script, Args: []any{1}})
			returns = true
		}()
		require.True(t, <-returned, "it ends the hook alone")
	}
	ask(countToken)
	server.Do(t, "del", s.Key())
	ask(incr)
	require.Equal(t, []string{"failed", "recovered"}, kinds)
	require.EqualValues(t, 2, count(t, s))
}

func TestOverageIsTold(t *testing.T) {
	var told heard
	_, s := onShared(t, Options{OnStore: told.hook, OnOutage: leaf.FailOpen})
	err := errors.New("came back after its lease")
	s.Overage(bg, leaf.OpRecord, err)
	require.Equal(t, []leaf.StoreEvent{{Name: "the guard", Kind: "overage", Op: leaf.OpRecord, Policy: leaf.FailOpen, Err: err}}, told.events)
	require.False(t, s.Down())
}

// While the breaker is open, the way is found by one goroutine, in the background; nobody has to call.
func TestRecoveryIsFoundInTheBackground(t *testing.T) {
	server := redistest.Start(t)
	var told heard
	s := open(t, server.Client(t), Options{OnStore: told.hook})
	warm(t, s)
	server.Kill(t)
	for s.health.refuses() == nil {
		_, err := admit(t, s, Call{Script: incr})
		require.Error(t, err)
	}
	require.Equal(t, []string{"failed"}, told.kinds())
	lag := schedulerLag(t)
	server.Restart(t)
	back := time.Now()
	redistest.Eventually(t, "the breaker closes", func() bool { return s.health.refuses() == nil })
	require.Less(t, time.Since(back), lastProbe+DefaultTimeout+lag())
	redistest.Eventually(t, "recovered", func() bool { return told.has("recovered") })
	require.EqualValues(t, 0, server.Do(t, "exists", s.Key()), "a probe touches nothing")
}

// The steps of the probes: 100 ms, doubled up to 1 s, each a little less, so that a fleet does not come back in step.
func TestProbesBackOff(t *testing.T) {
	server := redistest.Start(t)
	server.Kill(t)
	o := server.Options()
	o.DialerRetries = 1
	var mu sync.Mutex
	var at []time.Time
	client := redis.NewClient(o)
	defer client.Close()
	s := open(t, client, Options{})
	for s.health.refuses() == nil {
		_, _ = admit(t, s, Call{Script: incr})
	}
	lag := schedulerLag(t)
	client.AddHook(hook{func() {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
	}})
	opened := time.Now()
	redistest.Eventually(t, "five probes", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(at) >= 5
	})
	mu.Lock()
	defer mu.Unlock()
	for i, step := range []time.Duration{100, 200, 400, 800, 1000} {
		step *= time.Millisecond
		pause := at[i].Sub(opened)
		opened = at[i]
		if i > 0 { // the first pause began before opened was read
			require.GreaterOrEqual(t, pause, step*6/10, "probe %d", i)
		}
		require.LessOrEqual(t, pause, step+late+lag(), "probe %d", i)
	}
}

// A late answer is a sign of life, and an early probe follows it, so that the pause is not waited out; but one alone, for a store
// that is alive and too slow gives such signs all the time.
func TestLateAnswerIsProbedAtOnce(t *testing.T) {
	server := redistest.Shared(t)
	client := server.Client(t)
	var probes atomic.Int64
	var healed atomic.Bool
	client.AddHook(hook{func() {
		probes.Add(1)
		if !healed.Load() {
			panic("down")
		}
	}})
	s := open(t, client, Options{Prefix: server.Prefix(t)})
	for s.health.refuses() == nil {
		_, _ = admit(t, s, Call{Script: incr})
	}
	reach := func(n int64) {
		t.Helper()
		redistest.Eventually(t, "the probes", func() bool { return probes.Load() >= n })
	}
	began := probes.Load()
	reach(began + 4) // from now on a pause is 0.6 to 0.9 of a second
	lag := schedulerLag(t)
	at := time.Now()
	s.health.hint()
	reach(began + 5)
	require.Less(t, time.Since(at), lastProbe/2+lag(), "the first sign counts")
	at = time.Now()
	s.health.hint()
	reach(began + 6)
	require.GreaterOrEqual(t, time.Since(at), lastProbe*6/10-late, "the second does not")
	healed.Store(true)
	s.health.hint()
	redistest.Within(t, 2*lastProbe, "it closes", func() bool { return s.health.refuses() == nil })
}

// One prober: one that was left over from an earlier opening does not go on beside its successor.
func TestEachOpeningHasOneProber(t *testing.T) {
	_, s := onShared(t, Options{})
	for range 20 {
		for range trips {
			s.failed(bg, leaf.OpAdmit, io.EOF)
		}
		s.health.succeeded(bg, leaf.OpAdmit)
	}
	redistest.Eventually(t, "nothing runs", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.running == 0
	})
}

func TestOptionsErrorsNameEveryFieldAndValue(t *testing.T) {
	_, err := Open((*redis.Client)(nil), "redislimit", "limit", "x", Options{
		Prefix: string(make([]byte, 257)), Timeout: -time.Second, OnOutage: 7,
	})
	for _, text := range []string{
		"redislimit: client is nil", "redislimit: Prefix is 257: want at most 256 bytes",
		"redislimit: Timeout is -1s: want 0 (50ms) or a positive duration", "redislimit: OnOutage is Outage(7)",
	} {
		require.ErrorContains(t, err, text)
	}
	_, err = Open(nil, "redislimit", "limit", "x", Options{})
	require.ErrorContains(t, err, "client is nil")
	server := redistest.Shared(t)
	s := open(t, server.Client(t), Options{})
	require.Equal(t, Options{Prefix: "fairlead", Timeout: 50 * time.Millisecond}, s.Options())
	require.Equal(t, "fairlead:kind:{the%20guard}", s.Key())
}

// Constructing writes nothing, and needs no server.
func TestOpenSendsNothing(t *testing.T) {
	server := redistest.Start(t)
	server.ResetCalls(t)
	open(t, server.Client(t), Options{})
	require.Equal(t, "0", server.Info(t, "keyspace")["db0"]+"0")
	require.Zero(t, server.Calls(t, "evalsha", "eval", "ping", "get", "exists"))
}
