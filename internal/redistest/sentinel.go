package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is what the Sentinels call the primary.
const MasterName = "mymaster"

// Sentinel is a primary with one replica, watched by three Sentinels that fail over about a second after the primary is gone.
type Sentinel struct {
	Primary, Replica *Server // as they began
	Sentinels        []*Server
}

// StartSentinel starts all five; they end with t.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	g := &Sentinel{Primary: Start(t)}
	g.Replica = Start(t, Options{Config: []string{"replicaof 127.0.0.1 " + strconv.Itoa(g.Primary.Port)}})
	Eventually(t, "the replica is in step", func() bool {
		return g.Replica.replication(t, "master_link_status") == "up"
	})
	for range 3 {
		s, err := startSentinel(t.TempDir(), g.Primary.Port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.process.kill)
		// From 7.0 on they can be made to look more often than every ten seconds; before, everything here only takes longer.
		_, _ = s.Try(t, "sentinel", "debug", "info-period", 200, "publish-period", 200,
			"ping-period", 100, "ask-period", 100, "election-timeout", 1000)
		g.Sentinels = append(g.Sentinels, s)
	}
	for _, s := range g.Sentinels {
		Eventually(t, "the Sentinels know each other and the replica", func() bool {
			v, _ := s.Try(t, "sentinel", "master", MasterName)
			m, _ := v.(map[any]any)
			return m["num-other-sentinels"] == "2" && m["num-slaves"] == "1" && m["flags"] == "master"
		})
	}
	return g
}

func startSentinel(dir string, primary int) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "sentinel.conf") // a Sentinel rewrites it
	conf := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nprotected-mode no\n"+
		"sentinel monitor %s 127.0.0.1 %d 2\nsentinel down-after-milliseconds %s 500\n"+
		"sentinel failover-timeout %s 2000\nsentinel parallel-syncs %s 1\n",
		port, dir, MasterName, primary, MasterName, MasterName, MasterName)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	s := &Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Port: port,
		process: process{binary: "redis-sentinel", args: []string{file}, dir: dir},
	}
	if err := s.up(); err != nil {
		s.process.kill()
		return nil, err
	}
	return s, nil
}

// Options are what a client needs to ask the Sentinels for the primary.
func (g *Sentinel) Options() *redis.FailoverOptions {
	o := &redis.FailoverOptions{MasterName: MasterName}
	for _, s := range g.Sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, s.Addr)
	}
	return o
}

// Client follows the primary; it is closed with t.
func (g *Sentinel) Client(t testing.TB) *redis.Client {
	t.Helper()
	return closing(t, redis.NewFailoverClient(g.Options()))
}

// AwaitPromotion waits until the replica is the primary.
func (g *Sentinel) AwaitPromotion(t testing.TB) {
	t.Helper()
	Within(t, patienceWithVotes, "the replica is promoted", func() bool {
		return g.Replica.replication(t, "role") == "master"
	})
}
