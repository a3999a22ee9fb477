package redisbulkhead

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
)

// mostInTurn bounds each part of a turn, and with it how long one script holds up the server: about 1 µs for each.
const mostInTurn = 512

// turnCall is one turn: what one run of the script is asked for.
type turnCall struct {
	releases []*release
	renewals []*slot
	fresh    []*slot  // of them, those that the store has not heard of
	tokens   []string // wanted: the store grants the first ones
	calls    []*call  // who has not heard of the store yet: who is not granted is refused
	queued   int      // this process's queue
	wait     bool     // keep a place in the line for who is not granted
	bound    int64    // the store's time after which only the releases count, µs; 0 = none
	limit    int
	seen     int64
	overdue  int64 // the first end of a lease among the releases, where it would be told
	sent     time.Time
}

// compose collects everything that there is to do; nil = nothing. Under mu.
func (b *Bulkhead) compose(now time.Time) *turnCall {
	t := &turnCall{limit: b.cfg.Load().MaxConcurrent, seen: b.engine.seen, overdue: never, sent: now}
	t.releases = append(t.releases, b.releases[:min(len(b.releases), mostInTurn)]...)
	for _, r := range t.releases {
		if r.news() {
			t.overdue = min(t.overdue, r.slot.expires)
		}
	}
	for len(b.renewals) > 0 && len(t.renewals) < mostInTurn {
		if s := b.renewals[0]; !s.ended {
			t.renewals = append(t.renewals, s)
		}
		b.renewals = b.renewals[1:]
	}
	if len(b.renewals) == 0 && !b.engine.closed { // before anybody is admitted, the store knows who is inside
		b.ask(t)
	}
	if len(t.releases) == 0 && len(t.renewals) == 0 && len(t.tokens) == 0 && !b.engine.registered {
		return nil
	}
	if e := &b.engine; b.opts.Now == nil && e.seen != 0 && e.stale < 2 {
		t.bound = e.ahead + (now.Sub(epoch) + b.opts.Timeout).Microseconds()
	}
	for _, s := range t.renewals {
		if !s.known {
			s.known, t.fresh = true, append(t.fresh, s) // from now on it may be
		}
	}
	return t
}

// ask asks for the queue. All of it hears the answer, unless there may be more slots than one turn could ask for; who waits already
// has heard it, and stands in front of who has not. Under mu.
func (b *Bulkhead) ask(t *turnCall) {
	t.queued = b.queue.n
	n := min(t.queued, t.limit, mostInTurn)
	for range n {
		t.tokens = append(t.tokens, random())
	}
	for c := b.queue.back; c != nil && !c.waits; c = b.queue.prev(c) {
		t.calls = append(t.calls, c)
	}
	slices.Reverse(t.calls)
	t.wait = b.waiting > 0 || slices.ContainsFunc(t.calls, func(c *call) bool { return c.wait })
}

// never is an instant that the store's clock does not reach, and a number that Lua holds.
const never = 1 << 53

func (t *turnCall) args(b *Bulkhead) []any {
	wait := "0"
	if t.wait {
		wait = "1"
	}
	args := make([]any, 0, 12+len(t.releases)+len(t.renewals)+len(t.tokens))
	args = append(args, min(int64(t.limit), 1<<52), b.opts.LeaseTTL.Microseconds(), patience.Microseconds(), t.seen, t.bound, b.id,
		wait, t.queued, len(t.releases), len(t.renewals), len(t.tokens), t.overdue)
	for _, r := range t.releases {
		args = append(args, r.slot.token)
	}
	for _, s := range t.renewals {
		args = append(args, s.token)
	}
	for _, token := range t.tokens {
		args = append(args, token)
	}
	return args
}

// take sends the turn, and spreads what came of it.
func (b *Bulkhead) take(t *turnCall) {
	op := leaf.OpRecord
	if len(t.tokens) > 0 {
		op = leaf.OpAdmit
	}
	reply, err := b.store.Do(context.Background(), redisscript.Call{
		Op: op, Script: turn, Args: t.args(b), Resend: true, Late: func(r redisscript.Reply) { b.late(t, r) },
	})
	received := time.Now()
	var a answer
	if err == nil {
		if a, err = t.read(reply); err != nil {
			err = b.storeError(op, err, false)
		}
	}
	if err != nil {
		b.failed(t, err, received)
		return
	}
	if overages := b.worked(t, a, received); len(overages) > 0 {
		b.tell(overages)
	}
}

// tell tells of permits that came too late, off the engine: a hook that is slow must not keep anybody waiting.
func (b *Bulkhead) tell(overages []error) {
	all := func(ctx context.Context) {
		for _, overage := range overages {
			b.store.Overage(context.WithoutCancel(ctx), leaf.OpRecord, overage)
		}
	}
	if !b.store.Go(all) {
		all(context.Background())
	}
}

