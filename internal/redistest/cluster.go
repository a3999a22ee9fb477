package redistest

import (
	"bytes"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is three masters with a replica each; a replica takes over about two seconds after its master is gone.
type Cluster struct {
	Nodes []*Server // the first three began as masters
}

// StartCluster starts all six and joins them; they end with t.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	join := []string{"--cluster", "create"}
	for range 6 {
		s := Start(t, Options{Config: []string{
			"cluster-enabled yes", "cluster-config-file nodes.conf", "cluster-node-timeout 1000",
			"cluster-replica-validity-factor 0",
		}})
		c.Nodes = append(c.Nodes, s)
		join = append(join, s.Addr)
	}
	join = append(join, "--cluster-replicas", "1", "--cluster-yes")
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatalf("redis-cli is needed and not installed (%s): %v", howToGet, err)
	}
	cmd := exec.Command(path, join...)
	endWithParent(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("redis-cli %v: %v\n%s", join, err, out)
	}
	Eventually(t, "every node finds the Cluster whole", func() bool {
		for _, s := range c.Nodes {
			text, _ := s.Do(t, "cluster", "info").(string)
			if !strings.Contains(text, "cluster_state:ok") || !strings.Contains(text, "cluster_slots_ok:16384") {
				return false
			}
			if s.replication(t, "role") == "slave" && s.replication(t, "master_link_status") != "up" {
				return false
			}
		}
		return len(c.masters(t)) == 3
	})
	return c
}

// Options are what a client needs.
func (c *Cluster) Options() *redis.ClusterOptions {
	o := &redis.ClusterOptions{}
	for _, s := range c.Nodes {
		o.Addrs = append(o.Addrs, s.Addr)
	}
	return o
}

// Client is closed with t, and has then given up to dial nodes that are dead, which it tries once a second.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	t.Cleanup(func() {
		Within(t, Patience, "nobody dials", func() bool {
			stacks := make([]byte, 1<<20)
			return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*ConnPool).tryDial"))
		})
	})
	return closing(t, redis.NewClusterClient(c.Options()))
}

// masters is the running nodes that are masters.
func (c *Cluster) masters(t testing.TB) []*Server {
	t.Helper()
	var masters []*Server
	for _, s := range c.Nodes {
		if s.Running() && s.replication(t, "role") == "master" {
			masters = append(masters, s)
		}
	}
	return masters
}

// Slot is a key's.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	for _, s := range c.Nodes {
		if s.Running() {
			n, _ := s.Do(t, "cluster", "keyslot", key).(int64)
			return int(n)
		}
	}
	t.Fatal("no node runs")
	return 0
}

// Master is the master that serves a key's slot, as it says itself; nil while none does.
func (c *Cluster) Master(t testing.TB, key string) *Server {
	t.Helper()
	for _, s := range c.masters(t) {
		// A node that does not serve the slot redirects.
		if _, err := s.Try(t, "exists", key); err == nil {
			return s
		}
	}
	return nil
}

// Other is a master that does not serve the key's slot.
func (c *Cluster) Other(t testing.TB, key string) *Server {
	t.Helper()
	home := c.Master(t, key)
	for _, s := range c.masters(t) {
		if s != home {
			return s
		}
	}
	t.Fatal("there is no other master")
	return nil
}

// Migrate moves a key's slot from one master to another as redis-cli --cluster reshard does, between which steps a client meets
// ASK and MOVED; during is called while the slot is half moved (nil = nothing).
func (c *Cluster) Migrate(t testing.TB, key string, during func()) {
	t.Helper()
	from, to, slot := c.Master(t, key), c.Other(t, key), c.Slot(t, key)
	if from == nil {
		t.Fatalf("no master serves %q", key)
	}
	fromID, toID := from.Do(t, "cluster", "myid"), to.Do(t, "cluster", "myid")
	to.Do(t, "cluster", "setslot", slot, "importing", fromID)
	from.Do(t, "cluster", "setslot", slot, "migrating", toID)
	for {
		keys, _ := from.Do(t, "cluster", "getkeysinslot", slot, 100).([]any)
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", "127.0.0.1", to.Port, "", 0, 5000, "keys"}
		from.Do(t, append(args, keys...)...)
	}
	if during != nil {
		during()
	}
	for _, s := range []*Server{to, from} {
		s.Do(t, "cluster", "setslot", slot, "node", toID)
	}
	for _, s := range c.masters(t) {
		if s != to && s != from {
			s.Do(t, "cluster", "setslot", slot, "node", toID)
		}
	}
}

// AwaitMaster waits until a running master serves the key's slot.
func (c *Cluster) AwaitMaster(t testing.TB, key string) *Server {
	t.Helper()
	var found *Server
	Within(t, patienceWithVotes, fmt.Sprintf("a master serves %q", key), func() bool {
		found = c.Master(t, key)
		return found != nil
	})
	return found
}

// KillMaster kills the master of a key.
func (c *Cluster) KillMaster(t testing.TB, key string) {
	t.Helper()
	s := c.Master(t, key)
	if s == nil {
		t.Fatalf("no master serves %q", key)
	}
	s.Kill(t)
}

// FailOver kills the master of a key while call goes on, and says how long after the promotion of a replica a call succeeded.
func (c *Cluster) FailOver(t testing.TB, key string, call func() error) (recovery time.Duration) {
	t.Helper()
	var last atomic.Int64 // when the last successful call had begun, ns since began
	began, stop := time.Now(), make(chan struct{})
	var caller sync.WaitGroup
	caller.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if at := time.Since(began); call() == nil {
				last.Store(int64(at))
			}
		}
	})
	defer caller.Wait()
	defer close(stop)
	c.KillMaster(t, key)
	c.AwaitMaster(t, key)
	promoted := time.Since(began)
	Eventually(t, "a success after the promotion", func() bool { return last.Load() > int64(promoted) })
	return time.Since(began) - promoted
}
