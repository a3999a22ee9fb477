package redisbreaker

import (
	"context"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/internal/breaking"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
)

const (
	// batching is how long successes wait for company.
	batching = 50 * time.Millisecond
	// fresh is how long results are kept that cannot be delivered: later they would say of now what was true then.
	fresh = time.Second
	// mostRuns bounds a batch; only what cannot be delivered ever gets so long.
	mostRuns = 1 << 12
)

// run is equal results, one after the other.
type run struct {
	kind byte // '0' + 1 failed + 2 slow
	n    int
}

// batch is results of one generation in their order.
type batch struct {
	runs   []run
	gen    int64
	seq    int64
	began  time.Time
	cause  error // the last failure's
	urgent bool
}

func (t *batch) add(kind byte) {
	if len(t.runs) == 0 {
		t.began = time.Now()
	}
	if last := len(t.runs) - 1; last >= 0 && t.runs[last].kind == kind {
		t.runs[last].n++
		return
	}
	if len(t.runs) == mostRuns {
		t.runs = t.runs[:copy(t.runs, t.runs[mostRuns/2:])]
	}
	t.runs = append(t.runs, run{kind, 1})
}

func (t *batch) text() string {
	var s []byte
	for _, r := range t.runs {
		s = append(s, r.kind, ' ')
		s = strconv.AppendInt(s, int64(r.n), 10)
		s = append(s, ' ')
	}
	return string(s)
}

// outbox is what the store has not been told yet. Under Breaker.mu.
type outbox struct {
	open   batch
	sealed *batch // was sent and may have arrived: nothing else goes before it is certain
	seq    int64
	busy   bool          // somebody is flushing, or about to
	pause  bool          // the last flush failed; the timer comes back to it
	timer  *time.Timer   // runs where something waits for company, or for the store
	armed  bool          // timer runs
	turn   chan struct{} // one flush at a time, Close's too
}

func (o *outbox) init() { o.turn = make(chan struct{}, 1) }

// forget drops the results of an earlier generation.
func (o *outbox) forget() { o.open, o.sealed = batch{}, nil }

// report puts a result of a closed circuit into the outbox: a failure leaves at once, a success within 50 ms. The caller never waits
// for it.
func (b *Breaker) report(serial uint64, is breaking.Result, err error) {
	if is == breaking.Neutral {
		return
	}
	kind := byte('0')
	if is&breaking.Failed != 0 {
		kind++
	}
	if is&breaking.Slow != 0 {
		kind += 2
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.view.Load()
	if serial != v.serial || b.closed {
		return
	}
	o := &b.outbox
	if o.sealed != nil && len(o.open.runs) > 0 && time.Since(o.open.began) > fresh {
		o.open = batch{}
	}
	o.open.gen = v.gen
	o.open.add(kind)
	if is&breaking.Failed != 0 {
		o.open.urgent, o.open.cause = true, err
		if !o.pause {
			b.flushSoon()
			return
		}
	}
	b.arm()
}

// arm starts the timer; under mu.
func (b *Breaker) arm() {
	o := &b.outbox
	if o.armed || b.closed {
		return
	}
	o.armed = true
	if o.timer == nil {
		o.timer = time.AfterFunc(batching, b.timeIsUp)
		return
	}
	o.timer.Reset(batching)
}

func (b *Breaker) timeIsUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := &b.outbox
	o.armed, o.pause = false, false
	o.open.urgent = len(o.open.runs) > 0
	b.flushSoon()
}

// flushSoon starts a flusher where none is at it; under mu.
func (b *Breaker) flushSoon() {
	if !b.outbox.busy && !b.closed {
		b.outbox.busy = b.store.Go(b.flusher)
	}
}

// flusher sends until nothing is urgent. Hooks run when it has left the turn: they may use the breaker.
func (b *Breaker) flusher(context.Context) {
	left := false
	defer func() {
		if !left { // the program's own, a hook or Rand, has ended the goroutine
			b.mu.Lock()
			b.outbox.busy = false
			b.arm()
			b.mu.Unlock()
		}
	}()
	for b.flushInTurn(false) {
		b.tell()
	}
	b.tell()
	left = true
}

func (b *Breaker) flushInTurn(all bool) (more bool) {
	b.outbox.turn <- struct{}{}
	defer func() { <-b.outbox.turn }()
	return b.flush(all)
}

// flush sends one batch, with the turn held. It says whether there is more; where not, nobody is busy any more. all = also what
// may wait.
func (b *Breaker) flush(all bool) (more bool) {
	b.mu.Lock()
	o := &b.outbox
	t := o.seal(all)
	if t == nil {
		o.busy = false
		if len(o.open.runs) > 0 {
			b.arm()
		}
		b.mu.Unlock()
		return false
	}
	p := b.policy.Load()
	b.mu.Unlock()

	open, wait := p.firstOpening()
	args := append(b.args(t.gen, b.id, t.seq), p.window...)
	_, err := b.ask(context.Background(), redisscript.Call{
		Op: leaf.OpRecord, Script: record, Args: append(args, open, wait, t.text()), Resend: true,
	}, t.cause)

	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		o.busy, o.pause = false, true
		b.arm()
		return false
	}
	o.sealed = nil
	return true
}

// seal is the batch to send: the one that may not have arrived, under the same number, or a new one. Under mu.
func (o *outbox) seal(all bool) *batch {
	if o.sealed != nil && time.Since(o.sealed.began) > fresh {
		o.sealed = nil
	}
	if o.sealed == nil && len(o.open.runs) > 0 && (all || o.open.urgent) {
		t := o.open
		o.open = batch{}
		o.seq++
		t.seq = o.seq
		o.sealed = &t
	}
	return o.sealed
}

// Close sends what waits, within Timeout, ends every goroutine, and leaves the client open. It may be called again; afterwards the
// breaker decides by what it knew last, by its outage policy where it would have to ask, and records nothing. A hook must not call it: it waits for hooks that run.
func (b *Breaker) Close(ctx context.Context) error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	if b.outbox.timer != nil {
		b.outbox.timer.Stop()
	}
	b.mu.Unlock()
	if first {
		for b.flushInTurn(true) {
		}
		b.tell()
	}
	return b.store.Close(ctx)
}
