package rediscooldown

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestWhatOneWasAskedAllKeep(t *testing.T) {
	f := virtual(t)
	a, b := f.join(cooldown.Config{}), f.join(cooldown.Config{})
	require.Zero(t, refused(t, a))
	a.Hint(bg, 10*time.Second)
	require.Equal(t, 10*time.Second, refused(t, a), "at once")
	heard(t, a)
	f.clock.Advance(3 * time.Second)
	require.Equal(t, 7*time.Second, refused(t, b), "by the store's clock, exactly")
	require.Equal(t, 7*time.Second, refused(t, f.join(cooldown.Config{})), "one that starts now, too")
	f.clock.Advance(7*time.Second - 1)
	require.EqualValues(t, 1, refused(t, a))
	require.EqualValues(t, 1, refused(t, b))
	f.clock.Advance(1)
	for _, c := range []*Cooldown{a, b, f.join(cooldown.Config{})} {
		require.Zero(t, refused(t, c))
		require.Zero(t, c.Wait())
		require.NoError(t, c.Peek(bg))
	}
	require.Zero(t, refused(t, f.join(cooldown.Config{Name: "other"})))
}

// The bound: what was heard less than 50 ms ago is good, after 50 ms the next call reads in the background, after 100 ms it waits.
func TestViewIsNoOlderThanAHundredMilliseconds(t *testing.T) {
	f := virtual(t)
	a, b := f.join(cooldown.Config{}), f.join(cooldown.Config{})
	require.Zero(t, refused(t, b))
	a.Hint(bg, time.Minute)
	heard(t, a)
	f.clock.Advance(50*time.Millisecond - 1)
	require.Zero(t, refused(t, b))
	quiet(t, b)
	require.Zero(t, b.Wait(), "nobody asked")
	f.clock.Advance(1)
	require.Zero(t, refused(t, b), "the call does not wait")
	redistest.Eventually(t, "it is known", func() bool { return b.Wait() == time.Minute-50*time.Millisecond })
	require.Equal(t, time.Minute-50*time.Millisecond, refused(t, b))

	c := f.join(cooldown.Config{Name: "second"})
	require.Zero(t, refused(t, c))
	f.clock.Advance(100 * time.Millisecond)
	d := f.join(cooldown.Config{Name: "second"})
	d.Hint(bg, time.Minute)
	heard(t, d)
	require.Equal(t, time.Minute, refused(t, c), "the call waits")
}

// A clock that went back, or another bubble's, says nothing of a view's age: it is asked again.
func TestViewOfAnotherTimeIsNone(t *testing.T) {
	f := virtual(t)
	a, b := f.join(cooldown.Config{}), f.join(cooldown.Config{Clock: clockwork.NewFakeClockAt(start)})
	require.Zero(t, refused(t, b))
	a.Hint(bg, time.Minute)
	heard(t, a)
	b.Config().Clock.(*clockwork.FakeClock).Advance(-1)
	require.Equal(t, time.Minute, refused(t, b))
}

// A known instant refuses without asking, and a fresh view admits without asking.
func TestKnownCostsNoRoundTrip(t *testing.T) {
	server, clock := redistest.Start(t), clockwork.NewFakeClockAt(start)
	f := &fleet{t, server, server.Client(t), clock, Options{Timeout: patient, Now: clock.Now}}
	a := f.join(cooldown.Config{})
	calls := func() int { return server.Calls(t, "evalsha") }
	require.Zero(t, calls(), "constructing sends nothing")
	for range 1000 {
		require.Zero(t, refused(t, a))
	}
	require.Equal(t, 1, calls())
	a.Hint(bg, time.Hour)
	heard(t, a)
	require.Equal(t, 2, calls())
	for range 1000 {
		f.clock.Advance(59 * time.Millisecond) // older than any view
		require.Positive(t, refused(t, a))
		require.Error(t, a.Peek(bg))
		a.Hint(bg, a.Wait()) // moves nothing
		_ = a.Inspect()
	}
	require.Equal(t, 2, calls())
}

