package ratelimit

// NewQuota is a bucket of n tokens, n from 1, that is never refilled: once they are gone every refusal has Wait < 0.
// It reads no clock and never lets anybody wait; a refund (leaf.NotRun) gives a token back.
func NewQuota(name string, n int) (*Limiter, error) {
	cfg, p, err := Config{Name: name, Burst: n}.filledQuota()
	if err != nil {
		return nil, err
	}
	l := &Limiter{}
	l.bucket.Store(&bucket{policy: p, cfg: cfg})
	return l, nil
}

// MustNewQuota is NewQuota that panics instead.
func MustNewQuota(name string, n int) *Limiter { return must(NewQuota(name, n)) }
