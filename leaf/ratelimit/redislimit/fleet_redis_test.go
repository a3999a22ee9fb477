package redislimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// order is what a second process is told.
type order struct {
	Addr, Prefix string
	Cfg          ratelimit.Config
	Prefetch     int
	Quota        int
	Wait         bool
	Goroutines   int
	For          time.Duration
}

// hammer takes from many goroutines for a while, or until a quota is used up, and says how many it got.
func hammer(l *Limiter, o order) (admitted int64, strange error) {
	var got atomic.Int64
	var odd atomic.Pointer[error]
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(bg, o.For)
	defer cancel()
	for range o.Goroutines {
		all.Go(func() {
			for ctx.Err() == nil {
				var err error
				if o.Wait {
					err = l.Wait(ctx, 1)
				} else {
					err = l.AllowN(ctx, 1)
				}
				switch {
				case err == nil:
					got.Add(1)
				case o.Quota > 0 && errors.Is(err, ratelimit.ErrLimited):
					return
				case ctx.Err() == nil && waitless(err):
					odd.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if e := odd.Load(); e != nil {
		return got.Load(), *e
	}
	return got.Load(), nil
}

var _ = redistest.Child("hammer", func(s *redistest.Self) {
	var o order
	if err := json.Unmarshal([]byte(s.Args[0]), &o); err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: o.Addr})
	opts := Options{Prefix: o.Prefix, Timeout: relaxed, Prefetch: o.Prefetch}
	l, err := New(client, o.Cfg, opts)
	if o.Quota > 0 {
		l, err = NewQuota(client, "trial", o.Quota, opts)
	}
	if err != nil {
		panic(err)
	}
	s.Say("ready")
	s.In.Scan()
	admitted, err := hammer(l, o)
	s.Say("admitted %d", admitted)
	s.Say("strange %v", err)
	s.In.Scan() // keeps what it took ahead until the test has counted
})

func fleet(t *testing.T, n int, o order) []*redistest.Process {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	var all []*redistest.Process
	for range n {
		all = append(all, redistest.Spawn(t, "hammer", string(text)))
	}
	for _, p := range all {
		p.Expect(t, "ready")
	}
	return all
}

// drive lets the fleet go, and counts.
func drive(t *testing.T, all []*redistest.Process) (admitted []int) {
	t.Helper()
	for _, p := range all {
		p.Send(t, "go")
	}
	for _, p := range all {
		n, err := strconv.Atoi(p.Expect(t, "admitted "))
		require.NoError(t, err)
		admitted = append(admitted, n)
		require.Equal(t, "<nil>", p.Expect(t, "strange "))
	}
	return admitted
}

// Test 2: two processes × 100 goroutines: total ≤ burst + rate·Δt, in each mode; and what was there they get.
func TestTwoProcessesShareOneLimit(t *testing.T) {
	for name, change := range map[string]func(*order){
		"exact":         func(*order) {},
		"prefetch":      func(o *order) { o.Prefetch = 20 },
		"waiting":       func(o *order) { o.Wait, o.Cfg.MaxWait = true, time.Minute },
		"waiting ahead": func(o *order) { o.Wait, o.Cfg.MaxWait, o.Prefetch = true, time.Minute, 20 },
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Shared(t)
			o := order{
				Addr: server.Addr, Prefix: server.Prefix(t), Goroutines: 100, For: 700 * time.Millisecond,
				Cfg: ratelimit.Config{Name: "api", Rate: 400, Burst: 60},
			}
			change(&o)
			all := fleet(t, 2, o)
			began := time.Now()
			admitted := drive(t, all)
			took := time.Since(began)
			total := admitted[0] + admitted[1]
			most := float64(o.Cfg.Burst) + float64(o.Cfg.Rate)*took.Seconds()
			require.LessOrEqual(t, float64(total), math.Floor(most), "in %v: %v", took, admitted)
			require.GreaterOrEqual(t, total, o.Cfg.Burst, "in %v: %v", took, admitted)
		})
	}
}

// Test 2 for a quota: two processes get n together, not one more nor less.
func TestTwoProcessesShareOneQuota(t *testing.T) {
	for _, ahead := range []int{0, 7} {
		t.Run(fmt.Sprint("prefetch ", ahead), func(t *testing.T) {
			server := redistest.Shared(t)
			o := order{
				Addr: server.Addr, Prefix: server.Prefix(t), Quota: 3000, Prefetch: ahead,
				Goroutines: 100, For: redistest.Patience,
			}
			admitted := drive(t, fleet(t, 2, o))
			total := admitted[0] + admitted[1]
			require.LessOrEqual(t, total, 3000)
			require.GreaterOrEqual(t, total, 3000-2*ahead, "%v", admitted)
		})
	}
}

// Test 4: the same while scripts are flushed and connections killed all the time. What a killed connection leaves unknown is
// refused, and costs its tokens at most.
func TestTwoProcessesUnderScriptFlushAndClientKill(t *testing.T) {
	server := redistest.Start(t)
	p := of(t, server)
	p.opts.OnOutage = leaf.FailClosed // nobody is admitted that the store did not admit
	a, b := p.limiter(ratelimit.Config{Rate: 500, Burst: 100}), p.limiter(ratelimit.Config{Rate: 500, Burst: 100})
	stop, vandal := make(chan struct{}), sync.WaitGroup{}
	vandal.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
				server.Do(t, "script", "flush")
				_, _ = server.Try(t, "client", "kill", "type", "normal", "skipme", "yes")
			}
		}
	})
	began := time.Now()
	var total atomic.Int64
	var all sync.WaitGroup
	for _, l := range []*Limiter{a, b} {
		all.Go(func() {
			n, _ := hammer(l, order{Goroutines: 50, For: time.Second})
			total.Add(n)
		})
	}
	all.Wait()
	took := time.Since(began)
	close(stop)
	vandal.Wait()
	require.LessOrEqual(t, float64(total.Load()), 100+500*took.Seconds())
	require.GreaterOrEqual(t, total.Load(), int64(100), "it went on working")
}
