package redisbreaker

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

var (
	read    = redisscript.NewScript(luaCommon + luaRead)
	watch   = redisscript.NewScript(luaCommon + luaWatch)
	control = redisscript.NewScript(luaCommon + luaControl)
	admit   = redisscript.NewScript(luaCommon + luaAdmit)
	settle  = redisscript.NewScript(luaCommon + luaSettle)
	record  = redisscript.NewScript(luaCommon + luaRecord)
)

// args is ARGV[2…11] and what a script needs besides.
func (b *Breaker) args(more ...any) []any {
	ttl := int64(-1)
	if b.opts.IdleTTL > 0 {
		ttl = int64(b.opts.IdleTTL / time.Millisecond)
	}
	return append(append([]any{ttl}, b.view.Load().told()...), more...)
}

// ask runs a script and takes note of what it told. cause is the failure that it reports. The hooks are left to the caller, who
// may hold something: tell runs them.
func (b *Breaker) ask(ctx context.Context, c redisscript.Call, cause error) (answer, error) {
	sent := b.now()
	reply, err := b.store.Do(ctx, c)
	b.weigh()
	defer b.keepWatch()
	if err != nil {
		return answer{}, err
	}
	a, err := parse(reply)
	if err != nil {
		return a, &leaf.StoreError{Op: c.Op, Name: b.policy.Load().Name, Err: err}
	}
	b.learn(&a, sent, cause)
	return a, nil
}

// learn moves the view, unless it knows better.
func (b *Breaker) learn(a *answer, sent int64, cause error) {
	if a.verdict != counted && a.verdict != countedLate {
		cause = nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.view.Load()
	if !v.newer(a) {
		return
	}
	n := v.next(a, sent, cause)
	b.view.Store(n)
	if n.serial != v.serial {
		b.outbox.forget()
	}
	b.observe("")
}

// every is how often a process that knows of an open or half-open circuit asks how it goes on, or one that knows nothing.
const every = time.Second

// keepWatch starts the poll where it is needed and does not run. An idle process whose circuit is closed does not poll.
func (b *Breaker) keepWatch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watching || b.closed || !b.worthWatching() {
		return
	}
	b.watching = b.store.Go(b.poll)
}

func (b *Breaker) worthWatching() bool {
	v := b.view.Load()
	return !v.known || v.state != breaker.Closed
}

// poll ends with the circuit's closing, or with Close. A hook that ends its goroutine ends it too; the next answer begins it anew.
func (b *Breaker) poll(ctx context.Context) {
	done := false
	defer func() {
		if !done {
			b.mu.Lock()
			b.watching = false
			b.mu.Unlock()
		}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !done {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.look(ctx)
		done = b.seenEnough()
	}
}

// seenEnough ends the poll under the lock that keepWatch takes: nobody counts on one that is about to end.
func (b *Breaker) seenEnough() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watching = b.worthWatching()
	return !b.watching
}

// look asks how the fleet's circuit is.
func (b *Breaker) look(ctx context.Context) {
	_, _ = b.ask(ctx, redisscript.Call{Op: leaf.OpAdmit, Script: watch, Args: b.args(), Resend: true}, nil) // the next one is a second away
	b.tell()
}
