package registry

import (
	"errors"
	"fmt"
	"io"
)

// Reload puts another document in force, YAML or JSON, and keeps the history: token balances, open circuits and their times,
// permits and queues stay. With an error, which is as LoadYAML's, nothing changes: one invalid section is enough. A name that
// the document no longer has keeps its instance for who holds it, and comes back with it. It goes on going by the switch, and by
// what its parts have become, whether or not that would still pass for a document.
//
// When Reload returns, no call that begins sees what was before; what calls can see meanwhile is in the package's comment.
//
// What cannot change is an error, too: whether an instance is shared, what a shared one was made with (its keys that speak of
// the store, and the section store), whether a limiter is a quota, whether a retry budget is a pool.
func (r *Registry) Reload(from io.Reader) error {
	text, err := read(from)
	return r.reloaded(func() error {
		if err != nil {
			return err
		}
		return r.parsed(text)
	})
}

// reloadFile is reload of what a file has become, or of why it cannot be read: whoever hears of it hears the path.
func (r *Registry) reloadFile(path string) func(text []byte, err error) error {
	return func(text []byte, err error) error {
		return r.reloaded(func() error {
			if err == nil {
				if err = r.parsed(text); err != nil {
					err = fmt.Errorf("%s: %w", path, err)
				}
			}
			return err
		})
	}
}

// errSilent: a file that says nothing is one that is being written, was cut off, or has all of it commented out.
var errSilent = errors.New("registry: the document is empty, which would remove every instance: want `resilience: {}` where that is meant")

// parsed puts a text in force.
func (r *Registry) parsed(text []byte) error {
	node, err := parseAny(text)
	if err != nil {
		return err
	}
	var quiet decoder
	if a, ok := findRoot(&quiet, node); quiet.count() == 0 && (!ok || a.null()) {
		return errSilent
	}
	return r.apply(node, digestOf(text))
}

// reloaded is one reload at a time, told to the hook in that order.
func (r *Registry) reloaded(do func() error) error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	r.mu.RLock()
	closed := r.closed
	r.mu.RUnlock()
	if closed {
		return errClosed
	}
	err := do()
	if r.onReload != nil && !errors.Is(err, errClosed) {
		r.onReload(err)
	}
	return err
}
