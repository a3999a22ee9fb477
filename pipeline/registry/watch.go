package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
)

const (
	// pollEvery is how often a watched file is looked at: a stat, which costs microseconds.
	pollEvery = time.Second
	// settled is the age from which a file's time stamp tells changes apart, on every file system that is in use.
	settled = 3 * time.Second
	// readAnyway is after how many looks a file is read all the same: who copies time stamps along (cp -p) can hide a change from them.
	readAnyway = 10
)

// Watch reloads when the file at path changes, until ctx ends or the registry is closed. It returns at once.
//
// The file is looked at once a second, through symbolic links: a file replaced by a rename and a link that points elsewhere (as
// a mounted Kubernetes ConfigMap changes) are found like a file that was written. A change is in force when it was seen twice,
// so that a file which is being written is left alone. One that is gone, empty or invalid changes nothing, and is told to
// onError once, by its path; the next change is looked at again. What onError hears, [WithOnReload] has heard before, with the
// same error; that a change is in force it alone hears. The content that the file has now counts as a change, unless it is the text
// that is in force (that LoadYAML or LoadJSON read, or the last Reload). A change that keeps the file's size and time stamp (cp -p)
// is found within 10 s.
//
// nil onError = nobody is told. onError runs on a goroutine of Watch's and must not call Close: a panic in it, as in every
// goroutine, ends the program; [runtime.Goexit] ends nothing but that look.
func (r *Registry) Watch(ctx context.Context, path string, onError func(error)) error {
	if path == "" {
		return errors.New("registry: the path to watch is empty")
	}
	if ctx == nil {
		return errors.New("registry: the context to watch in is nil: want one that ends the watch, or context.Background()")
	}
	if onError == nil {
		onError = func(error) {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	w := &watcher{path: path, reload: r.reloadFile(path), onError: onError, clock: clock.Of(r.clock), inForce: r.text}
	r.watches.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(r.life, cancel)()
		w.run(ctx)
	})
	return nil
}

// watcher is one file that is looked at.
type watcher struct {
	path    string
	reload  func(text []byte, err error) error // err: there is no text
	onError func(error)
	clock   clock.Clock

	seen    os.FileInfo // of the last look that read the file; nil = read it
	unread  int         // looks since then
	pending *digest
	inForce *digest // of the last content that was tried, valid or not; at first, of what is in force
	told    string  // the trouble that was told last
}

func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		looked := make(chan struct{})
		go func() { // of its own: what the program hears of a look may end in runtime.Goexit
			defer close(looked)
			w.look(ctx)
		}()
		<-looked
		t := w.clock.NewTimer(pollEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// look is one poll. Where ctx ended meanwhile, nothing changes and nobody is told.
func (w *watcher) look(ctx context.Context) {
	text, changed, err := w.fetch()
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil:
		w.seen, w.pending = nil, nil
		if w.told != err.Error() { // once
			w.told = err.Error()
			w.tell(w.reload(nil, err))
		}
		return
	case !changed:
		return
	}
	sum := *digestOf(text)
	switch {
	case w.inForce != nil && *w.inForce == sum:
		w.pending, w.told = nil, ""
	case w.pending == nil || *w.pending != sum:
		w.pending = &sum // it may still be being written
		w.seen = nil
	default:
		w.pending, w.inForce, w.told = nil, &sum, ""
		w.tell(w.reload(text, nil))
	}
}

// tell tells a trouble. What the registry's end cut off is none.
func (w *watcher) tell(err error) {
	if err != nil && !errors.Is(err, errClosed) {
		w.onError(err)
	}
}

// fetch reads the file unless it is certainly the one that was read before.
func (w *watcher) fetch() (text []byte, changed bool, err error) {
	info, err := os.Stat(w.path)
	if err != nil {
		return nil, false, fmt.Errorf("registry: watching: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a device does things, reading a pipe would not end
		return nil, false, noFile(w.path)
	}
	if w.unread++; w.unread < readAnyway && w.seen != nil && os.SameFile(w.seen, info) && w.seen.Size() == info.Size() && w.seen.ModTime().Equal(info.ModTime()) {
		return nil, false, nil
	}
	w.unread = 0
	if text, info, err = readRegular(w.path); err != nil {
		return nil, false, err
	}
	w.seen = nil
	if time.Since(info.ModTime()) > settled { // else the next write could have the same stamp
		w.seen = info
	}
	return text, true, nil
}

// readRegular reads a file that is one, and what it says of itself, which is that of what is read.
func readRegular(path string) (text []byte, info os.FileInfo, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // should it be a pipe by now, Open would wait for who writes to it
	if err != nil {
		return nil, nil, fmt.Errorf("registry: watching: %w", err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, fmt.Errorf("registry: watching: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, noFile(path)
	}
	if text, err = read(f); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(text) == 0 {
		return nil, nil, fmt.Errorf("registry: watching: %s is empty", path)
	}
	return text, info, nil
}

func noFile(path string) error { return fmt.Errorf("registry: watching: %s is no regular file", path) }
