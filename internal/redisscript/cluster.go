package redisscript

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	reloadEvery = 500 * time.Millisecond // of a Cluster's map, at most
	watchEvery  = 50 * time.Millisecond  // whether a key has got another master
)

var epoch = time.Now()

// reload is what a failure calls for: go-redis keeps a Cluster's map until a server tells it to look elsewhere, which a dead one
// never does.
func (s *Store) reload(err error) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok && !classify(err).answered {
		s.reloads(cluster)
	}
}

func (s *Store) reloads(cluster *redis.ClusterClient) {
	last, now := s.health.reloaded.Load(), int64(time.Since(epoch))
	if (last == 0 || now-last >= int64(reloadEvery)) && s.health.reloaded.CompareAndSwap(last, now) {
		cluster.ReloadState(context.Background())
	}
}

// watcher waits for a key's next master while the store's breaker is open. The map alone would be too late: one that was
// reloaded just before a promotion is stale for half a second, and a reload may first try the dead node, at which go-redis dials
// five times. So the other masters are asked, and the map is reloaded when it is worth it.
type watcher struct {
	store   *Store
	cluster *redis.ClusterClient
	tick    <-chan time.Time // nil where there is no Cluster
	was     string           // the master that does not answer
}

func (s *Store) watch(ctx context.Context) (w watcher, stop func()) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return watcher{}, func() {}
	}
	ticker := time.NewTicker(watchEvery)
	return watcher{store: s, cluster: cluster, tick: ticker.C, was: master(ctx, cluster, s.key)}, ticker.Stop
}

// moved says whether the map has another master for the key.
func (w watcher) moved(ctx context.Context) bool {
	if master(ctx, w.cluster, w.store.key) != w.was {
		return true
	}
	if w.store.health.scouting.CompareAndSwap(false, true) && !w.store.Go(w.scout) {
		w.store.health.scouting.Store(false)
	}
	return false
}

// scout asks the other masters, who know of a promotion at once, where the key is.
func (w watcher) scout(ctx context.Context) {
	defer w.store.health.scouting.Store(false)
	var answered, news atomic.Bool
	_ = w.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		if node.Options().Addr == w.was {
			return nil
		}
		_, err := safely(func() (Reply, error) { return eval(ctx, node, ping, w.store.key, "0", nil) })
		if err == nil || classify(err).answered || redis.IsClusterDownError(err) {
			answered.Store(true)
		}
		if addr, ok := redis.IsMovedError(err); err == nil || ok && addr != w.was {
			news.Store(true)
		}
		return nil
	})
	if news.Load() || !answered.Load() {
		w.store.reloads(w.cluster)
	}
}

// master is the address of a key's master, as the client's map has it; "" where there is no map.
func master(ctx context.Context, cluster *redis.ClusterClient, key string) string {
	node, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		return ""
	}
	return node.Options().Addr
}
