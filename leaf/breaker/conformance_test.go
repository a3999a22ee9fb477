package breaker

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/guardtest"
	"github.com/stretchr/testify/require"
)

// tripped is a breaker that has just opened.
func tripped(t testing.TB, cfg Config) leaf.Guard {
	cfg.Window = Count(1)
	b, err := New(cfg)
	require.NoError(t, err)
	call(b, failure)
	return b
}

func TestConformance(t *testing.T) {
	open := func(t testing.TB) leaf.Guard { return tripped(t, Config{OpenFor: time.Hour}) }
	forced := func(t testing.TB) leaf.Guard {
		b := MustNew(Config{})
		require.NoError(t, b.ForceOpen(context.Background()))
		return b
	}
	t.Run("closed", func(t *testing.T) {
		guardtest.Run(t, guardtest.Config{
			New: func(testing.TB) leaf.Guard {
				return MustNew(Config{FailureRate: Off, FailureCount: 1 << 30, Consecutive: Off})
			},
			Refusing: open,
		})
	})
	t.Run("half-open", func(t *testing.T) {
		guardtest.Run(t, guardtest.Config{
			New: func(t testing.TB) leaf.Guard {
				return tripped(t, Config{OpenFor: 1, Probes: 3, ProbeSuccesses: 1 << 30, ProbeLease: time.Hour})
			},
			Capacity: 3, // no Slots: a failed probe ends the episode, and the next one has slots of its own
			Refusing: forced,
		})
	})
}
