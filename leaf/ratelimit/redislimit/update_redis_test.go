package redislimit

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// Update keeps the balance of that instant, at most the new Burst, in whatever direction.
func TestUpdateKeepsTheBalance(t *testing.T) {
	old := ratelimit.Config{Name: "api", Rate: 10, Burst: 10}
	for name, c := range map[string]struct {
		next        ratelimit.Config
		spent       int
		left, after float64 // at once, and a second later
	}{
		"faster":           {ratelimit.Config{Name: "api", Rate: 100, Burst: 10}, 4, 6, 10},
		"slower":           {ratelimit.Config{Name: "api", Rate: 1, Burst: 10}, 4, 6, 7},
		"slower and empty": {ratelimit.Config{Name: "api", Rate: 1, Burst: 10}, 10, 0, 1},
		"larger":           {ratelimit.Config{Name: "api", Rate: 10, Burst: 50}, 4, 6, 16},
		"smaller":          {ratelimit.Config{Name: "api", Rate: 10, Burst: 5}, 4, 5, 5},
		"another interval": {ratelimit.Config{Name: "api", Rate: 1, Per: 3 * time.Second, Burst: 20}, 3, 7, 7 + 1.0/3},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVirtual()
			p := on(t).frozen(v)
			l := p.limiter(old)
			require.NoError(t, l.AllowN(bg, c.spent))
			require.NoError(t, l.Update(c.next))
			require.InDelta(t, c.left, tokens(t, l), 1e-6)
			if int(c.left) < c.next.Burst {
				require.ErrorIs(t, l.AllowN(bg, int(c.left)+1), ratelimit.ErrLimited)
			}
			v.at(1)
			require.InDelta(t, c.after, tokens(t, l), 1e-6)
		})
	}
}

// A fleet whose processes learn of new parameters one after the other, and use the old ones meanwhile, has at no moment more
// than one bucket: nobody's Update mints, and the balance is carried over once.
func TestUpdateOfAFleetMintsNothing(t *testing.T) {
	v := newVirtual()
	p := on(t).frozen(v)
	old := ratelimit.Config{Name: "api", Rate: 10, Burst: 10}
	next := ratelimit.Config{Name: "api", Rate: 1, Burst: 20}
	var all []*Limiter
	for range 5 {
		all = append(all, p.limiter(old))
	}
	require.NoError(t, all[0].AllowN(bg, 7))
	for _, l := range all {
		require.NoError(t, l.Update(next))
		for _, l := range all {
			require.InDelta(t, 3, tokens(t, l), 1e-6)
			require.ErrorIs(t, l.AllowN(bg, 4), ratelimit.ErrLimited)
		}
	}
	require.NoError(t, all[4].AllowN(bg, 1))
	require.NoError(t, all[0].Update(old)) // and back
	require.InDelta(t, 2, tokens(t, all[0]), 1e-6)
	require.NoError(t, all[0].AllowN(bg, 1))
	require.InDelta(t, 1, tokens(t, all[4]), 1e-6)
	require.NoError(t, all[4].AllowN(bg, 1))
	for _, l := range all {
		require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited)
	}
}

// Nobody finds a full bucket because a process whose own fills earlier has written the key last: in the middle of a change of Burst
// the larger one would be there anew each time.
func TestAKeyThatSeveralBurstsShareLivesUntilTheLargestIsFull(t *testing.T) {
	small := ratelimit.Config{Name: "api", Rate: 10, Burst: 5}
	large := ratelimit.Config{Name: "api", Rate: 10, Burst: 1000}
	for name, c := range map[string][2]ratelimit.Config{"to a larger one": {small, large}, "to a smaller one": {large, small}} {
		t.Run(name, func(t *testing.T) {
			p := on(t)
			all := map[int]*Limiter{c[0].Burst: p.limiter(c[0]), c[1].Burst: p.limiter(c[0])}
			require.NoError(t, all[c[1].Burst].Update(c[1]))
			key := all[5].store.Key()
			require.NoError(t, all[1000].AllowN(bg, 1000))
			require.ErrorIs(t, all[5].AllowN(bg, 1), ratelimit.ErrLimited)
			require.Greater(t, pttl(t, p, key), 99*time.Second)
			redistest.Eventually(t, "one comes", func() bool { return all[5].AllowN(bg, 1) == nil })
			require.Greater(t, pttl(t, p, key), 99*time.Second)
			require.ErrorIs(t, all[1000].AllowN(bg, 100), ratelimit.ErrLimited)
		})
	}
}

