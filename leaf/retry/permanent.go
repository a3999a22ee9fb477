package retry

import "errors"

// Permanent marks err as never to be retried; errors.Is and As see through it, and its text is err's. Permanent(nil) is nil.
// The mark is found anywhere in the tree of what fn returns, which then comes back as it is, mark included.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ err error }

func (p *permanent) Error() string { return p.err.Error() }
func (p *permanent) Unwrap() error { return p.err }

func isPermanent(err error) bool {
	_, ok := errors.AsType[*permanent](err)
	return ok
}
