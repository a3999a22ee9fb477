package cooldown

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

var ops = flag.Int("ops", 100_000, "operations of the random model test")

// The naive model knows the time that is left, and nothing of instants.
func TestRandomOperationsEqualTheNaiveModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := clockwork.NewFakeClockAt(start)
	most := time.Minute
	g, err := New(Config{Max: most, Clock: c})
	require.NoError(t, err)
	var left time.Duration
	for i := range *ops {
		switch d := time.Duration(rnd.Int64N(int64(2*most))) - most/4; rnd.IntN(8) {
		case 0, 1:
			g.Hint(bg, d)
			left = max(left, min(d, most))
		case 2, 3, 4:
			d = max(0, d/4)
			if rnd.IntN(3) == 0 {
				d = left // exactly due
			}
			c.Advance(d)
			left = max(0, left-d)
		case 5:
			_, err := g.Acquire(bg)
			require.Equal(t, left == 0, err == nil, "seed %d, operation %d", seed, i)
		case 6:
			most = time.Duration(1 + rnd.Int64N(int64(time.Hour)))
			require.NoError(t, g.Update(Config{Max: most, Clock: c}))
			left = min(left, most)
		case 7:
			c.Advance(-40 * 365 * 24 * time.Hour)
			left = 0
			_, err := g.Acquire(bg)
			require.NoError(t, err, "seed %d, operation %d: jump", seed, i)
			c.Advance(40 * 365 * 24 * time.Hour)
		}
		if got := g.Wait(); got != left {
			t.Fatalf("seed %d, operation %d: %v left, want %v", seed, i, got, left)
		}
	}
}