// Two rates under one name share the bucket: the larger one's debt is a debt for all.
func TestTwoRatesUnderOneNameShareTheBucket(t *testing.T) {
	v := newVirtual()
	p := on(t).frozen(v)
	slow, fast := p.limiter(ratelimit.Config{Rate: 1, Burst: 10}), p.limiter(ratelimit.Config{Rate: 10, Burst: 10})
	require.NoError(t, fast.AllowN(bg, 10))
	require.Equal(t, 9.0, tokens(t, slow), "a second until it is full")
	require.NoError(t, slow.AllowN(bg, 9))
	require.ErrorIs(t, fast.AllowN(bg, 1), ratelimit.ErrLimited)
	require.ErrorIs(t, fast.AllowN(bg, 1), ratelimit.ErrLimited)
	require.NoError(t, fast.AllowN(bg, 0))
}

// Who waits keeps its place; where the new rate does not serve it in time it is refused now, and what is more than the new
// Burst is a usage error. A faster rate serves it earlier.
func TestUpdateAndWaiters(t *testing.T) {
	for name, c := range map[string]struct {
		next  ratelimit.Config
		check func(*testing.T, error)
	}{
		"too slow":  {ratelimit.Config{Name: "api", Rate: 1, Per: 100 * time.Hour, Burst: 5, MaxWait: time.Hour}, func(t *testing.T, err error) { require.ErrorIs(t, err, ratelimit.ErrLimited) }},
		"too small": {ratelimit.Config{Name: "api", Rate: 1, Per: time.Hour, Burst: 2, MaxWait: 5 * time.Hour}, func(t *testing.T, err error) { require.ErrorContains(t, err, "n is 3: want 0 to 2") }},
		"faster":    {ratelimit.Config{Name: "api", Rate: 1000, Burst: 5, MaxWait: 5 * time.Hour}, func(t *testing.T, err error) { require.NoError(t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			l := on(t).limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 5, MaxWait: 5 * time.Hour})
			require.NoError(t, l.AllowN(bg, 5))
			answer := make(chan error, 1)
			go func() { answer <- l.Wait(bg, 3) }()
			redistest.Eventually(t, "it waits", func() bool { return queued(l) == 1 })
			require.NoError(t, l.Update(c.next))
			c.check(t, <-answer)
			require.Equal(t, 0, queued(l))
			require.Equal(t, c.next.Burst, l.Config().Burst)
		})
	}
}

func TestUpdateOfAQuotaKeepsWhatIsSpent(t *testing.T) {
	p := on(t)
	l := p.quota(10)
	require.NoError(t, l.AllowN(bg, 8))
	require.NoError(t, l.Update(ratelimit.Config{Name: "trial", Burst: 5}))
	require.Equal(t, 0.0, tokens(t, l))
	require.Less(t, waitOf(t, l.AllowN(bg, 1)), time.Duration(0))
	require.NoError(t, l.Update(ratelimit.Config{Name: "trial", Burst: 9}))
	require.NoError(t, l.AllowN(bg, 1))
	require.Error(t, l.AllowN(bg, 1))
}

// An invalid Update is an error that names what is wrong, and changes nothing.
func TestInvalidUpdate(t *testing.T) {
	p := on(t)
	cfg := ratelimit.Config{Name: "api", Rate: 10, Burst: 10}
	l := p.limiter(cfg, func(o *Options) { o.Prefetch = 10 })
	for want, c := range map[string]ratelimit.Config{
		`Name is "other"`: {Name: "other", Rate: 10, Burst: 10},
		"Rate is -1":      {Name: "api", Rate: -1, Burst: 10},
		"Prefetch is 10":  {Name: "api", Rate: 10, Burst: 9},
		"Clock is":        {Name: "api", Rate: 10, Burst: 10, Clock: clockwork.NewFakeClock()},
	} {
		require.ErrorContains(t, l.Update(c), want)
		require.Equal(t, ratelimit.Config{Name: "api", Rate: 10, Per: time.Second, Burst: 10}, l.Config())
	}
	q := p.quota(10)
	require.ErrorContains(t, q.Update(ratelimit.Config{Name: "trial", Rate: 1, Burst: 10}), "Rate is 1")
	require.ErrorContains(t, q.Update(ratelimit.Config{Name: "trial", Burst: maxQuota + 1}), "n is 9007199254740992")
	require.Equal(t, 10, q.Config().Burst)
}
