package breaker

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// anyConfig draws a Config, valid or not, whose fields meet each other's defaults and bounds often.
func anyConfig(r *rand.Rand) Config {
	number := func(of ...int) int { return of[r.IntN(len(of))] }
	span := func(of ...time.Duration) time.Duration { return of[r.IntN(len(of))] }
	rate := func(of ...float64) float64 { return of[r.IntN(len(of))] }
	return Config{
		Window:   []Window{{}, Count(2), Count(5), Count(10), Count(100), Count(5).Within(time.Second), Time(time.Minute)}[r.IntN(7)],
		MinCalls: number(0, 0, 1, 3, 5, 6, 20), FailureRate: rate(0, Off, 0.3, 1), FailureCount: number(0, Off, 2),
		Consecutive: number(0, 0, Off, 1, 5, 7, 20), SlowCall: span(0, Off, 5), SlowRate: rate(0, 0, 0.4),
		OpenFor: span(0, 1, 10*time.Minute), OpenGrowth: rate(0, 1, 2), MaxOpenFor: span(0, 0, time.Minute, 20*time.Minute),
		OpenJitter: r.IntN(2) == 0, Probes: number(0, 3), ProbeSuccesses: number(0, 2), ProbeLease: span(0, NoLease, 4), BlameAfter: span(0, Off, 4),
	}
}

func forValidConfigs(t *testing.T, f func(r *rand.Rand, cfg Config, b *Breaker)) {
	valid := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		cfg := anyConfig(r)
		if b, err := New(cfg); err == nil {
			valid++
			f(r, cfg, b)
		}
	}
	require.Greater(t, valid, 200)
}

// Config is what is in force: New and Update take it back, and nothing changes.
func TestWhatConfigTellsIsTakenBackAndChangesNothing(t *testing.T) {
	forValidConfigs(t, func(_ *rand.Rand, cfg Config, b *Breaker) {
		told := b.Config()
		require.NoError(t, b.Update(told), "%+v tells %+v", cfg, told)
		require.Equal(t, told, b.Config())
		again, err := New(told)
		require.NoError(t, err, "%+v tells %+v", cfg, told)
		require.Equal(t, told, again.Config())
	})
}

// Whoever reads Config and changes one field gets what the same change of the Config that was written gives, be it an error.
func TestADefaultThatFollowsAnotherFieldGoesOnFollowing(t *testing.T) {
	type outcome struct {
		cfg Config
		err string
	}
	made := func(b *Breaker, err error) (o outcome) {
		if err != nil {
			return outcome{err: err.Error()}
		}
		o.cfg = b.Config()
		return o
	}
	forValidConfigs(t, func(r *rand.Rand, cfg Config, b *Breaker) {
		other := reflect.ValueOf(anyConfig(r))
		for i := range other.NumField() {
			written, told := cfg, b.Config()
			if !other.Type().Field(i).IsExported() || other.Field(i).Kind() == reflect.Func || other.Field(i).Kind() == reflect.Interface ||
				other.Field(i).Equal(reflect.ValueOf(told).Field(i)) { // what is told already is no change
				continue
			}
			reflect.ValueOf(&written).Elem().Field(i).Set(other.Field(i))
			reflect.ValueOf(&told).Elem().Field(i).Set(other.Field(i))
			require.Equal(t, made(New(written)), made(New(told)), "%+v, %s changed", cfg, other.Type().Field(i).Name)
		}
	})
}

func TestTheFieldsThatFollow(t *testing.T) {
	b := MustNew(Config{Window: Count(5), SlowCall: time.Second})
	cfg := b.Config()
	cfg.OpenFor = 10 * time.Minute
	cfg.Window = Count(100)
	cfg.SlowCall = Off
	require.NoError(t, b.Update(cfg))
	require.Equal(t, 10*time.Minute, b.Config().MaxOpenFor)
	require.Equal(t, 20, b.Config().MinCalls)
	require.Zero(t, b.Config().SlowRate)

	b = MustNew(Config{FailureRate: Off, FailureCount: 2})
	cfg = b.Config()
	require.Equal(t, 5, cfg.Consecutive)
	cfg.MinCalls = 3
	require.NoError(t, b.Update(cfg))
	cfg.Consecutive = 4
	require.ErrorContains(t, b.Update(cfg), "Consecutive is 4: want less than MinCalls, 3", "what is written is what is meant")
}
