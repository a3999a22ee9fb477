package redisbreaker

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// New reads within Timeout, and so does a probe: an OnStore hook that is slow adds nothing to that.
func TestASlowStoreHookKeepsNobodyWaiting(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	end := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, err := New(client, breaker.Config{Window: breaker.Count(1), OpenFor: time.Nanosecond}, Options{
			OnStore: func(context.Context, leaf.StoreEvent) { <-end },
		})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { require.NoError(t, b.Close(bg)) })
		if _, err := b.Acquire(bg); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it waits for the hook")
	}
	close(end)
	<-done
}
