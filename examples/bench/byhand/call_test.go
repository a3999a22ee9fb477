package byhand

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

func down(context.Context) (int, error) { return 0, errDown }

func TestItRetriesWithFullJitterAndKeepsTheLastFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Call{Attempts: 3, Base: time.Second}
		seen := map[time.Duration]bool{}
		for range 100 {
			began, runs := time.Now(), 0
			_, err := c.Do(t.Context(), func(context.Context) (int, error) { runs++; return 0, errDown })
			assert.ErrorIs(t, err, errDown)
			assert.Equal(t, 3, runs)
			assert.Less(t, time.Since(began), 3*time.Second) // one and two seconds at most
			seen[time.Since(began)] = true
		}
		assert.Greater(t, len(seen), 50)
	})
}

func TestABackoffThatOutlastsTheDeadlineIsNotSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := (&Call{Attempts: 3, Base: time.Minute, Steady: true}).Do(ctx, down)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, errDown)
		assert.Zero(t, time.Since(began))
	})
}

func TestRefusalsAreNotRetriedAndSayNothingOfTheOtherSide(t *testing.T) {
	b := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{IsExcluded: Excluded})
	full := semaphore.NewWeighted(1)
	assert.True(t, full.TryAcquire(1))
	for want, c := range map[error]*Call{
		ErrFull:    {Attempts: 3, Breaker: b, Slots: full},
		ErrLimited: {Attempts: 3, Breaker: b, Limiter: rate.NewLimiter(0, 0)},
	} {
		for range 20 {
			_, err := c.Do(t.Context(), down)
			assert.ErrorIs(t, err, want)
		}
	}
	assert.Zero(t, b.Counts().TotalFailures)
	assert.Equal(t, gobreaker.StateClosed, b.State())
}
