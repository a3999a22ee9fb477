package redisbulkhead

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/stretchr/testify/require"
)

// Queueing costs the store nothing: who stands behind one that waits knows the answer.
func TestWhoComesBehindOneThatWaitsCostsNoStoreCall(t *testing.T) {
	b := open(t, redistest.Shared(t).Client(t), waiting(2), Options{Timeout: calm})
	one, two := take(t, b), take(t, b)
	first := goAcquire(t, bg, b)
	registered(t, b, 1)

	c := &call{wait: true, ends: endless, ready: make(chan struct{})}
	asks, err := b.join(c)
	require.NoError(t, err)
	require.True(t, asks, "the store should know that a second slot is wanted")
	registered(t, b, 2)

	d := &call{wait: true, ends: endless, ready: make(chan struct{})}
	asks, err = b.join(d)
	require.NoError(t, err)
	require.False(t, asks)
	require.True(t, d.waits)
	b.leave(d)

	b.mu.Lock()
	b.outage.down = true // the policy decides on everybody who comes
	b.mu.Unlock()
	d = &call{wait: true, ends: endless, ready: make(chan struct{})}
	asks, err = b.join(d)
	require.NoError(t, err)
	require.True(t, asks)
	b.leave(d)
	b.leave(c)
	back(t, one)
	back(t, (<-first).permit)
	back(t, two)
}

// The answer to a turn is also that to who came during it. Else a turn would be taken for them, in which others come, without end.
func TestWhoComesDuringATurnOverhearsItsAnswer(t *testing.T) {
	for _, row := range []struct {
		name       string
		mostQueued int
		flags      int64
		wants      int  // at the turn
		waiting    int  // of the one in the turn, and 6 who come during it, of whom one only asks
		again      bool // a turn is due for who has not heard
	}{
		{name: "the line deals as many as there are", wants: 2, flags: flagWaiting, waiting: 6},
		{name: "the store should know that more are wanted", wants: 1, flags: flagWaiting, waiting: 1, again: true},
		{name: "it does not stand in the line", wants: 2, waiting: 1, again: true},
		{name: "there is no place for all", mostQueued: 3, wants: 2, flags: flagWaiting, waiting: 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := idle(t, bulkhead.Config{Name: "db", MaxConcurrent: 2, MaxWait: time.Hour, MaxQueue: row.mostQueued})
			comes := func(wait bool) *call {
				c := &call{wait: wait, ends: endless, ready: make(chan struct{})}
				asks, err := b.join(c)
				require.NoError(t, err)
				require.True(t, asks)
				return c
			}
			all := []*call{comes(true)}
			b.mu.Lock()
			turn := b.compose(time.Now())
			b.mu.Unlock()
			turn.queued = row.wants
			for i := range 6 {
				all = append(all, comes(i != 2))
			}
			b.engine.now = false
			require.Empty(t, b.worked(turn, answer{now: 1, flags: row.flags}, time.Now()))
			require.Equal(t, row.waiting, b.Queued())
			require.Equal(t, row.again, b.engine.now)
			for i, c := range all {
				switch {
				case row.again:
					require.Equal(t, i > 0, c.queued && !c.waits, i)
				case i == 3 || row.mostQueued > 0 && i > 3: // the one that only asks, and those for whom there is no place
					require.ErrorIs(t, c.err, bulkhead.ErrFull, i)
				default:
					require.True(t, c.queued && c.waits, i)
				}
				b.leave(c)
			}
			require.Zero(t, b.Queued())
			require.Empty(t, members(t, &b.queue))
		})
	}
}

// beyond is a bulkhead with more slots than one turn can ask for, for which more wait than that; another comes, and all leave.
func beyond(t *testing.T) (b *Bulkhead, comes func() *call, leave func()) {
	b = idle(t, bulkhead.Config{Name: "db", MaxConcurrent: 3 * mostInTurn, MaxWait: time.Hour})
	var all []*call
	comes = func() *call {
		c := &call{wait: true, ends: endless, ready: make(chan struct{})}
		_, err := b.join(c)
		require.NoError(t, err)
		all = append(all, c)
		return c
	}
	for range mostInTurn + 20 {
		comes()
	}
	refuses(b)
	return b, comes, func() {
		for _, c := range all {
			b.leave(c)
		}
		b.mu.Lock()
		b.releases = nil
		b.mu.Unlock()
	}
}

