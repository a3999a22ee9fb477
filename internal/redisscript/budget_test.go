package redisscript

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// late is what a call may take beyond its budget.
const late = 20 * time.Millisecond

// schedulerLag watches how late a timer is on this machine just now; calling the result gives the worst.
func schedulerLag(t *testing.T) func() time.Duration {
	var worst atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			began := time.Now()
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				worst.Store(max(worst.Load(), int64(time.Since(began)-time.Millisecond)))
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return func() time.Duration { return time.Duration(worst.Load()) }
}

// pilots is the goroutines that carry calls.
func pilots() int {
	buf := make([]byte, 4<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "redisscript.(*Store).pilot(")
}

// Section 13, test 5, store part: Redis is stopped for 2 s under 8 callers. No call takes longer than its budget and 20 ms; once
// the store's breaker is open, a call takes microseconds; after SIGCONT the store is back within a second.
func TestStoppedServerHoldsNobodyUp(t *testing.T) {
	server := redistest.Start(t)
	var h heard
	s := open(t, server.Client(t), Options{OnStore: h.hook})
	warm(t, s)

	server.Pause(t)
	stop := make(chan struct{})
	lag := schedulerLag(t)
	var longest, calls, ok atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				_, err := s.Do(bg, Call{Op: leaf.OpAdmit, Script: incr})
				took := int64(time.Since(began))
				for was := longest.Load(); took > was && !longest.CompareAndSwap(was, took); was = longest.Load() {
				}
				calls.Add(1)
				if err == nil {
					ok.Add(1)
					return
				}
				<-time.After(time.Millisecond)
			}
		})
	}
	redistest.Eventually(t, "the breaker opens", func() bool { return s.health.refuses() != nil })
	began := time.Now()
	const quick = 1000
	for range quick {
		_, err := admit(t, s, Call{Script: incr})
		require.True(t, storeError(t, err).NotExecuted)
		require.ErrorIs(t, err, errOpen)
	}
	perCall := time.Since(began) / quick
	require.Less(t, perCall, time.Millisecond)

	redistest.Within(t, 3*time.Second, "2 s pass", func() bool { return time.Since(began) > 2*time.Second })
	require.Zero(t, ok.Load())
	server.Resume(t)
	back := time.Now()
	wg.Wait()
	recovery := time.Since(back)
	close(stop)
	t.Logf("%d calls, longest %v, %v per call with the breaker open, recovered %v after SIGCONT",
		calls.Load(), time.Duration(longest.Load()), perCall, recovery)
	require.LessOrEqual(t, time.Duration(longest.Load()), DefaultTimeout+late+lag())
	require.Less(t, recovery, time.Second)
	redistest.Eventually(t, "the recovery is told", func() bool { return h.has("recovered") })
	require.Equal(t, []string{"failed", "recovered"}, h.kinds(), "once per switch")
}

// A timeout costs no connection, whatever the client does with deadlines: it goes on with the one that was left behind.
func TestTimeoutCostsNoConnection(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		server := redistest.Start(t)
		o := server.Options()
		o.ContextTimeoutEnabled = enabled
		client := redis.NewClient(o)
		defer client.Close()
		s := open(t, client, Options{})
		warm(t, s)
		before := client.PoolStats()
		ctx, cancel := context.WithTimeout(bg, patient)
		_, err := s.Do(ctx, Call{Op: leaf.OpAdmit, Script: spin, Args: []any{100}})
		cancel()
		require.ErrorContains(t, err, "no answer within 50ms")
		redistest.Eventually(t, "it has come back", func() bool { return s.flights.behind.Load() == 0 })
		warm(t, s)
		after := client.PoolStats()
		require.Equal(t, before.Misses, after.Misses, "no connection was made (ContextTimeoutEnabled: %v)", enabled)
		require.Equal(t, before.TotalConns, after.TotalConns)
	}
}

