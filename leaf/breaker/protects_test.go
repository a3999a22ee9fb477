package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A typo must mean "still protected": every configuration of thresholds that New takes opens the circuit of a downstream that
// answers nothing but slow failures, and one that never could is an error, also with what the defaults put in (F12).
func TestABreakerThatCanNeverTripIsAnError(t *testing.T) {
	taken, refused := 0, 0
	for _, window := range []Window{{}, Count(1), Count(5), Count(100).Within(time.Hour), Time(time.Hour)} {
		for _, minCalls := range []int{0, 1, 5, 6, 1000} {
			for _, rate := range []float64{0, Off, 1} {
				for _, consecutive := range []int{0, Off, 1, 4, 5, 20} {
					for _, count := range []int{0, Off, 1} {
						for _, slow := range []time.Duration{0, Off, time.Second} {
							cfg := Config{Window: window, MinCalls: minCalls, FailureRate: rate, Consecutive: consecutive, FailureCount: count, SlowCall: slow}
							if cfg.SlowCall > 0 {
								cfg.SlowRate = 1
							}
							clock := &steppedClock{}
							cfg.Clock = clock
							b, err := New(cfg)
							if err != nil {
								refused++
								require.Nil(t, b)
								continue
							}
							taken++
							o := failure
							o.Took = time.Hour
							for i := 0; i < 1000 && b.State() == Closed; i++ {
								p, err := b.Acquire(bg)
								require.NoError(t, err)
								require.NoError(t, p.Settle(bg, o))
							}
							require.Equal(t, Open, b.State(), "%+v", cfg)
						}
					}
				}
			}
		}
	}
	require.Positive(t, taken)
	require.Positive(t, refused)
}

func TestTheDefaultRowThatMinCallsHidesIsAnErrorThatNamesIt(t *testing.T) {
	for _, cfg := range []Config{
		{FailureRate: Off, MinCalls: 5}, {FailureRate: Off, Window: Count(5)}, {FailureRate: Off, MinCalls: 1}, {FailureRate: Off, Window: Count(3)},
	} {
		_, err := New(cfg)
		require.ErrorContains(t, err, "Consecutive")
		require.ErrorContains(t, err, "5")
		cfg.FailureCount = 1 // that one can trip
		_, err = New(cfg)
		require.NoError(t, err, "%+v", cfg)
	}
	_, err := New(Config{FailureRate: Off, MinCalls: 6}) // a row of 5 comes first
	require.NoError(t, err)
}
