package rediscooldown

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// C45
func TestConfigErrorsNameEveryFieldAndValue(t *testing.T) {
	c, err := New((*redis.Client)(nil), cooldown.Config{Max: -time.Second}, Options{Timeout: -1, OnOutage: 9})
	require.Nil(t, c)
	for _, text := range []string{
		"cooldown: Max is -1s", "rediscooldown: client is nil", "rediscooldown: Timeout is -1ns", "rediscooldown: OnOutage is Outage(9)",
	} {
		require.ErrorContains(t, err, text)
	}
}

func TestUpdateKeepsTheInstantAndTheName(t *testing.T) {
	f := virtual(t)
	c := f.join(cooldown.Config{})
	c.Hint(bg, 50*time.Second)
	heard(t, c)
	require.ErrorContains(t, c.Update(cooldown.Config{Name: "other", Clock: f.clock}), `Name is "other": want "partner"`)
	require.Error(t, c.Update(cooldown.Config{Name: "partner"}), "another clock")
	require.Error(t, c.Update(cooldown.Config{Name: "partner", Max: -1, Clock: f.clock}))
	require.Equal(t, time.Minute, c.Config().Max)
	require.NoError(t, c.Update(cooldown.Config{Name: "partner", Max: 20 * time.Second, Clock: f.clock}))
	require.Equal(t, 20*time.Second, refused(t, c))
	clock, used := c.Clock()
	require.Same(t, f.clock, clock)
	require.True(t, used)
	require.Equal(t, 50*time.Second, refused(t, f.join(cooldown.Config{})), "the fleet's stays")
}

func TestInspectIsTheLocalCooldowns(t *testing.T) {
	f := virtual(t)
	c := f.join(cooldown.Config{Max: time.Hour})
	c.Hint(bg, 90*time.Second)
	require.Equal(t, leaf.Snapshot{Kind: "cooldown", Name: "partner", State: "cooling",
		Gauges: []leaf.Gauge{{Name: "wait_seconds", Value: 90, Limit: 3600}}}, c.Inspect())
}