func TestLateSuccessIsTakenBack(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.Client(t), Options{})
	taken := make(chan int64, 1)
	_, err := admit(t, s, Call{Script: spin, Args: []any{200}, Late: func(r Reply) {
		n, _ := r.Int()
		_, err := s.Do(bg, Call{Op: leaf.OpRecord, Script: countToken, Args: []any{"x"}}) // it may call Do
		if err == nil {
			n = -1
		}
		taken <- n
	}})
	e := storeError(t, err)
	require.False(t, e.NotExecuted, "the script may run yet")
	require.ErrorContains(t, e, "no answer within 50ms")
	select {
	case n := <-taken:
		require.EqualValues(t, 1, n, "countToken finds a string, so that Do failed; the reply was spin's")
	case <-time.After(redistest.Patience):
		t.Fatal("nobody was told")
	}
	redistest.Eventually(t, "nothing is left behind", func() bool { return s.flights.behind.Load() == 0 && len(s.flights.seats) == 0 })
}

func TestSuccessInTimeIsNotLate(t *testing.T) {
	_, s := onShared(t, Options{Timeout: patient})
	r, err := admit(t, s, Call{Script: incr, Late: func(Reply) { t.Error("late") }})
	require.EqualValues(t, 1, integer(t, r, err))
}

// The error is ctx's own, Err and Cause, and no refusal; the call is left at once, and says nothing of the store.
func TestContextEndsACall(t *testing.T) {
	server := redistest.Start(t)
	var h heard
	s := open(t, server.Client(t), Options{Timeout: patient, OnStore: h.hook})
	count(t, s)
	server.Pause(t)
	gone := errors.New("gone")
	for range 2 * trips {
		ctx, cancel := context.WithCancelCause(bg)
		time.AfterFunc(5*time.Millisecond, func() { cancel(gone) })
		began := time.Now()
		_, err := s.Do(ctx, Call{Op: leaf.OpAdmit, Script: incr})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, gone)
		_, refused := errors.AsType[*leaf.StoreError](err)
		require.False(t, refused)
		require.Less(t, time.Since(began), patient)
	}
	require.NoError(t, s.health.refuses())
	require.Empty(t, h.kinds())

	lag := schedulerLag(t)
	ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := s.Do(ctx, Call{Op: leaf.OpAdmit, Script: incr})
	took := time.Since(began)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, took, 10*time.Millisecond+late+lag())
	server.Resume(t)
}

// A done ctx sends nothing; what has happened is recorded all the same.
func TestDoneContextSendsNothingUnlessItRecords(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.Client(t), Options{Timeout: patient})
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := s.Do(ctx, Call{Op: leaf.OpAdmit, Script: incr})
	require.Equal(t, context.Canceled, err)
	require.Zero(t, server.Calls(t, "evalsha", "eval"))
	r, err := s.Do(ctx, Call{Op: leaf.OpRecord, Script: incr})
	require.EqualValues(t, 1, integer(t, r, err))
}

func TestRecordTakesTheStoresTimeoutAlone(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.Client(t), Options{})
	warm(t, s)
	server.Pause(t)
	ctx, cancel := context.WithTimeout(bg, time.Millisecond)
	defer cancel()
	lag := schedulerLag(t)
	began := time.Now()
	_, err := s.Do(ctx, Call{Op: leaf.OpRecord, Script: incr})
	took := time.Since(began)
	e := storeError(t, err)
	require.False(t, e.NotExecuted)
	require.False(t, e.Rejected())
	require.GreaterOrEqual(t, took, DefaultTimeout)
	require.LessOrEqual(t, took, DefaultTimeout+late+lag())
	server.Resume(t)
}

