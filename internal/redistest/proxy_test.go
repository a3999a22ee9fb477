package redistest

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func through(t *testing.T, p *Proxy) *redis.Client {
	return closing(t, redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1}))
}

func TestProxyDropsRepliesOfWhatWasExecuted(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr)
	c := through(t, p)
	p.DropEvery(4, "incr")
	failed := 0
	for range 20 {
		if c.Incr(bg, "n").Err() != nil {
			failed++
		}
	}
	require.Equal(t, 5, failed)
	require.Equal(t, 5, p.Dropped())
	require.Equal(t, "20", s.Do(t, "get", "n"))
	p.DropShare(1, 1, "get")
	require.Error(t, c.Get(bg, "n").Err())
	require.NoError(t, c.Incr(bg, "n").Err())
	p.OnReply(nil)
	require.NoError(t, c.Get(bg, "n").Err())
}

func TestProxyDelaysAndCuts(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr)
	c := through(t, p)
	require.NoError(t, c.Ping(bg).Err())
	p.OnReply(func(command []string) Action { return Action{Delay: 30 * time.Millisecond} })
	began := time.Now()
	require.NoError(t, c.Ping(bg).Err())
	require.GreaterOrEqual(t, time.Since(began), 30*time.Millisecond)
	p.OnReply(nil)
	p.Cut()
	require.Error(t, c.Ping(bg).Err())
	p.Mend()
	Eventually(t, "a new connection", func() bool { return c.Ping(bg).Err() == nil })
}

func TestFramesAreWholeValues(t *testing.T) {
	for _, f := range []string{
		"+OK\r\n", "-ERR no\r\n", ":12\r\n", "$-1\r\n", "*-1\r\n", "$0\r\n\r\n", "$4\r\n\r\n\r\n\r\n", "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
		"%1\r\n+k\r\n~1\r\n_\r\n", "|1\r\n+k\r\n+v\r\n:1\r\n", ">2\r\n+a\r\n+b\r\n", "=5\r\ntxt:a\r\n", ",1.5\r\n", "#t\r\n", "(12\r\n",
	} {
		r := bufio.NewReader(strings.NewReader(f + "+next\r\n"))
		got, err := frame(r)
		require.NoError(t, err, "%q", f)
		require.Equal(t, f, string(got))
		got, err = frame(r)
		require.NoError(t, err)
		require.Equal(t, "+next\r\n", string(got))
	}
	_, err := frame(bufio.NewReader(strings.NewReader("$5\r\nab")))
	require.Error(t, err)
	_, err = frame(bufio.NewReader(strings.NewReader("\r\n")))
	require.Error(t, err)
	require.Equal(t, []string{"set", "k", "a\r\nb"}, words([]byte("*3\r\n$3\r\nset\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n")))
	require.Equal(t, []string{"PING"}, words([]byte("PING\r\n")))
}
