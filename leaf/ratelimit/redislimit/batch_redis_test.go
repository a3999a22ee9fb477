package redislimit

import (
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Everyone who arrives while a call is under way rides on the next, also where no two neighbours ask for the same; and as
// many as one call of the store holds, not one more.
func TestEveryoneWhoArrivesMeanwhileRidesOnTheNext(t *testing.T) {
	for _, quota := range []bool{false, true} {
		for callers, commands := range map[int]int64{1500: 1, maxRuns: 1, maxRuns + 1: 2} {
			s := redistest.Shared(t)
			c := s.Client(t)
			g := redistest.NewGate(c)
			o := Options{Prefix: s.Prefix(t), Timeout: relaxed}
			l, err := New(c, ratelimit.Config{Name: "x", Rate: 1e6, Per: time.Hour, Burst: 1e6}, o)
			if quota {
				l, err = NewQuota(c, "x", 1e6, o)
			}
			require.NoError(t, err)
			require.NoError(t, l.AllowN(bg, 1)) // from now on the server knows the script
			redistest.Eventually(t, "quiet", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return !l.flying })
			open, held := g.Shut()
			var all sync.WaitGroup
			take := func(n int64) {
				r, err := l.join(bg, n, true)
				require.NoError(t, err)
				all.Go(func() { assert.NoError(t, l.await(bg, r)) })
			}
			take(1)
			<-held
			before := g.Commands()
			for i := range callers {
				take(int64(1 + i%2))
			}
			open()
			all.Wait()
			require.Equal(t, commands, g.Commands()-before, "%d callers, quota: %v", callers, quota)
			require.NoError(t, l.Close(bg))
		}
	}
}
