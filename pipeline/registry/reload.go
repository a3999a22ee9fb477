package registry

import (
	"errors"
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
	if err != nil {
		return r.reloaded(func() error { return err })
	}
	return r.reload(text)
}

func (r *Registry) reload(text []byte) error {
	return r.reloaded(func() error {
		node, err := parseAny(text)
		if err != nil {
			return err
		}
		return r.apply(node)
	})
}

// reloadFile is reload of a file: one that says nothing at all is one that is being written, or was cut off.
func (r *Registry) reloadFile(text []byte) error {
	return r.reloaded(func() error {
		node, err := parseAny(text)
		if err != nil {
			return err
		}
		if node == nil || (at{node: deref(node)}).null() {
			return errors.New("registry: the document is empty")
		}
		return r.apply(node)
	})
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