func TestHintsOnlyEverExtendUpToMax(t *testing.T) {
	for _, c := range []struct {
		name  string
		hints []time.Duration
		want  time.Duration
	}{
		{"a longer one extends", []time.Duration{time.Second, 5 * time.Second}, 5 * time.Second},
		{"a shorter one does not shorten", []time.Duration{5 * time.Second, time.Second}, 5 * time.Second},
		{"nothing changes nothing", []time.Duration{5 * time.Second, 0, -time.Hour}, 5 * time.Second},
		{"capped", []time.Duration{2 * time.Hour}, time.Minute},
		{"a nanosecond is rounded up to what the store counts", []time.Duration{1}, time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := virtual(t)
			for _, h := range c.hints { // each from a process that knows nothing
				p := f.join(cooldown.Config{})
				p.Hint(bg, h)
				heard(t, p)
			}
			require.Equal(t, c.want, refused(t, f.join(cooldown.Config{})))
		})
	}
}

// Each process keeps to its own Max.
func TestMaxIsEachProcessesOwn(t *testing.T) {
	f := virtual(t)
	long, short := f.join(cooldown.Config{Max: time.Hour}), f.join(cooldown.Config{Max: 10 * time.Second})
	long.Hint(bg, 50*time.Minute)
	heard(t, long)
	require.Equal(t, 10*time.Second, refused(t, short))
	f.clock.Advance(10 * time.Second)
	require.Equal(t, 10*time.Second, refused(t, short), "it asks again")
	short.Hint(bg, time.Hour)
	heard(t, short)
	require.Equal(t, 50*time.Minute-10*time.Second, refused(t, f.join(cooldown.Config{Max: time.Hour})), "not shortened")
}

// Random operations of three processes equal one instant, to the microsecond: whoever knows an earlier one refuses until then, and
// asks again.
func TestRandomOperationsEqualOneInstant(t *testing.T) {
	const ops = 1500
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	f := virtual(t)
	procs := []*Cooldown{f.join(cooldown.Config{}), f.join(cooldown.Config{}), f.join(cooldown.Config{})}
	var left time.Duration
	for i := range ops {
		p := procs[rnd.IntN(len(procs))]
		switch d := time.Duration(rnd.Int64N(int64(80*time.Second))) - 10*time.Second; rnd.IntN(6) {
		case 0, 1:
			d = d.Truncate(time.Microsecond)
			p.Hint(bg, d)
			heard(t, p)
			left = max(left, min(d, time.Minute))
		case 2, 3:
			d = max(100*time.Millisecond, d/4).Truncate(time.Microsecond)
			if left >= 100*time.Millisecond && rnd.IntN(3) == 0 {
				d = left // exactly due
			}
			f.clock.Advance(d)
			left = max(0, left-d)
		default:
			// A view as old as the last step of the clock may be good: whoever admits on it has heard of the last step only.
			f.clock.Advance(100 * time.Millisecond)
			left = max(0, left-100*time.Millisecond)
			got := refused(t, p)
			require.Equal(t, left > 0, got > 0, "seed %d, operation %d: %v left, %v told", seed, i, left, got)
			require.LessOrEqual(t, got, left, "seed %d, operation %d", seed, i)
		}
	}
}

// C39: one authority for time. What two nodes' clocks say, an hour apart, changes nothing.
func TestSkewedNodesAgree(t *testing.T) {
	f := virtual(t)
	ahead, behind := clockwork.NewFakeClockAt(start.Add(time.Hour)), clockwork.NewFakeClockAt(start.Add(-time.Hour))
	a, b := f.join(cooldown.Config{Clock: ahead}), f.join(cooldown.Config{Clock: behind})
	a.Hint(bg, 30*time.Second)
	heard(t, a)
	for _, c := range []*clockwork.FakeClock{f.clock, ahead, behind} {
		c.Advance(10 * time.Second)
	}
	require.Equal(t, 20*time.Second, refused(t, b))
	require.Equal(t, 20*time.Second, refused(t, a))
}

// The server's clock steps back by an hour: what lies further ahead than its hint could make it is none, and nobody waits an hour.
func TestServersClockStepsBack(t *testing.T) {
	f := virtual(t)
	a := f.join(cooldown.Config{Clock: clockwork.NewFakeClockAt(start)})
	a.Hint(bg, time.Minute)
	heard(t, a)
	f.clock.Advance(-time.Hour)
	b := f.join(cooldown.Config{Max: 3 * time.Hour})
	require.Zero(t, refused(t, b))
	b.Hint(bg, time.Second)
	heard(t, b)
	require.Equal(t, time.Second, refused(t, f.join(cooldown.Config{Max: 3 * time.Hour})))
	require.Equal(t, time.Minute, refused(t, a), "its own clock did not step")
}

