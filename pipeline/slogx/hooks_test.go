package slogx_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/registry"
	"github.com/fairlead/fairlead/pipeline/slogx"
	"github.com/stretchr/testify/require"
)

// A breaker's transitions, with the reason that the breaker gives.
func TestABreakersTransitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelDebug)
		b := breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 2, OpenFor: time.Second, OnChange: slogx.OnChange(slog.New(lines))})
		p := pipeline.For("p").Breaker(b).MustBuild()
		for range 2 {
			_, _ = pipeline.Do(t.Context(), p, fails(1, errors.New(secret)))
		}
		<-time.After(time.Second)
		_, err := pipeline.Do(t.Context(), p, fails(0, nil))
		require.NoError(t, err)
		require.Equal(t, []string{
			"WARN circuit opened guard=bank from=closed to=open reason=2 failures in a row seq=1",
			"INFO circuit half-open guard=bank from=open to=half-open reason=open time is over seq=2",
			"INFO circuit closed guard=bank from=half-open to=closed reason=1 probe succeeded seq=3",
		}, lines.taken())
	})
}

// A Shadow's would-be refusals, and a circuit that flaps, are held back like everything else.
func TestHooksRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelInfo)
		logger := slog.New(lines).With("guard", "search")
		shadow := leaf.Shadow(fullOne(t), slogx.OnShadow(logger, slogx.Repeats(2, time.Second)))
		p := pipeline.For("p").Bulkhead(shadow).MustBuild()
		for range 10 {
			_, err := pipeline.Do(t.Context(), p, fails(0, nil))
			require.NoError(t, err, "refuses nobody")
		}
		<-time.After(time.Second)
		_, _ = pipeline.Do(t.Context(), p, fails(0, nil))
		would := `WARN guard would have rejected guard=search error=bulkhead "db": full (1 at once)`
		require.Equal(t, []string{would, would,
			"WARN lines suppressed guard=search line=guard would have rejected refusal=*bulkhead.FullError suppressed=8 per=1s", would}, lines.taken())

		change := slogx.OnChange(slog.New(lines))
		for range 100 {
			change(breaker.Change{Name: "b", To: breaker.Open})
			change(breaker.Change{Name: "b", From: breaker.Open, To: breaker.HalfOpen})
			change(breaker.Change{Name: "c", To: breaker.Open})
		}
		require.Len(t, lines.taken(), 15)
	})
}

// A shared guard's store that fails, answers again, and a permit that came back too late.
func TestAStoresTrouble(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	store := slogx.OnStore(slog.New(lines), slogx.ErrorText(func(error) string { return "redacted" }))
	for _, e := range []leaf.StoreEvent{
		{Name: "db", Kind: "failed", Op: leaf.OpAdmit, Policy: leaf.FailOpen, Err: errDown},
		{Name: "db", Kind: "recovered", Op: leaf.OpRecord},
		{Name: "db", Kind: "overage"},
		{Kind: "something new"},
	} {
		store(t.Context(), e)
	}
	require.Equal(t, []string{
		"WARN guard's store failed guard=db op=admit policy=fail_open error=redacted",
		"INFO guard's store recovered guard=db op=record",
		"WARN guard's permit came back after its lease guard=db",
		"WARN guard's store: something new",
	}, lines.taken())
}

// A file that registry.Watch could not put in force.
func TestAReloadThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "resilience.yaml")
		require.NoError(t, os.WriteFile(path, []byte("resilience: { bulkhead: { db: { max-concurrent: 1 } } }"), 0o600))
		reg, err := registry.LoadYAML(strings.NewReader("resilience: { bulkhead: { db: { max-concurrent: 1 } } }"))
		require.NoError(t, err)
		defer func() { require.NoError(t, reg.Close()) }()
		lines := newPad(slog.LevelDebug)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		require.NoError(t, reg.Watch(ctx, path, slogx.OnReload(slog.New(lines))))
		next := path + ".next" // a file that is written in place may be seen half written
		require.NoError(t, os.WriteFile(next, []byte("resilience: { bulkhead: { db: { max-concurrent: -1 } } }"), 0o600))
		require.NoError(t, os.Rename(next, path))
		<-time.After(time.Minute)
		synctest.Wait()
		got := lines.taken()
		require.Len(t, got, 1)
		require.Contains(t, got[0], "ERROR configuration not reloaded error=")
		require.Contains(t, got[0], "max-concurrent")
	})
}

// A program that watches the file it has loaded has reloaded nothing yet, and its log does not say so.
func TestAStartIsNoReload(t *testing.T) {
	const document = "resilience: { bulkhead: { db: { max-concurrent: 1 } } }"
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "resilience.yaml")
		require.NoError(t, os.WriteFile(path, []byte(document), 0o600))
		lines := newPad(slog.LevelDebug)
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		reg, err := registry.LoadYAML(f, registry.WithOnReload(slogx.OnReload(slog.New(lines))))
		require.NoError(t, err)
		defer func() { require.NoError(t, reg.Close()) }()
		require.NoError(t, reg.Watch(t.Context(), path, nil))
		<-time.After(time.Minute)
		synctest.Wait()
		require.Empty(t, lines.taken())
	})
}

// Everything that a registry's reloads come to, in force or not, by whichever way they came.
func TestReloadsOfARegistry(t *testing.T) {
	const document = "resilience: { bulkhead: { db: { max-concurrent: 1 } } }"
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelDebug)
		reg, err := registry.LoadYAML(strings.NewReader(document), registry.WithOnReload(slogx.OnReload(slog.New(lines))))
		require.NoError(t, err)
		defer func() { require.NoError(t, reg.Close()) }()
		require.NoError(t, reg.Reload(strings.NewReader(document)))
		require.Equal(t, []string{"INFO configuration reloaded"}, lines.taken())
		require.Error(t, reg.Reload(strings.NewReader("resilience: { bulkhead: { db: {} } }")))
		require.Equal(t, []string{"ERROR configuration not reloaded error=resilience.bulkhead.db.max-concurrent is missing: want the number of calls at once, from 1"}, lines.taken())
		path := filepath.Join(t.TempDir(), "resilience.yaml")
		require.NoError(t, reg.Watch(t.Context(), path, nil))
		synctest.Wait()
		require.Equal(t, []string{"ERROR configuration not reloaded error=registry: watching: stat " + path + ": no such file or directory"}, lines.taken())
		require.NoError(t, os.WriteFile(path, []byte(document), 0o600))
		<-time.After(10 * time.Second)
		require.Empty(t, lines.taken(), "it is in force already")
		next := path + ".next"
		require.NoError(t, os.WriteFile(next, []byte("resilience: { bulkhead: { db: { max-concurrent: 2 } } }"), 0o600))
		require.NoError(t, os.Rename(next, path))
		<-time.After(10 * time.Second)
		require.Equal(t, []string{"INFO configuration reloaded"}, lines.taken())
	})
}