// Goroutines are capped: 64 calls of a store are under way at most, and where all were left behind, the next one is refused at
// once. After Close nothing is left.
func TestWhatIsLeftBehindIsCapped(t *testing.T) {
	server := redistest.Start(t)
	o := server.Options()
	o.PoolSize = 100
	s := open(t, redis.NewClient(o), Options{Timeout: patient})
	defer s.Client().(*redis.Client).Close()
	count(t, s)
	server.Pause(t)
	under := func(calls int) (cancel func()) {
		ctx, stop := context.WithCancel(bg)
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				_, err := s.Do(ctx, Call{Op: leaf.OpAdmit, Script: incr})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		}
		return func() { stop(); wg.Wait() }
	}
	seated := under(seats)
	redistest.Eventually(t, "the seats are taken", func() bool { return len(s.flights.seats) == seats })
	under(2 * seats)() // these wait for a seat; they leave first, before all seats are left behind
	seated()
	// What waits for a connection gives up; what has one stays.
	redistest.Eventually(t, "the rest is left behind", func() bool {
		return int(s.flights.behind.Load()) == len(s.flights.seats)
	})
	require.LessOrEqual(t, pilots(), seats)
	for s.flights.behind.Load() < seats {
		short, cancel := context.WithTimeout(bg, 5*time.Millisecond)
		_, err := s.Do(short, Call{Op: leaf.OpAdmit, Script: incr})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Equal(t, seats, pilots())
	began := time.Now()
	_, err := admit(t, s, Call{Script: incr})
	require.ErrorIs(t, err, errCrowded)
	require.True(t, storeError(t, err).NotExecuted)
	require.Less(t, time.Since(began), patient/2)
	server.Resume(t)
	require.NoError(t, s.Close(bg))
	redistest.Eventually(t, "every goroutine is gone", func() bool { return pilots() == 0 }) // Close waits for their last statement
	require.Zero(t, len(s.flights.seats))
	require.Zero(t, s.flights.behind.Load())
}

// Whoever gets no seat in time has surely not been executed.
func TestNoSeatInTimeIsNotExecuted(t *testing.T) {
	_, s := onShared(t, Options{})
	for range seats {
		s.flights.seats <- struct{}{} // callers under way, who are not left behind
	}
	_, err := admit(t, s, Call{Script: incr})
	require.ErrorIs(t, err, errNoSeat)
	require.True(t, storeError(t, err).NotExecuted)
	for range seats {
		<-s.flights.seats
	}
	warm(t, s)
}

func TestCloseWaitsAsLongAsItMay(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.Client(t), Options{})
	warm(t, s)
	server.Pause(t)
	_, err := admit(t, s, Call{Script: incr})
	require.Error(t, err)
	require.True(t, s.Go(func(ctx context.Context) { <-ctx.Done() }))
	ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
	defer cancel()
	err = s.Close(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `"the guard": 1 calls are still under way`)
	server.Resume(t)
	require.NoError(t, s.Close(bg))
	require.NoError(t, s.Close(ctx), "idempotent, and nothing is left to wait for")
	require.False(t, s.Go(func(context.Context) { t.Error("after Close") }))
	_, err = admit(t, s, Call{Script: incr})
	require.ErrorIs(t, err, errClosed)
	require.True(t, storeError(t, err).NotExecuted)
	require.NoError(t, server.Client(t).Ping(bg).Err())
	require.NoError(t, s.Client().(*redis.Client).Ping(bg).Err(), "the user's client lives")
}

// hook runs f for each script.
type hook struct{ f func() }

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			h.f()
		}
		return next(ctx, cmd)
	}
}

// A hook of the user's client runs on a goroutine of ours: its panic must not end the process, nor hold a seat.
func TestPanicAndGoexitInTheClientAreErrors(t *testing.T) {
	for name, f := range map[string]func(){"panicked: oh": func() { panic("oh") }, "runtime.Goexit": runtime.Goexit} {
		server := redistest.Shared(t)
		client := server.Client(t)
		armed := true
		client.AddHook(hook{func() {
			if armed {
				f()
			}
		}})
		s := open(t, client, Options{Prefix: server.Prefix(t), Timeout: patient})
		_, err := admit(t, s, Call{Script: incr})
		require.ErrorContains(t, err, name)
		require.False(t, storeError(t, err).NotExecuted)
		require.Empty(t, s.flights.seats)
		armed = false
		require.EqualValues(t, 1, count(t, s))
	}
}
