package breaker

import "time"

// opening is what refuses while the circuit is open. It never changes once it has begun.
type opening struct {
	since    int64
	wait     time.Duration // from since on
	openTime time.Duration // wait before jitter
	forced   bool          // without an end
	cause    error
}

// left is how long the opening still refuses; 0 = it is over, or it began in the future: the clock has jumped.
func (o *opening) left(now int64) time.Duration { return remains(o.since, o.wait, now) }

// remains is how much is left at now of the time d that began at since. An unsigned difference cannot overflow.
func remains(since int64, d time.Duration, now int64) time.Duration {
	if gone := uint64(now) - uint64(since); now >= since && gone < uint64(d) {
		return d - time.Duration(gone)
	}
	return 0
}

// lease is a probe's slot.
type lease struct {
	serial uint64
	since  int64
	length time.Duration
}
