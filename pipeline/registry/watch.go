package registry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
)

const (
	// pollEvery is how often a watched file is looked at: a stat, which costs microseconds.
	pollEvery = time.Second
	// settled is the age from which a file's time stamp tells changes apart, on every file system that is in use.
	settled = 3 * time.Second
)

// Watch reloads when the file at path changes, until ctx ends or the registry is closed. It returns at once.
//
// The file is looked at once a second, through symbolic links: a file replaced by a rename and a link that points elsewhere (as
// a mounted Kubernetes ConfigMap changes) are found like a file that was written. A change is in force when it was seen twice,
// so that a file which is being written is left alone. One that is gone, empty or invalid changes nothing, and is told to
// onError once; the next change is looked at again. The content that the file has now counts as a change, unless Watch itself
// put it in force already. nil onError = nobody is told. onError runs on Watch's goroutine and must not call Close.
func (r *Registry) Watch(ctx context.Context, path string, onError func(error)) error {
	if path == "" {
		return errors.New("registry: the path to watch is empty")
	}
	if onError == nil {
		onError = func(error) {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	w := &watcher{path: path, reload: r.reload, onError: onError, clock: clock.Of(r.clock)}
	r.watches.Go(func() { w.run(ctx, r.life) })
	return nil
}

// watcher is one file that is looked at.
type watcher struct {
	path    string
	reload  func([]byte) error
	onError func(error)
	clock   clock.Clock

	seen    os.FileInfo // of the last look that read the file; nil = read it
	pending *[sha256.Size]byte
	inForce *[sha256.Size]byte // the last content that was tried, valid or not
	told    string             // the trouble that was told last
}

func (w *watcher) run(ctx, life context.Context) {
	for {
		w.look()
		t := w.clock.NewTimer(pollEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		case <-life.Done():
			t.Stop()
			return
		}
	}
}

// look is one poll.
func (w *watcher) look() {
	text, changed, err := w.fetch()
	switch {
	case err != nil:
		w.seen, w.pending = nil, nil
		w.tell(err)
		return
	case !changed:
		return
	}
	sum := sha256.Sum256(text)
	switch {
	case w.inForce != nil && *w.inForce == sum:
		w.pending, w.told = nil, ""
	case w.pending == nil || *w.pending != sum:
		w.pending = &sum // it may still be being written
		w.seen = nil
	default:
		w.pending, w.inForce, w.told = nil, &sum, ""
		if err := w.reload(text); err != nil {
			w.tell(fmt.Errorf("%s: %w", w.path, err))
		}
	}
}

// tell tells a trouble once.
func (w *watcher) tell(err error) {
	if w.told != err.Error() {
		w.told = err.Error()
		w.onError(err)
	}
}

// fetch reads the file unless it is certainly the one that was read before.
func (w *watcher) fetch() (text []byte, changed bool, err error) {
	info, err := os.Stat(w.path)
	if err != nil {
		return nil, false, fmt.Errorf("registry: watching: %w", err)
	}
	if !info.Mode().IsRegular() { // reading a pipe would not end
		return nil, false, fmt.Errorf("registry: watching: %s is no regular file", w.path)
	}
	if w.seen != nil && os.SameFile(w.seen, info) && w.seen.Size() == info.Size() && w.seen.ModTime().Equal(info.ModTime()) {
		return nil, false, nil
	}
	f, err := os.Open(w.path)
	if err != nil {
		return nil, false, fmt.Errorf("registry: watching: %w", err)
	}
	defer f.Close()
	if text, err = read(io.Reader(f)); err != nil {
		return nil, false, fmt.Errorf("%s: %w", w.path, err)
	}
	if len(text) == 0 {
		return nil, false, fmt.Errorf("registry: watching: %s is empty", w.path)
	}
	w.seen = nil
	if time.Since(info.ModTime()) > settled { // else the next write could have the same stamp
		w.seen = info
	}
	return text, true, nil
}
