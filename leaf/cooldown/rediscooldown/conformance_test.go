package rediscooldown_test

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/cooldown/rediscooldown"
	"github.com/fairlead/fairlead/leaf/guardtest"
	"github.com/stretchr/testify/require"
)

func TestConformance(t *testing.T) {
	server := redistest.Shared(t)
	client := server.Client(t)
	fresh := func(t testing.TB, cfg cooldown.Config) *rediscooldown.Cooldown {
		c, err := rediscooldown.New(client, cfg, rediscooldown.Options{Prefix: server.Prefix(t), Timeout: 5 * time.Second})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
		return c
	}
	guardtest.Run(t, guardtest.Config{
		New: func(t testing.TB) leaf.Guard { return fresh(t, cooldown.Config{Name: "api"}) },
		Refusing: func(t testing.TB) leaf.Guard {
			c := fresh(t, cooldown.Config{Name: "api", Max: time.Hour})
			c.Hint(t.Context(), time.Hour)
			return c
		},
	})
}
