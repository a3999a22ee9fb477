package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The figures of such a short run on a busy machine mean nothing; that nobody exceeds a limit does.
func TestTheTableIsWholeAndExact(t *testing.T) {
	file := filepath.Join(t.TempDir(), "RESULTS.md")
	var out, problems bytes.Buffer
	code := start(t.Context(), []string{"-for", "100ms", "-rounds", "1", "-stop", "300ms", "-write", file}, &out, &problems)
	require.Zero(t, code, problems.String())
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(written)
	assert.Equal(t, out.String(), text)
	for _, c := range contenders {
		assert.Contains(t, text, "| "+c.group+" | "+c.name+" | ")
	}
	for _, s := range stopped {
		assert.Contains(t, text, "| "+s.name+" | ")
	}
	assert.Contains(t, text, "| redislimit exact | 0 over | met |")
	assert.Contains(t, text, "github.com/go-redis/redis_rate/v10 v10.")
	assert.NotContains(t, text, "NaN")
	assert.NotContains(t, text, "Inf")
	t.Log(text)
}

func TestHistogramIsRightWithinSixPercent(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 15, 16, 17, 31, 32, 33, 1000, 123_456, 7 * time.Second, math.MaxInt64} {
		got := upper(bucket(d))
		assert.GreaterOrEqual(t, got, d)
		assert.LessOrEqual(t, float64(got), float64(d)*(1+1.0/16)+1, d)
	}
	h, half := &histogram{}, &histogram{}
	for d := range time.Duration(1000) {
		h.add(d)
		half.add(d / 2)
	}
	assert.InEpsilon(t, 500, int64(h.quantile(0.5)), 0.07)
	assert.InEpsilon(t, 990, int64(h.quantile(0.99)), 0.07)
	h.merge(half)
	assert.Equal(t, 2000, h.n)
	assert.Equal(t, 999*time.Nanosecond, h.longest)
	assert.Equal(t, h.longest, h.quantile(1))
	assert.Zero(t, (&histogram{}).quantile(0.5))
}

func TestTheMedianIsOfTheMiddleRoundButWhatWasExceededOfAll(t *testing.T) {
	r := row{rounds: []figures{{perSecond: 3}, {perSecond: 1, over: 5}, {perSecond: 2, trips: 7}}}
	assert.Equal(t, figures{perSecond: 2, trips: 7, over: 5}, r.median())
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-for", "1ms"}, {"-rounds", "0"}, {"-stop", "1h"}, {"left over"}, {"-what"}} {
		var out, problems bytes.Buffer
		assert.Equal(t, 2, start(t.Context(), args, &out, &problems), args)
		assert.NotEmpty(t, problems.String())
		assert.Empty(t, out.String())
	}
}

func TestWithoutRedisItSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, problems bytes.Buffer
	assert.Equal(t, 1, start(t.Context(), nil, &out, &problems))
	assert.Contains(t, problems.String(), "apt-get install redis-server")
}

func TestFiguresAreShort(t *testing.T) {
	assert.Equal(t, []string{"0.000", "0.000003", "0.0000007", "0.0001", "0.001", "2.499"},
		[]string{perOp(0), perOp(3e-6), perOp(7e-7), perOp(1e-4), perOp(0.001), perOp(2.4987)})
	assert.Equal(t, []string{"0", "999", "1,000", "1,234,567"}, []string{thousands(0), thousands(999), thousands(1000), thousands(1234567.2)})
	assert.Equal(t, []string{"7 ns", "1.5 µs", "50 ms", "2 s"}, []string{short(7), short(1500), short(50 * time.Millisecond), short(2 * time.Second)})
}
