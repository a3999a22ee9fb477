package rediscooldown

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/stretchr/testify/require"
)

func benched(b *testing.B) *Cooldown {
	server := redistest.Shared(b)
	c, err := New(server.Client(b), cooldown.Config{Name: "partner", Max: time.Hour}, Options{Prefix: server.Prefix(b), Timeout: patient})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Close(bg)) })
	return c
}

// The reads, about 20 a second, are in it.
func BenchmarkAdmitted(b *testing.B) {
	c := benched(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Acquire(bg); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefused(b *testing.B) {
	c := benched(b)
	c.Hint(bg, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Acquire(bg); err == nil {
			b.Fatal("admitted")
		}
	}
}

func TestAllocsOfAFreshViewAreNone(t *testing.T) {
	f := virtual(t)
	c := f.join(cooldown.Config{})
	require.Zero(t, refused(t, c))
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = c.Acquire(bg) }))
}
