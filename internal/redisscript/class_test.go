package redisscript

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// fails runs incr on a store of its own, and gives the error and what the key's counter says, if it can be asked.
func fails(t *testing.T, client redis.UniversalClient, script *Script) error {
	t.Helper()
	s := open(t, client, Options{Timeout: patient})
	_, err := admit(t, s, Call{Script: script})
	require.Error(t, err)
	return err
}

func notExecuted(t *testing.T, client redis.UniversalClient, text string) {
	t.Helper()
	err := fails(t, client, incr)
	require.ErrorContains(t, err, text)
	require.True(t, storeError(t, err).NotExecuted, "%v", err)
	require.True(t, storeError(t, err).Rejected())
	require.ErrorContains(t, err, `admit for "the guard" failed (not executed)`)
}

func maybeExecuted(t *testing.T, client redis.UniversalClient, script *Script, text string) {
	t.Helper()
	err := fails(t, client, script)
	require.ErrorContains(t, err, text)
	require.False(t, storeError(t, err).NotExecuted, "%v", err)
}

// Section 13, test 20, store part: no memory, and nothing may be evicted.
func TestOOMIsNotExecuted(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{"maxmemory-policy noeviction"}})
	server.Do(t, "config", "set", "maxmemory", 1)
	notExecuted(t, server.Client(t), "OOM command not allowed")
	server.Do(t, "config", "set", "maxmemory", 0)
	require.EqualValues(t, 0, server.Do(t, "exists", Key("", "kind", "the guard")))
}

func TestNoPasswordAndAWrongOneAreNotExecuted(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Password: "right"})
	o := server.Options()
	o.Password = ""
	none := redis.NewClient(o)
	defer none.Close()
	notExecuted(t, none, "NOAUTH")
	o = server.Options()
	o.Password = "wrong"
	wrong := redis.NewClient(o)
	defer wrong.Close()
	notExecuted(t, wrong, "WRONGPASS")
}

func TestForbiddenScriptsAreNotExecuted(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "acl", "setuser", "guest", "on", ">pw", "~*", "+@all", "-@scripting")
	o := server.Options()
	o.Username, o.Password = "guest", "pw"
	client := redis.NewClient(o)
	defer client.Close()
	notExecuted(t, client, "NOPERM")
	server.Do(t, "acl", "setuser", "guest", "+@scripting", "resetkeys", "~other:*")
	notExecuted(t, client, "NOPERM")
}

// The script began, and its first writes may have been allowed.
func TestCommandForbiddenInsideAScriptIsAnError(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "acl", "setuser", "guest", "on", ">pw", "~*", "+@all", "-pexpire")
	o := server.Options()
	o.Username, o.Password = "guest", "pw"
	client := redis.NewClient(o)
	defer client.Close()
	maybeExecuted(t, client, incr, "can't run this command")
	require.Equal(t, "1", server.Do(t, "get", Key("", "kind", "the guard")), "indeed")
}

func TestServerWithoutScriptsIsNotExecuted(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{`rename-command EVAL ""`, `rename-command EVALSHA ""`}})
	notExecuted(t, server.Client(t), "unknown command")
}

func TestReplicaIsNotExecuted(t *testing.T) {
	primary := redistest.Start(t)
	replica := redistest.Start(t, redistest.Options{Config: []string{fmt.Sprintf("replicaof 127.0.0.1 %d", primary.Port)}})
	redistest.Eventually(t, "the replica is in step", func() bool {
		return replica.Info(t, "replication")["master_link_status"] == "up"
	})
	notExecuted(t, replica.Client(t), "READONLY")

	replica.Do(t, "config", "set", "replica-serve-stale-data", "no")
	primary.Kill(t)
	redistest.Eventually(t, "the replica notices", func() bool {
		return replica.Info(t, "replication")["master_link_status"] == "down"
	})
	notExecuted(t, replica.Client(t), "MASTERDOWN")
}

