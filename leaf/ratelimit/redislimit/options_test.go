package redislimit

import (
	"math"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// nowhere is a client that is never used: New asks nothing.
func nowhere(t testing.TB) redis.UniversalClient {
	return redisClient(t, &redis.Options{Addr: "127.0.0.1:1"})
}

// New's error names each invalid field and its value.
func TestInvalidConfiguration(t *testing.T) {
	client := nowhere(t)
	good := ratelimit.Config{Name: "api", Rate: 10}
	for want, c := range map[string]struct {
		client redis.UniversalClient
		cfg    ratelimit.Config
		opts   Options
	}{
		"client is nil":             {nil, good, Options{}},
		"Rate is 0":                 {client, ratelimit.Config{}, Options{}},
		"Burst is -1":               {client, ratelimit.Config{Rate: 1, Burst: -1}, Options{}},
		"MaxWait is -1ns":           {client, ratelimit.Config{Rate: 1, MaxWait: -1}, Options{}},
		"Burst is 1125899906842624": {client, ratelimit.Config{Rate: 1, Per: time.Microsecond, Burst: 1 << 50}, Options{}},
		"Timeout is -1ns":           {client, good, Options{Timeout: -1}},
		"OnOutage is Outage(9)":     {client, good, Options{OnOutage: 9}},
		"Instances is -2":           {client, good, Options{Instances: -2}},
		"IdleTTL is -2ns":           {client, good, Options{IdleTTL: -2}},
		"Prefetch is -1":            {client, good, Options{Prefetch: -1}},
		"Prefetch is 11":            {client, good, Options{Prefetch: 11}},
		"Prefix is 257":             {client, good, Options{Prefix: string(make([]byte, 257))}},
	} {
		l, err := New(c.client, c.cfg, c.opts)
		require.ErrorContains(t, err, want)
		require.Nil(t, l)
	}
	_, err := New(client, ratelimit.Config{Rate: -1}, Options{Instances: -1, Timeout: -1})
	for _, want := range []string{"Rate is -1", "Instances is -1", "Timeout is -1ns"} {
		require.ErrorContains(t, err, want, "all at once")
	}
	for want, f := range map[string]func() (*Limiter, error){
		"Burst is 0":            func() (*Limiter, error) { return NewQuota(client, "trial", 0, Options{}) },
		"IdleTTL is 1h":         func() (*Limiter, error) { return NewQuota(client, "trial", 5, Options{IdleTTL: time.Hour}) },
		"n is 9007199254740992": func() (*Limiter, error) { return NewQuota(client, "trial", maxQuota+1, Options{}) },
	} {
		_, err := f()
		require.ErrorContains(t, err, want)
	}
}

// Every zero field is its documented default; constructing asks nothing, so that a store that is away is no error.
func TestDefaults(t *testing.T) {
	l, err := New(nowhere(t), ratelimit.Config{Rate: 10}, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close(bg)) }()
	cfg := l.Config()
	require.Equal(t, []any{10, time.Second, 10}, []any{cfg.Rate, cfg.Per, cfg.Burst})
	require.Equal(t, "fairlead:limit:{%}", l.store.Key())
	require.Equal(t, 50*time.Millisecond, l.store.Options().Timeout)
	require.Equal(t, leaf.FailLocal, l.store.Options().OnOutage)
	require.Equal(t, 1, l.opts.Instances)
	require.NoError(t, l.AllowN(bg, 10), "locally")
	require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited)
}

// The interval is rounded up: never faster than the rate. Large buckets count in grains, and stay below 2^50.
func TestPolicyArithmetic(t *testing.T) {
	for _, c := range []struct {
		rate     int
		per      time.Duration
		burst    int
		interval int64
		grain    int64
	}{
		{1_000_000, time.Second, 1000, 16, 1},
		{999_999, time.Second, 1, 17, 1},
		{997, time.Second, 50, 16049, 1},
		{7, time.Minute, 3, 137142858, 1},
		{1, 10 * time.Second, 5, 160_000_000, 1},
		{1, 876000 * time.Hour, 100_000, 3009033203125 * 2 / 2, 1 << 24},
		{1, math.MaxInt64, 1, 0, 0},
		{1, time.Microsecond, 1 << 46, 16, 1},
	} {
		cfg := ratelimit.Config{Rate: c.rate, Per: c.per, Burst: c.burst}
		p, err := newPolicy(cfg)
		require.NoError(t, err)
		require.LessOrEqual(t, p.full, int64(maxFull))
		require.Equal(t, p.interval*int64(c.burst), p.full)
		exact, _ := trueInterval(c.rate, c.per)
		units, _ := exact.Float64()
		require.GreaterOrEqual(t, float64(p.interval)*float64(p.grain), units*16*(1-1e-15), "%+v", c)
		require.InEpsilon(t, units*16, float64(p.interval)*float64(p.grain), 1.0/16, "%+v", c)
		if c.grain == 1 {
			require.Equal(t, c.interval, p.interval, "%+v", c)
			require.Equal(t, int64(1), p.grain)
		}
		require.Positive(t, p.wait(level{now: 1 << 52, lag: p.full}, math.MaxInt64/2), "saturates")
	}
}
