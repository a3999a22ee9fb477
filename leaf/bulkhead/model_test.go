package bulkhead

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var ops = flag.Int("ops", 100_000, "operations of the random model test")

func TestWordTakesOnlyWhatIsFreeAndUnclaimed(t *testing.T) {
	for _, c := range []struct {
		name string
		w    word
		ok   bool
		next word
	}{
		{"two free", 2 * slot, true, slot},
		{"the last one", slot, true, 0},
		{"none", 0, false, 0},
		{"fewer than none, after the limit was lowered", -3 * slot, false, 0},
		{"none, somebody waits", waiting, false, 0},
		{"one on its way to a waiter", slot | waiting, false, 0},
		{"fewer than none, somebody waits", -slot | waiting, false, 0},
	} {
		next, ok := c.w.take()
		require.Equal(t, c.ok, ok, c.name)
		if ok {
			require.Equal(t, c.next, next, c.name)
		}
	}
	require.Equal(t, int64(-3), (-3*slot | waiting).free())
	require.Equal(t, int64(2), (2*slot | waiting).free())
}

// naive is the bulkhead as one would tell it: a number inside, and a line in front of the door.
type naive struct {
	max, inside int
	line        []*waiter
}

// let lets in who may go, and says who that was.
func (n *naive) let() (in []*waiter) {
	for n.inside < n.max && len(n.line) > 0 {
		in, n.line = append(in, n.line[0]), n.line[1:]
		n.inside++
	}
	return in
}

func TestRandomOperationsEqualTheNaiveModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	var (
		q       queue
		n       = naive{max: 3}
		waiters []*waiter // in the line, or granted and not taken up
		granted = map[*waiter]bool{}
	)
	q.word.Store(3 * int64(slot))
	check := func(i int, what string) {
		for _, w := range n.let() {
			granted[w] = true
		}
		w := word(q.word.Load())
		if int(w.free()) != n.max-n.inside || q.waiters.Len() != len(n.line) || (w&waiting != 0) != (len(n.line) > 0) {
			t.Fatalf("seed %d, operation %d, %s: free %d, queued %d, bit %d; want free %d, queued %d",
				seed, i, what, w.free(), q.waiters.Len(), w&waiting, n.max-n.inside, len(n.line))
		}
		for _, w := range waiters {
			select {
			case <-w.ready:
				require.True(t, granted[w], "seed %d, operation %d, %s: granted out of turn", seed, i, what)
			default:
				require.False(t, granted[w], "seed %d, operation %d, %s: not granted in turn", seed, i, what)
			}
		}
	}
	for i := range *ops {
		switch op := rnd.IntN(16); {
		case op < 4:
			got, want := q.take(), n.inside < n.max && len(n.line) == 0
			require.Equal(t, want, got, "seed %d, operation %d: take", seed, i)
			if want {
				n.inside++
			}
			check(i, "take")
		case op < 9:
			most := rnd.IntN(5)
			w, taken := q.join(most)
			switch {
			case n.inside < n.max && len(n.line) == 0:
				require.True(t, taken, "seed %d, operation %d: join", seed, i)
				n.inside++
			case most == 0 || len(n.line) < most:
				require.NotNil(t, w, "seed %d, operation %d: join", seed, i)
				n.line, waiters = append(n.line, w), append(waiters, w)
			default:
				require.False(t, taken || w != nil, "seed %d, operation %d: join", seed, i)
			}
			check(i, "join")
		case op < 13 && n.inside > len(granted): // somebody who is in, and knows it, goes
			q.give()
			n.inside--
			check(i, "give")
		case op < 15 && len(waiters) > 0: // a waiter takes up its grant, or leaves, granted or not
			at := rnd.IntN(len(waiters))
			w := waiters[at]
			waiters = slices.Delete(waiters, at, at+1)
			if granted[w] && rnd.IntN(2) == 0 {
				delete(granted, w)
				continue
			}
			q.leave(w)
			if granted[w] {
				n.inside--
				delete(granted, w)
			} else {
				n.line = slices.DeleteFunc(n.line, func(o *waiter) bool { return o == w })
			}
			check(i, "leave")
		case rnd.IntN(10) == 0:
			by := rnd.IntN(5) + 1 - n.max
			q.mu.Lock()
			q.resize(int64(by))
			q.mu.Unlock()
			n.max += by
			check(i, "resize")
		}
	}
}