// A script has one key, so that a healthy client never meets these; a proxy in between may.
func TestAHalfMovedSlotAndTwoSlotsAreNotExecuted(t *testing.T) {
	cluster := redistest.StartCluster(t)
	const here, absent = "a{tag}", "b{tag}"
	from, to := cluster.AwaitMaster(t, here), cluster.Other(t, here)
	from.Do(t, "set", here, 1)
	from.Do(t, "cluster", "setslot", cluster.Slot(t, here), "migrating", to.Do(t, "cluster", "myid"))
	for prefix, keys := range map[string][]any{"TRYAGAIN": {here, absent}, "CROSSSLOT": {here, "elsewhere"}, "ASK": {absent}} {
		args := append([]any{"eval", "return 1", len(keys)}, keys...)
		_, err := from.Client(t).Do(bg, args...).Result()
		require.True(t, redis.HasErrorPrefix(err, prefix), "%s: %v", prefix, err)
		require.Equal(t, class{notExecuted: true, answered: true}, classify(err), prefix)
	}
}

func TestLoadingServerIsNotExecuted(t *testing.T) {
	primary, replica := redistest.Start(t), redistest.Start(t)
	for i := range 20 {
		args := []any{"mset"}
		for j := range 100 {
			args = append(args, fmt.Sprintf("key-%d-%d", i, j), "v")
		}
		primary.Do(t, args...)
	}
	replica.Do(t, "config", "set", "loading-process-events-interval-bytes", 1024)
	replica.Do(t, "config", "set", "key-load-delay", 1000) // µs: two seconds to load
	client := replica.Client(t)
	require.NoError(t, client.Ping(bg).Err())
	replica.Do(t, "replicaof", "127.0.0.1", primary.Port)
	redistest.Eventually(t, "the replica loads", func() bool { return redis.IsLoadingError(client.Ping(bg).Err()) })
	notExecuted(t, client, "LOADING")
}

func TestTooFewReplicasAreNotExecuted(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{"min-replicas-to-write 1"}})
	notExecuted(t, server.Client(t), "NOREPLICAS")
}

func TestServerThatCannotSaveIsNotExecuted(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{"save 3600 1"}})
	dir := server.Do(t, "config", "get", "dir").(map[any]any)["dir"].(string)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700)) // no file can replace it
	server.Do(t, "bgsave")
	redistest.Eventually(t, "saving fails", func() bool {
		return server.Info(t, "persistence")["rdb_last_bgsave_status"] == "err"
	})
	notExecuted(t, server.Client(t), "MISCONF")
}

func TestServerBusyWithAScriptIsNotExecuted(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{"lua-time-limit 5"}})
	client, looping := server.Client(t), server.Client(t)
	require.NoError(t, client.Ping(bg).Err())
	done := make(chan error, 1)
	go func() { done <- looping.Eval(bg, "while true do end", nil).Err() }()
	redistest.Eventually(t, "the server is busy", func() bool { return redis.HasErrorPrefix(client.Ping(bg).Err(), "BUSY") })
	notExecuted(t, client, "BUSY")
	require.NoError(t, client.ScriptKill(bg).Err())
	require.ErrorContains(t, <-done, "killed by user")
}

func TestClusterWithoutSlotsIsNotExecuted(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{"cluster-enabled yes"}})
	notExecuted(t, server.Client(t), "CLUSTERDOWN")
}

func TestTooManyClientsAreNotExecuted(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{"maxclients 2"}})
	for range 2 {
		require.NoError(t, server.Client(t).Ping(bg).Err())
	}
	err := fails(t, server.Client(t), incr) // the server may close the connection before its reason is read
	if classify(errors.Unwrap(err)).answered || redis.IsMaxClientsError(err) {
		require.True(t, storeError(t, err).NotExecuted, "%v", err)
	}
}

// Bad input: a key that something else wrote is an error that says so, and the server's answer, not an outage to probe for.
func TestWrongTypeIsAClearError(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "set", Key("", "kind", "the guard"), "x")
	s := open(t, server.Client(t), Options{Timeout: patient})
	for range 2 * trips {
		_, err := admit(t, s, Call{Script: countToken, Args: []any{1}})
		require.ErrorContains(t, err, "WRONGTYPE")
		require.False(t, storeError(t, err).NotExecuted)
	}
	require.Equal(t, 2*trips, server.Calls(t, "evalsha"), "asked every time")
}

