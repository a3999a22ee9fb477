package redisbreaker

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/guardtest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestConformance(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	fresh := func(t testing.TB, cfg breaker.Config) *Breaker {
		cfg.Name = t.Name()
		b, err := New(client, cfg, Options{Prefix: redistest.Shared(t).Prefix(t), Timeout: 5 * time.Second})
		require.NoError(t, err)
		t.Cleanup(func() { closeIt(t, b) })
		return b
	}
	tripped := func(t testing.TB, cfg breaker.Config) leaf.Guard {
		cfg.Window = breaker.Count(1)
		b := fresh(t, cfg)
		p, err := b.Acquire(bg)
		require.NoError(t, err)
		require.NoError(t, p.Settle(bg, failure))
		redistest.Eventually(t, "the circuit opens", func() bool { return b.State() != breaker.Closed })
		return b
	}
	forced := func(t testing.TB) leaf.Guard {
		b := fresh(t, breaker.Config{})
		require.NoError(t, b.ForceOpen(bg))
		return b
	}
	t.Run("closed", func(t *testing.T) {
		guardtest.Run(t, guardtest.Config{
			New: func(t testing.TB) leaf.Guard {
				return fresh(t, breaker.Config{FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
			},
			Refusing: func(t testing.TB) leaf.Guard { return tripped(t, breaker.Config{OpenFor: time.Hour}) },
		})
	})
	t.Run("half-open", func(t *testing.T) {
		guardtest.Run(t, guardtest.Config{
			New: func(t testing.TB) leaf.Guard {
				return tripped(t, breaker.Config{OpenFor: 1, Probes: 3, ProbeSuccesses: 1 << 30, ProbeLease: time.Hour})
			},
			Capacity: 3, // no Slots: a failed probe ends the episode, and the next one has slots of its own
			Refusing: forced,
			Lag:      10 * stale, // a refusal stands for a moment, also beside a slot that was given back meanwhile
			Rounds:   20,
		})
	})
	t.Run("local in an outage", func(t *testing.T) {
		s := redistest.Start(t)
		o := s.Options()
		o.DialerRetries = 1
		dead := redis.NewClient(o)
		t.Cleanup(func() { _ = dead.Close() })
		s.Kill(t)
		guardtest.Run(t, guardtest.Config{
			New: func(t testing.TB) leaf.Guard {
				b, err := New(dead, breaker.Config{FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never}, Options{})
				require.NoError(t, err)
				t.Cleanup(func() { closeIt(t, b) })
				require.True(t, b.out.Load())
				return b
			},
			Refusing: func(t testing.TB) leaf.Guard {
				b, err := New(dead, breaker.Config{Consecutive: 1, OpenFor: time.Hour}, Options{})
				require.NoError(t, err)
				t.Cleanup(func() { closeIt(t, b) })
				b.run1(t, failure)
				return b
			},
			Rounds: 20,
		})
	})
}

func (b *Breaker) run1(t testing.TB, o leaf.Outcome) {
	p, err := b.Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, p.Settle(bg, o))
}
