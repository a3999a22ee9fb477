package redisscript

import (
	"math"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// C36: only NOSCRIPT proves that a script did not run. The first call loads it; after a SCRIPT FLUSH a call is exactly one
// EVALSHA and one EVAL; a reply that is lost after the execution is an error to its caller, and one execution.
func TestScriptFlushCostsOneEvalAndALostReplyNothingMore(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	s := open(t, server.Client(t), Options{Timeout: patient})
	require.EqualValues(t, 1, count(t, s))
	require.Equal(t, [2]int{1, 1}, [2]int{server.Calls(t, "evalsha"), server.Calls(t, "eval")})

	server.Do(t, "script", "flush")
	server.ResetCalls(t)
	require.EqualValues(t, 2, count(t, s))
	require.Equal(t, [2]int{1, 1}, [2]int{server.Calls(t, "evalsha"), server.Calls(t, "eval")})
	server.ResetCalls(t)

	client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	defer client.Close()
	lossy := open(t, client, Options{Timeout: patient})
	proxy.DropEvery(1, "evalsha", "eval")
	began := time.Now()
	_, err := admit(t, lossy, Call{Script: incr})
	require.Less(t, time.Since(began), patient)
	require.False(t, storeError(t, err).NotExecuted)
	require.Equal(t, [2]int{1, 0}, [2]int{server.Calls(t, "evalsha"), server.Calls(t, "eval")})

	require.EqualValues(t, 4, count(t, open(t, server.Client(t), Options{Timeout: patient})), "1, 2, the lost one, and this")
}

var tell = NewScript(`return {int(now), redis.call('TIME')[1]}`)

// C39: one authority for time.
func TestNowIsTheServersTime(t *testing.T) {
	_, s := onShared(t, Options{Timeout: patient})
	r, err := admit(t, s, Call{Script: tell})
	require.NoError(t, err)
	n, err := r.Ints(2)
	require.NoError(t, err)
	require.Equal(t, n[1], n[0]/1e6, "whole seconds of the same clock")
}

func TestVirtualNowIsMicrosecondsExactly(t *testing.T) {
	var now time.Time
	_, s := onShared(t, Options{Timeout: patient, Now: func() time.Time { return now }})
	for _, c := range []struct {
		now  time.Time
		want int64
	}{
		{time.Date(2026, 3, 1, 0, 0, 0, 123456789, time.UTC), 1772323200123456},
		{time.Unix(0, 1000), 1},
		{time.Unix(0, 0), 1}, // 0 is the server's clock
		{time.Time{}, 1},
		{time.Date(2200, 1, 1, 0, 0, 0, 1000, time.UTC), 7258118400000001},
		{time.Unix(1<<40, 0), 1<<53 - 1},
	} {
		now = c.now
		r, err := admit(t, s, Call{Script: tell})
		require.NoError(t, err)
		n, err := r.At(0).Int()
		require.NoError(t, err)
		require.Equal(t, c.want, n, "%v", c.now)
	}
}

var live = NewScript(`
redis.call('SET', key, 'x')
expire(tonumber(ARGV[2]))
return int(redis.call('PTTL', key))
`)

// C37 (c), (d): a life is a finite integer of at least 1 ms, whatever was computed; at least 1 h where time is virtual.
func TestExpireClampsToFiniteIntegers(t *testing.T) {
	const century = 3155760000000
	_, s := onShared(t, Options{Timeout: patient})
	_, virtual := onShared(t, Options{Timeout: patient, Now: time.Now})
	for _, c := range []struct {
		ms   string
		want int64
	}{
		{"60000", 60000}, {"59999.0001", 60000}, {"3.1536e17", century}, {"1e400", century}, {"nan", century},
		{"3155760000001", century}, {"86400000", 86400000},
	} {
		r, err := admit(t, s, Call{Script: live, Args: []any{c.ms}})
		got := integer(t, r, err)
		require.LessOrEqual(t, got, c.want, c.ms)
		require.Greater(t, got, c.want-1000, c.ms)
		r, err = admit(t, virtual, Call{Script: live, Args: []any{c.ms}})
		require.InDelta(t, max(c.want, 3600000), integer(t, r, err), 1000, c.ms)
	}
	for _, short := range []string{"0", "-5", "0.2", "-1e400"} {
		r, err := admit(t, s, Call{Script: live, Args: []any{short}})
		require.LessOrEqual(t, integer(t, r, err), int64(1), short)
		r, err = admit(t, virtual, Call{Script: live, Args: []any{short}})
		require.Greater(t, integer(t, r, err), int64(3599000), short)
	}
}

func TestIntegersSurviveTheWayBack(t *testing.T) {
	s2 := NewScript(`return {int(ARGV[2]), int(0.4), int(1e15 + 0.5), int(-3), 7}`)
	_, s := onShared(t, Options{Timeout: patient})
	r, err := admit(t, s, Call{Script: s2, Args: []any{int64(1<<53 - 1)}})
	require.NoError(t, err)
	n, err := r.Ints(5)
	require.NoError(t, err)
	require.Equal(t, []int64{1<<53 - 1, 0, 1e15, -3, 7}, n)
}

func TestReplyKnowsWhatItIs(t *testing.T) {
	r := Reply{[]any{int64(1), "2", "x", nil, []any{"y"}}}
	require.Equal(t, 5, r.Len())
	for i, want := range []string{"1", "2", "x", "", ""} {
		require.Equal(t, want, r.At(i).Text())
	}
	require.Equal(t, "y", r.At(4).At(0).Text())
	require.True(t, r.At(3).Nil())
	require.True(t, r.At(-1).Nil())
	require.True(t, r.At(5).Nil())
	require.False(t, r.At(0).Nil())
	n, err := r.At(1).Int()
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	for _, bad := range []any{nil, "", "1.5", "9223372036854775808", true, math.Pi, []any{}} {
		_, err := Reply{bad}.Int()
		require.ErrorContains(t, err, "want an integer")
	}
	_, err = r.Ints(5)
	require.ErrorContains(t, err, `"x"`)
	_, err = r.Ints(4)
	require.ErrorContains(t, err, "want 4 integers")
	_, err = Reply{}.Ints(0)
	require.Error(t, err)
}

func TestScriptThatReturnsNothingIsNoError(t *testing.T) {
	_, s := onShared(t, Options{Timeout: patient})
	for _, body := range []string{"return nil", "return false", ""} {
		r, err := admit(t, s, Call{Script: NewScript(body)})
		require.NoError(t, err)
		require.True(t, r.Nil())
	}
}