func TestErrorInTheMiddleOfAScriptMayHaveBeenExecuted(t *testing.T) {
	server := redistest.Start(t)
	maybeExecuted(t, server.Client(t), NewScript(`redis.call('INCR', key) error('oh')`), "oh")
}

func TestNoConnectionIsNotExecuted(t *testing.T) {
	server := redistest.Start(t)
	t.Run("nobody listens", func(t *testing.T) {
		gone := redistest.Start(t)
		gone.Kill(t)
		o := gone.Options()
		o.DialerRetries = 1
		client := redis.NewClient(o)
		defer client.Close()
		notExecuted(t, client, "connection refused")
	})
	t.Run("no such host", func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: "no-such-host.invalid:1", DialerRetries: 1})
		defer client.Close()
		notExecuted(t, client, "no-such-host")
	})
	t.Run("the pool is exhausted", func(t *testing.T) {
		o := server.Options()
		o.PoolSize, o.PoolTimeout = 1, time.Millisecond
		client := redis.NewClient(o)
		defer client.Close()
		held := client.Conn()
		defer held.Close()
		require.NoError(t, held.Ping(bg).Err())
		notExecuted(t, client, "pool timeout")
	})
	t.Run("the client is closed", func(t *testing.T) {
		client := redis.NewClient(server.Options())
		require.NoError(t, client.Close())
		notExecuted(t, client, "closed")
	})
	t.Run("TLS to a plain server", func(t *testing.T) { // which waits for the end of what it takes for a command
		o := server.Options()
		o.TLSConfig = &tls.Config{ServerName: "127.0.0.1"}
		client := redis.NewClient(o)
		defer client.Close()
		s := open(t, client, Options{})
		_, err := admit(t, s, Call{Script: incr})
		require.ErrorIs(t, err, errNoConnection)
		require.True(t, storeError(t, err).NotExecuted)
	})
	t.Run("an unknown authority", func(t *testing.T) {
		secure := redistest.Start(t, redistest.Options{TLS: true})
		o := secure.Options()
		o.TLSConfig, o.DialerRetries = &tls.Config{ServerName: "127.0.0.1"}, 1
		client := redis.NewClient(o)
		defer client.Close()
		notExecuted(t, client, "certificate")
	})
	t.Run("all Sentinels gone", func(t *testing.T) {
		gone := redistest.Start(t)
		gone.Kill(t)
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{gone.Addr}, DialerRetries: 1})
		defer client.Close()
		notExecuted(t, client, "sentinels")
	})
	t.Run("a Cluster without nodes", func(t *testing.T) {
		gone := redistest.Start(t)
		gone.Kill(t)
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{gone.Addr}, DialerRetries: 1})
		defer client.Close()
		notExecuted(t, client, "refused")
	})
}

// A plain client of a TLS server is told nothing: its connection closes. Nobody knows, but nothing hangs and nothing panics.
func TestPlainClientOfATLSServerFails(t *testing.T) {
	secure := redistest.Start(t, redistest.Options{TLS: true})
	client := redis.NewClient(&redis.Options{Addr: secure.Addr})
	defer client.Close()
	err := fails(t, client, incr)
	t.Log(err)
}

// What a server of another version, or a proxy in between, says.
func TestClassesOfTexts(t *testing.T) {
	for _, c := range []struct {
		text string
		want class
	}{
		{"NOSCRIPT No matching script. Please use EVAL.", class{true, true}},
		{"TRYAGAIN Multiple keys request during rehashing of slot", class{true, true}},
		{"MOVED 3999 127.0.0.1:6381", class{true, true}},
		{"ASK 3999 127.0.0.1:6381", class{true, true}},
		{"BUSYGROUP Consumer Group name already exists", class{false, true}},
		{"ERR Error running script (call to f_1): @user_script:12: @user_script: 12: -READONLY You can't write against a read only replica.", class{true, true}},
		{"ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'.", class{true, true}},
		{"ERR Error running script (call to f_1): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value", class{false, true}},
		{"LOADING Redis is loading the dataset in memory", class{true, false}},
	} {
		require.Equal(t, c.want, classify(fmt.Errorf("wrapped: %w", replyError(c.text))), c.text)
	}
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled, errors.New("x")} {
		require.Equal(t, class{}, classify(err), "%v: nobody knows", err)
	}
}

type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}