// The life of a key ends with its instant; where time is virtual it is at least an hour. Reading writes nothing.
func TestKeyLivesAsLongAsItsInstant(t *testing.T) {
	f := virtual(t)
	a := f.join(cooldown.Config{})
	key := redisscript.Key(f.opts.Prefix, "cooldown", "partner")
	require.Zero(t, refused(t, a))
	require.Zero(t, f.client.Exists(bg, key).Val())
	a.Hint(bg, 30*time.Second)
	heard(t, a)
	require.Greater(t, f.client.PTTL(bg, key).Val(), 59*time.Minute)

	f.opts.Now, f.clock = nil, nil
	real := f.join(cooldown.Config{Name: "real"})
	real.Hint(bg, 30*time.Second)
	heard(t, real)
	ttl := f.client.PTTL(bg, redisscript.Key(f.opts.Prefix, "cooldown", "real")).Val()
	require.LessOrEqual(t, ttl, 30*time.Second+time.Millisecond)
	require.Greater(t, ttl, 20*time.Second)
	century := f.join(cooldown.Config{Name: "century", Max: 1<<63 - 1})
	century.Hint(bg, 1<<63-1)
	heard(t, century)
	require.Equal(t, longest.Truncate(time.Hour), refused(t, f.join(cooldown.Config{Name: "century", Max: 1<<63 - 1})).Round(time.Hour))
}

// Real time, real processes: what the child was asked, the parent keeps, and the other way round.
var _ = redistest.Child("cooldown", func(s *redistest.Self) {
	client := redis.NewClient(&redis.Options{Addr: s.Args[0]})
	c, err := New(client, cooldown.Config{Name: "partner", Max: time.Hour}, Options{Prefix: s.Args[1], Timeout: patient})
	if err != nil {
		panic(err)
	}
	for s.In.Scan() {
		verb, arg, _ := strings.Cut(s.In.Text(), " ")
		switch verb {
		case "hint":
			d, err := time.ParseDuration(arg)
			if err != nil {
				panic(err)
			}
			c.Hint(bg, d)
			s.Say("hinted")
		case "acquire":
			_, err := c.Acquire(bg)
			wait := time.Duration(0)
			if e, ok := errors.AsType[*cooldown.Error](err); ok {
				wait = e.Wait
			}
			s.Say("wait %d", wait)
		}
	}
	if err := c.Close(bg); err != nil {
		panic(err)
	}
})

func TestTwoProcessesShareAnInstant(t *testing.T) {
	server := redistest.Shared(t)
	f := &fleet{t: t, server: server, client: server.Client(t), opts: Options{Prefix: server.Prefix(t), Timeout: patient}}
	here := f.join(cooldown.Config{Max: time.Hour})
	there := redistest.Spawn(t, "cooldown", server.Addr, f.opts.Prefix)
	ask := func() time.Duration {
		there.Send(t, "acquire")
		ns, err := strconv.ParseInt(there.Expect(t, "wait "), 10, 64)
		require.NoError(t, err)
		return time.Duration(ns)
	}
	require.Zero(t, ask())
	require.Zero(t, refused(t, here))
	there.Send(t, "hint 30m")
	there.Expect(t, "hinted")
	redistest.Within(t, stale+patient, "it is known here", func() bool { return refused(t, here) > 0 })
	require.InDelta(t, 30*time.Minute, refused(t, here), float64(5*time.Second))
	here.Hint(bg, 45*time.Minute)
	heard(t, here)
	require.InDelta(t, 30*time.Minute, ask(), float64(10*time.Second), "what is known refuses, and asks nobody")
	there.CloseInput()
	there.Wait(t)
}

func TestClusterAndSentinelShareToo(t *testing.T) {
	clients := map[string]redis.UniversalClient{
		"Cluster": redistest.StartCluster(t).Client(t), "Sentinel": redistest.StartSentinel(t).Client(t),
	}
	for name, client := range clients {
		for _, n := range []string{"", "a{b}:c", "\x00", strings.Repeat("x", 10<<10)} {
			f := &fleet{t: t, client: client, opts: Options{Timeout: patient}}
			cfg := cooldown.Config{Name: n, Max: time.Hour}
			a, err := New(client, cfg, f.opts)
			require.NoError(t, err)
			b, err := New(client, cfg, f.opts)
			require.NoError(t, err)
			a.Hint(bg, time.Hour)
			heard(t, a)
			require.Greater(t, refused(t, b), 59*time.Minute, "%s, name %.20q", name, n)
			require.NoError(t, a.Close(bg))
			require.NoError(t, b.Close(bg))
		}
	}
}
