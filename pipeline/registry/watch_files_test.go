//go:build unix

package registry

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/internal/redistest"
)

// Whatever a path becomes, the old plan stays, one event tells, and what comes back is put in force.
func TestWatchOutlivesWhateverAPathBecomes(t *testing.T) {
	for name, c := range map[string]struct {
		become func(w *watched)
		event  string
		again  func(w *watched)
	}{
		"a directory": {
			func(w *watched) {
				require.NoError(w.t, os.Remove(w.path))
				require.NoError(w.t, os.Mkdir(w.path, 0o700))
			},
			"registry: watching: DIR/resilience.yaml is no regular file",
			func(w *watched) { require.NoError(w.t, os.Remove(w.path)) },
		},
		"a FIFO": {
			func(w *watched) {
				require.NoError(w.t, os.Remove(w.path))
				require.NoError(w.t, syscall.Mkfifo(w.path, 0o600))
			},
			"registry: watching: DIR/resilience.yaml is no regular file",
			func(w *watched) { require.NoError(w.t, os.Remove(w.path)) },
		},
		"a dangling link": {
			func(w *watched) {
				require.NoError(w.t, os.Remove(w.path))
				require.NoError(w.t, os.Symlink("gone", w.path))
			},
			"registry: watching: stat DIR/resilience.yaml: no such file or directory",
			func(w *watched) { require.NoError(w.t, os.Remove(w.path)) },
		},
		"a link to itself": {
			func(w *watched) {
				require.NoError(w.t, os.Remove(w.path))
				require.NoError(w.t, os.Symlink("resilience.yaml", w.path))
			},
			"registry: watching: stat DIR/resilience.yaml: too many levels of symbolic links",
			func(w *watched) { require.NoError(w.t, os.Remove(w.path)) },
		},
		"nowhere, with its directory": {
			func(w *watched) { require.NoError(w.t, os.RemoveAll(w.dir)) },
			"registry: watching: stat DIR/resilience.yaml: no such file or directory",
			func(w *watched) { require.NoError(w.t, os.Mkdir(w.dir, 0o700)) },
		},
		"too long": {
			func(w *watched) { w.write(w.path, strings.Repeat("#", mostBytes+1)) },
			"DIR/resilience.yaml: registry: the document is longer than 1048576 bytes",
			func(*watched) {},
		},
		"nothing but comments": {
			func(w *watched) { w.write(w.path, "# the rest is still to be written\n---\n") },
			"DIR/resilience.yaml: registry: the document is empty, which would remove every instance: want `resilience: {}` where that is meant",
			func(*watched) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, written(attempts(2)))
			w.poll(1)
			w.expect(2)
			c.become(w)
			w.poll(5)
			w.expect(2, c.event)
			c.again(w)
			w.write(w.path, attempts(6))
			w.poll(3)
			w.expect(6, "in force")
		})
	}
}

// A pipe that takes the file's place between the look and the reading must not hold the watch for ever.
func TestOpeningAPipeDoesNotWaitForAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, _, err := readRegular(path)
	assert.EqualError(t, err, "registry: watching: "+path+" is no regular file")
}

func TestAFileThatMayNotBeReadIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(attempts(2)), 0o000))
	if _, err := os.ReadFile(path); err == nil { // root reads everything: a socket is what it cannot open
		require.NoError(t, os.Remove(path))
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		require.NoError(t, err)
		defer syscall.Close(fd)
		require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	}
	_, _, err := readRegular(path)
	assert.ErrorContains(t, err, "registry: watching: open "+path)
}

// cp -p onto the file keeps its inode, and can keep its size and its time stamp: that change is found, too, some looks later.
func TestWatchFindsAChangeThatKeepsSizeAndTimeStamp(t *testing.T) {
	w := watch(t, written(attempts(2)))
	w.age(w.path)
	w.poll(2)
	w.expect(2)
	stamp := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(w.path, stamp, stamp))
	w.poll(readAnyway)
	w.write(w.path, attempts(7))
	require.NoError(t, os.Chtimes(w.path, stamp, stamp))
	w.poll(readAnyway + 2)
	w.expect(7, "in force")
}

// A context that ends while the file is read, or has ended before: nothing changes, nobody is told.
func TestAWatchWhoseContextEndedDoesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resilience.yaml")
	ctx, cancel := context.WithCancel(bg)
	cancel()
	r := loaded(t, attempts(2))
	fail := func(err error) { t.Error("told:", err) }
	require.NoError(t, r.Watch(ctx, path, fail))
	r.watches.Wait()
	one := &watcher{path: path, reload: func([]byte, error) error { t.Error("reloaded"); return nil }, onError: fail}
	one.look(ctx)
	require.NoError(t, os.WriteFile(path, []byte(attempts(3)), 0o600))
	one.look(bg) // seen once
	one.look(ctx)
	assert.EqualError(t, r.Watch(nobody, path, nil), "registry: the context to watch in is nil: want one that ends the watch, or context.Background()")
}

var nobody context.Context

// What the registry's end cuts off is no trouble of the file's.
func TestAWatchDoesNotTellThatTheRegistryIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resilience.yaml")
	require.NoError(t, os.WriteFile(path, []byte(attempts(3)), 0o600))
	r := loaded(t, "")
	one := &watcher{path: path, reload: r.reloadFile(path), onError: func(err error) { t.Error("told:", err) }}
	one.look(bg)
	require.NoError(t, r.Close())
	one.look(bg)
}

// runtime.Goexit in a hook (a test's FailNow, say) ends that look alone; a nil onError is nobody.
func TestAGoexitInAHookDoesNotEndTheWatch(t *testing.T) {
	w := watch(t, written(attempts(2)))
	told := 0
	require.NoError(t, w.reg.Watch(bg, filepath.Join(w.dir, "gone"), func(error) { told++; runtime.Goexit() }))
	require.NoError(t, w.reg.Watch(bg, filepath.Join(w.dir, "gone"), nil))
	require.NoError(t, w.clk.BlockUntilContext(bg, 3))
	w.reg.onReload = func(error) { runtime.Goexit() }
	w.clk.Advance(pollEvery)
	require.NoError(t, w.clk.BlockUntilContext(bg, 3))
	w.write(w.path, attempts(4))
	for range 3 {
		w.clk.Advance(pollEvery)
		require.NoError(t, w.clk.BlockUntilContext(bg, 3))
	}
	w.expect(4)
	assert.Equal(t, 1, told)
}

// A panic in a hook ends the program, as in every goroutine: it must not vanish. So another process shows it.
func TestAPanicInOnErrorIsNotSwallowed(t *testing.T) {
	self := exec.Command(os.Args[0])
	self.Env = append(os.Environ(), `FAIRLEAD_REDISTEST_CHILD=["a watch that panics"]`)
	out, err := self.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "panic: boom")
	assert.NotContains(t, string(out), "still here")
}

var _ = redistest.Child("a watch that panics", func(s *redistest.Self) {
	r, _ := LoadYAML(strings.NewReader(""))
	_ = r.Watch(bg, "/nowhere", func(error) { panic("boom") })
	r.watches.Wait()
	s.Say("still here")
})
