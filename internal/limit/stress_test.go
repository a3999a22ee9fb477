package limit

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/internal/clock"
)

// Everything at once from several goroutines: no race, no lost timer, an answer of Ended that stays, and closed in the end.
func TestConcurrentUse(t *testing.T) {
	fake := &counting{FakeClock: clockwork.NewFakeClock()}
	for name, clk := range map[string]clock.Clock{"real": clock.Of(nil), "injected": clock.Of(fake)} {
		t.Run(name, func(t *testing.T) {
			for range 300 {
				stress(t, clk, fake)
			}
			require.Zero(t, fake.pending.Load())
		})
	}
}

func stress(t *testing.T, clk clock.Clock, fake *counting) {
	parent, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	limit := time.Duration(rand.IntN(2000)) * time.Microsecond
	c := New(parent, clk, clk.Now()+int64(limit), &Spec{"test", limit, newTestCause})
	var mu sync.Mutex
	var answers []error
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				switch rand.IntN(9) {
				case 0:
					c.Done()
				case 1:
					if c.Err() != nil && context.Cause(c) == nil {
						t.Error("an end without a cause")
					}
				case 2:
					c.Deadline()
				case 3:
					fired, by := c.Ended(clk.Now())
					if fired {
						by = &testCause{}
					}
					if by != nil {
						mu.Lock()
						answers = append(answers, by)
						mu.Unlock()
					}
				case 4:
					child, stop := context.WithCancel(c)
					_ = child.Err()
					stop()
				case 5:
					release := Keep(c)
					go release()
					release()
				case 6:
					fake.Advance(50 * time.Microsecond)
				case 7:
					if rand.IntN(10) == 0 {
						cancel(errGone)
					}
				case 8:
					if rand.IntN(10) == 0 {
						c.End()
					}
				}
			}
		})
	}
	wg.Wait()
	c.End()
	<-c.Done()
	require.Error(t, c.Err())
	for _, a := range answers {
		require.Equal(t, answers[0], a)
	}
}
