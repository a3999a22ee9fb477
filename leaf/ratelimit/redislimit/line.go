package redislimit

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// request is one call in the line. done is closed once, soon after it has left the line with an answer; what it then reads was
// written before.
type request struct {
	n        int64
	try      bool // never waits
	deadline time.Time
	limited  bool // by the deadline

	fate     fate
	queued   bool  // it was told to wait
	last     int64 // the clock's reading at which its patience ends; of a queued one
	err      error
	fallback *fallback
	done     chan struct{}
}

type fate uint8

const (
	inLine     fate = iota
	granted         // by the store
	byPolicy        // FailOpen
	byFallback      // to be decided by the local limiter
	refused
	gone // its caller left; it has no place, and what it is granted goes back
)

// join takes n tokens that this process has in stock (no request, no error), or a place in the line.
func (l *Limiter) join(ctx context.Context, n int64, try bool) (*request, error) {
	l.mu.Lock()
	if n < 0 || n > int64(l.policy.cfg.Burst) {
		p := l.policy
		l.mu.Unlock()
		return nil, usageError(p, n)
	}
	if n == 0 || len(l.line) == 0 && l.stash >= n {
		l.stash -= n
		l.mu.Unlock()
		return nil, nil
	}
	r := &request{n: n, try: try, done: make(chan struct{})}
	if !try {
		r.deadline, r.limited = ctx.Deadline()
	}
	l.line = append(l.line, r)
	l.poke = true
	start := l.starts()
	l.mu.Unlock()
	l.launch(start)
	return r, nil
}

// leave takes r out, wherever it stands; tokens that it was just given, or is about to be given, go back.
func (l *Limiter) leave(r *request) {
	l.mu.Lock()
	switch r.fate {
	case inLine:
		l.resolve(r, gone, nil) // in a flight, landing finds it so
	case granted:
		l.loose += r.n
	}
	l.poke = true // who stands behind it moves up
	start := l.starts()
	l.mu.Unlock()
	l.launch(start)
}

// resolve decides r. Under mu, once for each request; the flight tells it when it has let go of mu.
func (l *Limiter) resolve(r *request, f fate, err error) {
	if r.queued {
		r.queued = false
		l.queued--
	}
	r.fate, r.err = f, err
	if f != gone {
		l.answered = append(l.answered, r)
	}
}

// enqueue lets r wait for tokens. Under mu.
func (l *Limiter) enqueue(r *request, asked int64, p *policy) {
	if r.queued {
		return
	}
	r.queued = true
	l.queued++
	r.last = clock.Add(asked, l.patience(r, p))
}

// patience is how long r may wait for tokens from now on.
func (l *Limiter) patience(r *request, p *policy) time.Duration {
	if r.try || p.cfg.MaxWait == 0 {
		return 0
	}
	most := p.cfg.MaxWait
	if r.limited {
		most = min(most, max(0, l.clock.Until(r.deadline)-1))
	}
	return most
}

// limited is the refusal of n more tokens at the level, those in front included in n.
func (p *policy) limited(s level, n int64) error {
	return &ratelimit.LimitedError{Name: p.cfg.Name, Wait: p.wait(s, n)}
}

// starts says whether the caller has to launch. Under mu.
func (l *Limiter) starts() bool {
	if l.flying || !l.poke {
		return false
	}
	l.flying = true
	l.disarm()
	return true
}

// launch begins to fly, in a goroutine of its own: who asks is not the one who carries the others.
func (l *Limiter) launch(start bool) {
	if start && !l.store.Go(l.fly) {
		l.fly(context.Background()) // closed: the store says so at once
	}
}

// again is how often the first in the line asks, at the least: another process may have given tokens back.
const again = time.Second

// arm wakes the line when its first is due. Under mu, while nothing flies.
func (l *Limiter) arm() {
	if l.queued == 0 {
		return
	}
	wait := min(time.Duration(l.due-l.clock.Now()), again)
	l.alarm = l.clock.AfterFunc(max(wait, 1), l.ring)
}

func (l *Limiter) disarm() {
	if l.alarm != nil {
		l.alarm()
		l.alarm = nil
	}
}

// ring is an alarm going off; one that was stopped too late asks once more than needed.
func (l *Limiter) ring() {
	l.mu.Lock()
	l.poke = l.poke || l.queued > 0
	start := l.starts()
	l.mu.Unlock()
	l.launch(start)
}

// clockDistance is never negative, and saturates.
func clockDistance(from, to int64) time.Duration {
	return time.Duration(max(0, clock.Add(to, time.Duration(-from))))
}
