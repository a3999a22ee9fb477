package redisbulkhead

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/stretchr/testify/require"
)

// party is a process that stands in the line.
type party struct {
	since              int64
	count, want, share int
}

// queueUp puts parties into the line of b, for as long as they are needed.
func queueUp(t *testing.T, s *redistest.Server, b *Bulkhead, now time.Time, all []party) {
	t.Helper()
	back(t, take(t, b)) // so that there is a line
	args := []any{"zadd", b.store.Key()}
	for i, p := range all {
		args = append(args, -now.Add(time.Hour).UnixMicro(), fmt.Sprintf("w%016d%016d%03d%016d", p.since, p.count, p.want, i))
	}
	s.Do(t, args...)
}

// dealt is what the last of all gets of the free slots, each of which goes to who has had the fewest and has waited longest.
func dealt(free int, all []party) int {
	for ; free > 0; free-- {
		var next *party
		for i := range all {
			p := &all[i]
			if p.share < p.want && (next == nil || p.count+p.share < next.count+next.share ||
				p.count+p.share == next.count+next.share && p.since < next.since) {
				next = p
			}
		}
		if next == nil {
			break
		}
		next.share++
	}
	return all[len(all)-1].share
}

// The oracle deals one by one; who comes has had as many as whoever has had the fewest.
func TestFreeSlotsAreDealtAsOneByOne(t *testing.T) {
	s, v := redistest.Shared(t), newVirtual()
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		free := 1 + draw.IntN(30)
		b := open(t, s.Client(t), waiting(free), Options{Prefix: s.Prefix(t), Timeout: calm, Now: v.Now})
		all, least := make([]party, 1+draw.IntN(8)), 1<<30
		for i := range all {
			all[i] = party{since: int64(1000 - i), count: draw.IntN(10), want: 1 + draw.IntN(10)}
			least = min(least, all[i].count)
		}
		queueUp(t, s, b, v.Now(), all)
		c := &turnCall{limit: free, queued: 1 + draw.IntN(free), wait: true, overdue: never}
		for range c.queued {
			c.tokens = append(c.tokens, random())
		}
		reply, err := b.store.Do(bg, redisscript.Call{Op: leaf.OpAdmit, Script: turn, Args: c.args(b)})
		require.NoError(t, err)
		a, err := c.read(reply)
		require.NoError(t, err)
		all = append(all, party{since: v.at.Load(), count: least, want: c.queued})
		require.EqualValues(t, dealt(free, all), a.granted, "%d of %+v", free, all)
	}
}

// A slot that is free goes to one of those who wait for it, also where they came in the same instant and have had as many.
func TestWhoCameInTheSameInstantDoesNotLeaveTheSlotToTheOther(t *testing.T) {
	v := newVirtual() // which stands still
	all := fleet(t, 3, waiting(1), Options{Now: v.Now})
	p := take(t, all[0])
	served := make(chan error, 2)
	for _, b := range all[1:] {
		go func() {
			ctx, cancel := context.WithTimeout(bg, 10*time.Second)
			defer cancel()
			q, err := b.Acquire(ctx)
			if err == nil {
				err = q.Settle(bg, leaf.Outcome{})
			}
			served <- err
		}()
		redistest.Eventually(t, "it stands in the line", func() bool { return inLine(b) })
	}
	back(t, p)
	require.NoError(t, <-served)
	require.NoError(t, <-served)
}

func inLine(b *Bulkhead) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.engine.registered
}

// The end of a quarantine, the death of a large holder, an Update: what takes the server's time must not grow with slots times
// processes, or the whole fleet finds a store that does not answer.
func TestThousandsOfFreeSlotsForHundredsWhoWaitAreDealtInTime(t *testing.T) {
	s := redistest.Shared(t)
	cfg := bulkhead.Config{Name: "db", MaxConcurrent: 20_000, MaxWait: time.Hour}
	b := open(t, s.Client(t), cfg, Options{Prefix: s.Prefix(t), Timeout: 300 * time.Millisecond, OnOutage: leaf.FailClosed})
	all := make([]party, 200)
	for i := range all {
		all[i] = party{since: int64(i), count: i % 10, want: 999}
	}
	queueUp(t, s, b, time.Now(), all)
	back(t, take(t, b))
}
