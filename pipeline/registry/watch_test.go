package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/retry"
)

// watched is a registry that watches a file in virtual time. The file's time stamps are the file system's own.
type watched struct {
	t      *testing.T
	clk    *clockwork.FakeClock
	reg    *Registry
	dir    string
	path   string
	hook   error    // the last that WithOnReload was told
	events []string // of reloads and of troubles, in order; written by the watcher, read between polls
}

func attempts(n int) string { return fmt.Sprintf("resilience: {retry: {a: {max-attempts: %d}}}\n", n) }

func watch(t *testing.T, prepare func(w *watched)) *watched {
	t.Helper()
	w := &watched{t: t, clk: clockwork.NewFakeClock(), dir: t.TempDir()}
	w.path = filepath.Join(w.dir, "resilience.yaml")
	prepare(w)
	w.reg = loaded(t, attempts(2), WithClock(w.clk), WithOnReload(func(err error) {
		if w.hook = err; err == nil {
			w.events = append(w.events, "in force")
		}
	}))
	require.NoError(t, w.reg.Watch(bg, w.path, func(err error) {
		w.events = append(w.events, strings.ReplaceAll(err.Error(), w.dir, "DIR"))
		assert.Equal(t, w.hook, err, "WithOnReload was told the same, before")
	}))
	w.settle()
	return w
}

// settle waits until the watcher has looked and waits for its next turn.
func (w *watched) settle() { require.NoError(w.t, w.clk.BlockUntilContext(bg, 1)) }

// poll lets it look so often.
func (w *watched) poll(times int) {
	for range times {
		w.clk.Advance(pollEvery)
		w.settle()
	}
}

func (w *watched) write(path, text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
}

// age makes a file look older than any change.
func (w *watched) age(path string) {
	w.t.Helper()
	old := time.Now().Add(-time.Hour)
	require.NoError(w.t, os.Chtimes(path, old, old))
}

func (w *watched) expect(attempts int, events ...string) {
	w.t.Helper()
	assert.Equal(w.t, attempts, w.reg.MustRetry("a").Config().MaxAttempts)
	assert.Equal(w.t, events, w.events)
	w.events = nil
}

func written(text string) func(w *watched) { return func(w *watched) { w.write(w.path, text) } }

func TestWatchPutsAChangeInForceWhenItWasSeenTwice(t *testing.T) {
	w := watch(t, written(attempts(2)))
	w.poll(1)
	w.expect(2)
	w.write(w.path, attempts(3))
	w.poll(1)
	w.expect(2)
	w.poll(1)
	w.expect(3, "in force")
	w.poll(5)
	w.expect(3)
}

func TestWatchFollowsAFileReplacedByRename(t *testing.T) {
	w := watch(t, written(attempts(2)))
	w.age(w.path)
	w.poll(2)
	w.expect(2)
	next := filepath.Join(w.dir, "next")
	w.write(next, attempts(4))
	w.age(next) // the same size, and no newer
	require.NoError(t, os.Rename(next, w.path))
	w.poll(2)
	w.expect(4, "in force")
}

func TestWatchLeavesAFileAloneThatIsBeingWritten(t *testing.T) {
	w := watch(t, written(attempts(2)))
	w.poll(1)
	w.expect(2)
	w.write(w.path, "")
	w.poll(3)
	w.expect(2, "registry: watching: DIR/resilience.yaml is empty")
	for _, part := range []string{"resilience:", "resilience: {retry: {a:", "resilience: {retry: {a: {max-attempts: 5"} {
		w.write(w.path, part)
		w.poll(1)
	}
	w.expect(2)
	w.write(w.path, attempts(5))
	w.poll(2)
	w.expect(5, "in force")
}

func TestWatchKeepsTheOldPlanUntilTheNewOneIsValid(t *testing.T) {
	w := watch(t, written(attempts(2)))
	w.poll(1)
	w.expect(2)
	w.write(w.path, attempts(99))
	w.poll(6)
	w.expect(2, "DIR/resilience.yaml: resilience.retry.a.max-attempts is 99: want a whole number from 1 to 64")
	w.write(w.path, attempts(6))
	w.poll(2)
	w.expect(6, "in force")
}

func TestWatchWaitsForAFileThatWasRemoved(t *testing.T) {
	w := watch(t, written(attempts(2)))
	w.poll(1)
	w.expect(2)
	require.NoError(t, os.Remove(w.path))
	w.poll(4)
	w.expect(2, "registry: watching: stat DIR/resilience.yaml: no such file or directory")
	w.write(w.path, attempts(2))
	w.poll(3)
	w.expect(2) // the same as before: nothing to do
	w.write(w.path, attempts(7))
	w.poll(2)
	w.expect(7, "in force")
}

// A mounted ConfigMap: the file is a link through ..data, which a rename swaps for a link to another directory.
func TestWatchFollowsASwappedSymlinkAsAConfigMapChanges(t *testing.T) {
	version := func(w *watched, name, text string) {
		dir := filepath.Join(w.dir, name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		w.write(filepath.Join(dir, "resilience.yaml"), text)
		w.age(filepath.Join(dir, "resilience.yaml"))
		require.NoError(t, os.Symlink(name, filepath.Join(w.dir, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(w.dir, "..tmp"), filepath.Join(w.dir, "..data")))
	}
	w := watch(t, func(w *watched) {
		version(w, "v1", attempts(2))
		require.NoError(t, os.Symlink(filepath.Join("..data", "resilience.yaml"), w.path))
	})
	w.poll(2)
	w.expect(2)
	version(w, "v2", attempts(8))
	w.poll(2)
	w.expect(8, "in force")
}

func TestWatchRefusesWhatIsNoFile(t *testing.T) {
	w := watch(t, func(w *watched) { w.path = w.dir })
	w.poll(3)
	w.expect(2, "registry: watching: DIR is no regular file")
	assert.ErrorContains(t, w.reg.Watch(bg, "", nil), "the path to watch is empty")
}

// No busy loop: an old file that does not change is a stat per second, and is not read.
func TestWatchReadsAnOldFileOnlyWhenItChanged(t *testing.T) {
	w := watch(t, written(attempts(2)))
	w.age(w.path)
	w.poll(3)
	w.expect(2)
	one := &watcher{path: w.path, reload: func([]byte, error) error { return nil }, onError: func(error) {}}
	_, changed, err := one.fetch()
	require.NoError(t, err)
	assert.True(t, changed)
	_, changed, err = one.fetch()
	require.NoError(t, err)
	assert.False(t, changed)
	w.write(w.path, attempts(3)) // of the same size
	_, changed, err = one.fetch()
	require.NoError(t, err)
	assert.True(t, changed)
	_, changed, _ = one.fetch()
	assert.True(t, changed, "young: the next write could have the same time stamp")
}

func TestWatchEndsWithItsContextAndWithTheRegistry(t *testing.T) {
	r := loaded(t, "")
	ctx, cancel := context.WithCancelCause(bg)
	require.NoError(t, r.Watch(ctx, "/nowhere", nil))
	cancel(errors.New("done"))
	r.watches.Wait()
	require.NoError(t, r.Watch(bg, "/nowhere", nil))
	require.NoError(t, r.Close())
	assert.NotNil(t, r.MustRetry("x").Config().Backoff, "the local instances go on working")
	assert.Equal(t, retry.Full, r.MustRetry("x").Config().Jitter)
}