// Where one turn cannot ask for every slot that there may be, one that was given all that it asked for says nothing of the others.
func TestAnAnswerThatGaveAllSaysNothingToWhoIsBeyondTheTurn(t *testing.T) {
	for _, granted := range []int64{mostInTurn, mostInTurn - 1} {
		b, comes, leave := beyond(t)
		var last *call
		for range 5 {
			last = comes()
		}
		b.mu.Lock()
		turn := b.compose(time.Now())
		b.engine.now = false
		b.mu.Unlock()
		require.Len(t, turn.tokens, mostInTurn)
		require.Len(t, turn.calls, 5, "nobody who asks is hidden by those who wait")
		b.worked(turn, answer{now: 1, flags: flagWaiting, granted: granted}, time.Now())
		require.Equal(t, granted == mostInTurn, b.engine.now)
		require.Equal(t, granted < mostInTurn, last.waits)
		leave()
	}
}

// A turn that could not ask for everybody still asks for them: one that finds no more slots is an answer to all who asked, also where
// others come during it. Who is not asked for is left to the policy, which may admit it.
func TestWhoStandsBeyondTheTurnIsAskedForAllTheSame(t *testing.T) {
	b, comes, leave := beyond(t)
	for range 10 { // turn after turn, in each of which somebody comes
		asking := comes()
		b.mu.Lock()
		turn := b.compose(time.Now())
		b.engine.now = false
		b.mu.Unlock()
		during := comes()
		require.Contains(t, turn.calls, asking)
		b.worked(turn, answer{now: 1, flags: flagWaiting}, time.Now())
		require.True(t, asking.waits)
		require.True(t, during.waits || b.engine.now, "it is answered, or asked for at once")
	}
	leave()
}

// registered waits until the store knows how many slots b wants.
func registered(t *testing.T, b *Bulkhead, wants int) {
	t.Helper()
	redistest.Eventually(t, "it stands in the line", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.engine.registered && b.engine.wants == wants && b.waiting == wants
	})
}

func TestSlotsThatAreSpentTogetherComeBackInOneTurn(t *testing.T) {
	now := time.Now()
	ms := time.Millisecond
	for _, row := range []struct {
		name          string
		lively        int
		granted, took time.Duration
		at            time.Duration // 0 = at once
	}{
		{"the last one has nobody to wait for", 0, 0, ms / 2, 0},
		{"the others came just now", 3, 0, ms / 2, ms / 2},
		{"they have had half of the time", 3, -ms / 4, ms / 2, ms / 4},
		{"a turn could have come back: they hold on to their slots", 3, -ms / 2, ms / 2, 0},
		{"a slow store's turns are not waited for", 3, 0, 40 * ms, ms},
		{"nothing came yet", 3, -time.Hour, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := open(t, redistest.Shared(t).Client(t), waiting(8), Options{Timeout: calm})
			b.mu.Lock()
			b.lively = row.lively
			b.engine.granted, b.engine.took = now.Add(row.granted), row.took
			b.engine.running = true // so that it is not begun
			b.engine.wake = make(chan struct{}, 1)
			b.soon(now)
			spent, at := b.engine.spent, b.engine.at
			b.engine.running, b.lively = false, 0
			b.mu.Unlock()
			require.Equal(t, row.at == 0, spent)
			if row.at > 0 {
				require.Equal(t, now.Add(row.at), at)
			}
		})
	}
}

// A process that was in one quarantine last reports in the next one, too, at once and not at its next renewal.
func TestASecondLossIsASecondQuarantine(t *testing.T) {
	v := newVirtual()
	s := redistest.Shared(t)
	two := fleet(t, 2, once(3), Options{Now: v.Now, LeaseTTL: time.Hour})
	p := take(t, two[0])
	back(t, take(t, two[1]))
	for i := range 2 {
		s.Do(t, "del", two[0].store.Key())
		isFull(t, two[1]) // it begins
		isFull(t, two[0])
		redistest.Eventually(t, "the holder has reported", func() bool { return inUse(t, two[1]) == 1 })
		v.advance(20*time.Minute + time.Duration(i+1)*time.Second)
		back(t, take(t, two[1]))
	}
	back(t, p)
}
