package redisscript

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// callers call until stop, and keep the first error and the time of the last success.
type callers struct {
	ok, failed atomic.Int64
	last       atomic.Int64 // Unix ns of the last success
	err        atomic.Pointer[error]
	stop       func()
}

func call(t *testing.T, s *Store, n int) *callers {
	c, stop := &callers{}, make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				if _, err := s.Do(bg, Call{Op: leaf.OpAdmit, Script: incr}); err != nil {
					c.failed.Add(1)
					c.err.CompareAndSwap(nil, &err)
					continue
				}
				c.ok.Add(1)
				c.last.Store(time.Now().UnixNano())
			}
		})
	}
	var once sync.Once
	c.stop = func() { once.Do(func() { close(stop); wg.Wait() }) }
	t.Cleanup(c.stop)
	return c
}

// Section 13, test 19, store part: a slot moves under load, and no call fails or is executed twice.
func TestLiveSlotMigrationIsUnnoticed(t *testing.T) {
	cluster := redistest.StartCluster(t)
	s := open(t, cluster.Client(t), Options{Timeout: patient})
	count(t, s)
	c := call(t, s, 4)
	for range 3 {
		home := cluster.Master(t, s.Key())
		cluster.Migrate(t, s.Key(), func() {
			was := c.ok.Load()
			redistest.Eventually(t, "calls go on while the slot moves", func() bool { return c.ok.Load() > was+20 })
		})
		require.NotSame(t, home, cluster.AwaitMaster(t, s.Key()))
		was := c.ok.Load()
		redistest.Eventually(t, "calls go on", func() bool { return c.ok.Load() > was+20 })
	}
	c.stop()
	if err := c.err.Load(); err != nil {
		t.Fatal(*err)
	}
	require.Equal(t, fmt.Sprint(1+c.ok.Load()), cluster.Master(t, s.Key()).Do(t, "get", s.Key()), "executed = requested")
}

// Section 13, test 19, store part: the master of the key dies. Within a second of the promotion the store is back.
func TestClusterMasterKillRecoversWithinASecondOfThePromotion(t *testing.T) {
	cluster := redistest.StartCluster(t)
	var told heard
	s := open(t, cluster.Client(t), Options{OnStore: told.hook})
	redistest.Eventually(t, "a first success", func() bool {
		_, err := admit(t, s, Call{Script: incr})
		return err == nil
	})
	c := call(t, s, 4)
	cluster.KillMaster(t, s.Key())
	cluster.AwaitMaster(t, s.Key())
	promoted := time.Now()
	redistest.Eventually(t, "a success after the promotion", func() bool { return c.last.Load() > promoted.UnixNano() })
	recovery := time.Unix(0, c.last.Load()).Sub(promoted)
	c.stop()
	t.Logf("recovered %v after the promotion; %d calls succeeded, %d failed; first error: %v", recovery, c.ok.Load(), c.failed.Load(), *c.err.Load())
	require.Less(t, recovery, time.Second)
	require.True(t, told.has("failed") && told.has("recovered"))
}

// Without a reload go-redis goes on asking the dead master: what the store does about it is what recovers.
func TestReloadsAreTwoASecondAtMost(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{"cluster-enabled yes"}})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}})
	defer client.Close()
	s := open(t, client, Options{})
	var reloads []int64
	redistest.Eventually(t, "three reloads", func() bool {
		s.reload(errOpen)
		if at := s.health.reloaded.Load(); len(reloads) == 0 || reloads[len(reloads)-1] != at {
			reloads = append(reloads, at)
		}
		return len(reloads) == 3
	})
	require.GreaterOrEqual(t, reloads[1]-reloads[0], int64(reloadEvery))
	require.GreaterOrEqual(t, reloads[2]-reloads[1], int64(reloadEvery))
	s.reload(replyError("WRONGTYPE"))
	require.Equal(t, reloads[2], s.health.reloaded.Load(), "an answer says nothing of the map")
}

// A Sentinel client follows the primary; what hit the dead one, or the demoted one, is an error of its class.
func TestSentinelFailoverRecovers(t *testing.T) {
	group := redistest.StartSentinel(t)
	s := open(t, group.Client(t), Options{})
	redistest.Eventually(t, "a first success", func() bool {
		_, err := admit(t, s, Call{Script: incr})
		return err == nil
	})
	c := call(t, s, 4)
	group.Primary.Kill(t)
	group.AwaitPromotion(t)
	promoted := time.Now()
	redistest.Eventually(t, "a success after the promotion", func() bool { return c.last.Load() > promoted.UnixNano() })
	recovery := time.Unix(0, c.last.Load()).Sub(promoted)
	c.stop()
	t.Logf("recovered %v after the promotion; %d calls succeeded, %d failed", recovery, c.ok.Load(), c.failed.Load())
	require.Less(t, recovery, 3*time.Second)
}
