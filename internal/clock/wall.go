package clock

import (
	"sync/atomic"
	"time"
)

// wall is one instant on both scales: since time.Now costs nearly twice what a reading of the monotonic clock does, instants
// close to it are placed by their distance.
type wall struct {
	at   int64
	time time.Time
}

// lately is the process's last wall. A step of the wall clock is seen when the next one is made.
var lately atomic.Pointer[wall]

// maxDrift is how far from a wall an instant is placed by it.
const maxDrift = int64(time.Second)

// Both is one reading as Now tells it and as a time.Time, which has a monotonic reading outside testing/synctest. A step of the
// real wall clock shows in it within a second.
func (c Clock) Both() (int64, time.Time) {
	if c.fake != nil {
		t := c.fake.Now()
		return c.At(t), t
	}
	at := c.Now()
	w := lately.Load()
	if w == nil || at-w.at > maxDrift || w.at-at > maxDrift { // also where a bubble's decades lie between them
		t := time.Now()
		w = &wall{c.At(t), t}
		lately.Store(w)
	}
	return at, w.time.Add(time.Duration(at - w.at))
}
