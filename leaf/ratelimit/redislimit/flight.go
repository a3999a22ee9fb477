package redislimit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
)

// batch is one call of the store: everything that had to be asked when it began.
type batch struct {
	policy   policy
	runs     []run
	count    int // requests in the runs: the first so many of the line
	settlers []*settler
	refund   int64 // of them, and loose
	stash    int64 // of the refund, what was in stock
	seq      int64
	asked    int64     // the clock's reading when it began
	began    time.Time // the same for the store's budget
	call     redisscript.Call
}

// run is equal requests that stand one behind the other.
type run struct {
	n, most int64
	reqs    []*request
}

// fly asks the store until there is nothing more to ask: one call at a time, and everyone who arrives meanwhile rides on the
// next. That keeps the order, and is where the speed comes from.
func (l *Limiter) fly(context.Context) {
	for {
		b := l.load()
		tell(l.takeAnswered()) // from what was in stock
		if b == nil {
			return
		}
		l.carry(b)
		if l.goesOn(l.takeAnswered()) {
			return
		}
	}
}

// carry sends the batch, and decides on who flew.
func (l *Limiter) carry(b *batch) {
	if b.call.Script == nil { // settlers of nothing: a flush
		l.land(b, nil)
		return
	}
	reply, err := l.store.Do(context.Background(), b.call)
	var n []int64
	if err == nil {
		if n, err = b.read(reply); err != nil {
			err = &leaf.StoreError{Op: b.call.Op, Name: b.policy.cfg.Name, Err: err}
		}
	}
	if err != nil {
		l.crash(b, err)
		return
	}
	l.land(b, n)
}

// goesOn tells the answers, and lets a new goroutine fly on, which it starts before the last of them: so it stands in the
// scheduler's line behind all who were answered, and those of them who ask again at once ride along. One that yielded instead
// would be taken up by the first idle processor, and leave with half of them. False = the store is closed, nobody else flies.
func (l *Limiter) goesOn(answered []*request) bool {
	last := len(answered) - 1
	if last < 0 {
		return false
	}
	tell(answered[:last])
	on := l.store.Go(l.fly)
	tell(answered[last:])
	return on
}

// tell wakes who was answered. Not under mu, which the first thing is that they want when they ask again.
func tell(answered []*request) {
	for _, r := range answered {
		close(r.done)
	}
}

// load makes the next batch; without one the flight is over.
func (l *Limiter) load() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clean()
	l.serve()
	if l.closed { // the call that Close found under way may have taken tokens ahead
		l.loose, l.stash = l.loose+l.stash, 0
	}
	if !l.poke || len(l.line) == 0 && len(l.settlers) == 0 && l.loose == 0 {
		l.poke = false
		l.flying = false
		if !l.closed {
			l.arm()
		}
		return nil
	}
	l.poke = false
	b := &batch{policy: l.policy, asked: l.clock.Now(), began: time.Now(), settlers: l.settlers, refund: l.loose}
	l.settlers, l.loose = nil, 0
	for _, s := range b.settlers {
		b.refund += s.n
	}
	for _, r := range l.line {
		most := int64(1) << 52 // who waits already stays in front
		if !r.queued {
			most = b.policy.grains(l.patience(r, &b.policy))
		}
		last := len(b.runs) - 1
		if last < 0 || b.runs[last].n != r.n || b.runs[last].most != most {
			if len(b.runs) == maxRuns {
				break
			}
			b.runs = append(b.runs, run{n: r.n, most: most})
			last++
		}
		b.runs[last].reqs = append(b.runs[last].reqs, r)
		b.count++
	}
	if b.count > 0 { // what is in stock, but was not enough, goes back first
		b.refund, b.stash, l.stash = b.refund+l.stash, l.stash, 0
	}
	if b.count > 0 || b.refund > 0 || l.unsettled() {
		l.address(b)
	}
	return b
}

// takeAnswered is who was decided since it was last asked; whoever asks tells them.
func (l *Limiter) takeAnswered() []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	answered := l.answered
	l.answered = nil
	return answered
}

// clean takes out who has left, and who wants more than there can be since an Update.
func (l *Limiter) clean() {
	kept := l.line[:0]
	for _, r := range l.line {
		if r.fate == inLine && r.n > int64(l.policy.cfg.Burst) {
			l.resolve(r, refused, usageError(l.policy, r.n))
		}
		if r.fate == inLine {
			kept = append(kept, r)
		}
	}
	clear(l.line[len(kept):])
	l.line = kept
}

// serve gives out what is in stock, in the order of the line: tokens that came ahead with the last call, to who arrived since.
func (l *Limiter) serve() {
	served := 0
	for _, r := range l.line {
		if l.stash < r.n {
			break
		}
		l.stash -= r.n
		l.resolve(r, granted, nil)
		served++
	}
	l.line = slices.Delete(l.line, 0, served)
}

