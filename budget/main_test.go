package budget

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"
)

var (
	ops  = flag.Int("ops", 100_000, "operations of each model test")
	seed = flag.Uint64("seed", 0, "seed of the model tests; 0 = a new one")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRand is a random source whose seed is printed when the test fails.
func newRand(t *testing.T) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with -seed %d -ops %d", s, *ops)
		}
	})
	return rand.New(rand.NewPCG(s, 0))
}

var year2026 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newClock() *clockwork.FakeClock { return clockwork.NewFakeClockAt(year2026) }
