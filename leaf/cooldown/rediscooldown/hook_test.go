package rediscooldown

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// unreachable is a cooldown whose store is not there.
func unreachable(t *testing.T, hook func(c *Cooldown)) *Cooldown {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	var c *Cooldown
	c, err := New(client, cooldown.Config{Name: "x"}, Options{OnStore: func(context.Context, leaf.StoreEvent) { hook(c) }})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close(bg))
		require.NoError(t, client.Close())
	})
	return c
}

// All calls ride on one read: the hook that its failure calls must not wait for itself.
func TestAHookMayAskItsOwnCooldown(t *testing.T) {
	heard := make(chan error, 1)
	c := unreachable(t, func(c *Cooldown) {
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		_, err := c.Acquire(ctx)
		heard <- err
	})
	_, err := c.Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, <-heard)
}

// Acquire waits no longer than Timeout and ctx allow, whatever the hook does.
func TestASlowHookKeepsNobodyWaiting(t *testing.T) {
	end := make(chan struct{})
	c := unreachable(t, func(*Cooldown) { <-end })
	defer close(end)
	ctx, cancel := context.WithTimeout(bg, 10*time.Second)
	defer cancel()
	for range 3 {
		_, err := c.Acquire(ctx)
		require.NoError(t, err)
	}
}