// address writes the call. Under mu.
func (l *Limiter) address(b *batch) {
	c := redisscript.Call{Op: leaf.OpRecord}
	ahead := int64(0)
	if b.count > 0 {
		c.Op, ahead = leaf.OpAdmit, int64(l.opts.Prefetch)
	}
	if l.closed {
		ahead = 0
	}
	if b.policy.quota {
		l.seq++
		b.seq = l.seq
		c.Script, c.Resend = spend, true
		c.Args = []any{b.policy.full, l.id, b.seq, l.acked, b.refund, ahead}
	} else {
		step := suspect{tat: -1}
		if l.suspects(b) {
			step = l.step
		}
		c.Script = take
		c.Args = append(l.bucketArgs(b.policy), l.known.now, step.tat, step.since, l.opts.idle(), b.refund, ahead)
		c.Late = func(reply redisscript.Reply) { l.late(b, reply) }
	}
	for _, r := range b.runs {
		c.Args = append(c.Args, r.n, len(r.reqs), r.most)
	}
	b.call = c
}

// suspects says that the bucket may be cut to an empty one, as after a step of the clock: of one that may rather be somebody's larger
// bucket, once an hour. Under mu.
func (l *Limiter) suspects(b *batch) bool {
	return l.step.tat > 0 && l.step.grain == b.policy.grain && (l.healed == 0 || clockDistance(l.healed, b.asked) > time.Hour)
}

// bucketArgs is ARGV[2] to ARGV[6].
func (l *Limiter) bucketArgs(p policy) []any {
	return []any{p.interval, p.full, p.grain, l.base.units(l.base.interval), l.base.units(l.base.full)}
}

// read checks a reply: head numbers, and how many of each run were admitted.
func (b *batch) read(reply redisscript.Reply) ([]int64, error) {
	n, err := reply.Ints(head + len(b.runs))
	if err != nil {
		return nil, err
	}
	for j, r := range b.runs {
		if k := n[head+j]; k < 0 || k > int64(len(r.reqs)) {
			return nil, errors.New("the script admitted more than were asked for")
		}
	}
	return n, nil
}

// land draws the consequences of a reply.
func (l *Limiter) land(b *batch, n []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range b.settlers {
		close(s.done)
	}
	if n == nil {
		return
	}
	l.known = known{level: level{now: n[0], lag: n[1]}, at: l.clock.Now(), ok: true}
	l.acked = max(l.acked, b.seq)
	l.healthy = true
	if n[2] == 1 {
		l.healed = max(1, b.asked)
	}
	if l.step = l.step.after(l.known.level, &b.policy); l.suspects(b) && !l.step.used {
		l.known.level = l.step.level(l.known.level, &b.policy)
		n[4] = b.blocked(l.known.lag) // the script has looked at what may be void before long
	}
	l.stash += n[3]
	l.seat(b, n[4], n[head:])
}

// blocked is the first run that will wait, where the script has admitted nobody, by its own arithmetic; 0 = none.
func (b *batch) blocked(lag int64) int64 {
	for j, r := range b.runs {
		if r.n*b.policy.interval+lag-b.policy.full <= r.most {
			return int64(j + 1)
		}
	}
	return 0
}

// seat answers who flew, in their order. In the run that blocked stands the first who waits: from there on nobody was admitted,
// so that this side may decide alone who else has the patience.
func (l *Limiter) seat(b *batch, blocked int64, admitted []int64) {
	ahead := int64(0)
	for j, run := range b.runs {
		at := int64(j + 1)
		for i, r := range run.reqs {
			switch {
			case int64(i) < admitted[j] && r.fate == gone:
				l.loose, l.poke = l.loose+r.n, true
			case int64(i) < admitted[j]:
				l.resolve(r, granted, nil)
			case r.fate == gone:
			case blocked == 0 || at < blocked:
				l.resolve(r, refused, b.policy.limited(l.known.level, r.n))
			case at > blocked && ahead == 0:
				l.poke = true // the one that was in its way waits no more; the script has not looked at it
			default:
				ahead = l.waits(b, r, ahead)
			}
		}
	}
	if len(l.line) > b.count {
		l.poke = true
	}
	if l.queued > 0 {
		l.due = l.dueFirst(b)
	}
}

// waits lets r stand in the line behind ahead tokens, or refuses it, and says how many stand ahead then.
func (l *Limiter) waits(b *batch, r *request, ahead int64) int64 {
	wait, most := b.policy.wait(l.known.level, ahead+r.n), l.patience(r, &b.policy)
	switch {
	case r.queued:
		most = clockDistance(b.asked, r.last) + l.opts.Timeout
	case ahead == 0:
		most = wait // the script has found that it fits
	}
	if most == 0 || wait > most {
		l.resolve(r, refused, b.policy.limited(l.known.level, ahead+r.n))
		return ahead
	}
	l.enqueue(r, b.asked, &b.policy)
	return ahead + r.n
}

// dueFirst is the clock's reading at which the first who waits may have its tokens.
func (l *Limiter) dueFirst(b *batch) int64 {
	for _, r := range l.line {
		if r.fate == inLine && r.queued {
			return l.known.at + int64(b.policy.wait(l.known.level, r.n))
		}
	}
	return l.known.at + int64(again)
}

// late is a reply that came when everybody had left, with whatever the policy gave them: what it granted goes back.
func (l *Limiter) late(b *batch, reply redisscript.Reply) {
	n, err := b.read(reply)
	if err != nil {
		return
	}
	back := n[3]
	for j, r := range b.runs {
		back += n[head+j] * r.n
	}
	l.mu.Lock()
	l.loose += back
	l.poke = l.poke || back > 0
	start := l.starts()
	l.mu.Unlock()
	l.launch(start)
}