// failed: everybody who is in the turn, or came meanwhile, is decided on. What is to be given back, or told, stays.
func (b *Bulkhead) failed(t *turnCall, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	notExecuted, cause := false, err
	if storeErr, ok := errors.AsType[*leaf.StoreError](err); ok {
		notExecuted, cause = storeErr.NotExecuted || foreign(storeErr.Err), storeErr.Err
	}
	sent := map[*call]bool{}
	for _, c := range t.calls {
		sent[c] = true
	}
	for _, r := range t.releases {
		r.maybe = r.maybe || !notExecuted
	}
	for _, r := range b.releases {
		r.tell(b.storeError(leaf.OpRecord, cause, !r.maybe))
	}
	b.renewals = append(b.renewals, t.renewals...)
	if notExecuted {
		for _, s := range t.fresh {
			s.known = false
		}
	} else { // any of them may be taken
		for _, token := range t.tokens {
			b.surplus(token, now)
		}
	}
	if b.queue.n == 0 {
		b.engine.registered = false // the place ends by itself before long
	}
	b.outage.down = true
	if b.engine.closed {
		b.engine.lastBatch = true // Close tells a store that fails no more than once
		return
	}
	b.decideAll(cause, notExecuted, sent)
	b.later(now)
}

// worked spreads the store's answer; it returns what there is to tell of permits that came too late.
func (b *Bulkhead) worked(t *turnCall, a answer, received time.Time) (overages []error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &b.engine
	b.outage.down = false
	e.ahead = a.now - received.Sub(epoch).Microseconds()
	moved := a.granted > 0 || len(t.releases) > 0
	for i, r := range t.releases {
		if a.released[i] == '0' && r.news() && a.now >= r.slot.expires {
			overages = append(overages, b.overage("given back", r.slot, a.now))
		}
		r.tell(nil)
	}
	b.releases = b.releases[len(t.releases):]
	if a.flags&flagStale != 0 {
		e.stale++
		b.renewals = append(b.renewals, t.renewals...)
		e.now = !e.closed
		return overages
	}
	e.stale, e.seen, e.took = 0, a.now, received.Sub(t.sent)
	if a.granted > 0 {
		e.granted = received
	}
	for i, s := range t.renewals {
		if a.added[i] == '1' && s.expires != 0 && !s.lost && a.now >= s.expires {
			overages = append(overages, b.overage("renewed", s, a.now))
			s.lost = true
		}
		b.confirm(s, a.now, t.sent)
	}
	for _, token := range t.tokens[:a.granted] {
		s := &slot{token: token}
		b.confirm(s, a.now, t.sent)
		if front := b.queue.front; front != nil {
			b.grant(front, s)
		} else {
			b.send(s, true)
		}
	}
	all := t.limit <= mostInTurn || int(a.granted) < len(t.tokens) // else there may be more than the turn could ask for
	if all {
		for _, c := range t.calls {
			b.turnedDown(c, b.full)
		}
	}
	e.registered, e.wants = a.flags&flagWaiting != 0, t.queued-int(a.granted)
	if all {
		b.overhear()
	}
	if a.until != 0 && a.until != e.quarantine { // the store has lost data, once more: it should hear at once who is inside
		b.renewAll(received)
	}
	e.quarantine = a.until
	if !e.closed {
		b.schedule(received, moved)
		b.listen()
	}
	return overages
}

// overage counts a permit whose slot may have been somebody else's for a while. Under mu.
func (b *Bulkhead) overage(how string, s *slot, now int64) error {
	b.overages++
	return fmt.Errorf("redisbulkhead: a permit of %q was %s %v after its lease", b.cfg.Load().Name, how,
		time.Duration(now-s.expires)*time.Microsecond)
}

// foreign says that something else wrote the key, which the script finds out before it does anything.
func foreign(err error) bool {
	text := err.Error()
	return strings.Contains(text, "WRONGTYPE") || strings.Contains(text, "no bulkhead wrote")
}

// mostSurplus bounds what a store that fails for long makes this process remember. What is beyond ends with its lease.
const mostSurplus = 4096

// surplus gives back a token that may have been granted and that nobody has. Under mu.
func (b *Bulkhead) surplus(token string, now time.Time) {
	if len(b.releases) >= mostSurplus {
		return
	}
	b.releases = append(b.releases, &release{
		slot: &slot{token: token, ended: true}, quiet: true, maybe: true, told: true, until: now.Add(b.opts.LeaseTTL),
	})
}

// late is the answer to a turn that nobody waits for any more: what it took is given back.
func (b *Bulkhead) late(t *turnCall, r redisscript.Reply) {
	a, err := t.read(r)
	if err != nil || a.flags&flagStale != 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, token := range t.tokens[:a.granted] {
		b.surplus(token, now)
	}
	for _, s := range t.renewals {
		if s.ended {
			b.surplus(s.token, now)
		}
	}
	if a.flags&flagWaiting != 0 {
		b.engine.registered = true
	}
	b.engine.now = true
	b.run()
}
