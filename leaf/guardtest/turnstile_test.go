package guardtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
)

// turnstile is the reference guard: it can do everything that a guard can, and, told so, each thing wrong.
type turnstile struct {
	max   int
	waits bool
	spent bool  // only NotRun gives back
	fault fault // "" = none

	mu     sync.Mutex
	in     int
	queue  []chan struct{}
	queued int
	closed time.Duration // hinted
	token  uint64
	asked  atomic.Int64
}

type fault string

func (t *turnstile) wrong(f fault) bool { return t.fault == f }

type refused struct{ wait time.Duration }

func (refused) Error() string                       { return "turnstile: full" }
func (refused) Rejected() bool                      { return true }
func (r refused) RetryAfter() (time.Duration, bool) { return r.wait, r.wait != 0 }

type silent struct{}

func (silent) Error() string  { return "turnstile: full" }
func (silent) Rejected() bool { return true }

type refusedCtx struct{ error }

func (refusedCtx) Rejected() bool  { return true }
func (e refusedCtx) Unwrap() error { return e.error }

func (t *turnstile) Acquire(ctx context.Context) (leaf.Permit, error) { return t.acquire(ctx, t.waits) }

func (t *turnstile) TryAcquire(ctx context.Context) (leaf.Permit, error) {
	if t.wrong("TryAcquire panics") {
		panic("oops")
	}
	return t.acquire(ctx, t.waits && t.wrong("TryAcquire waits"))
}

func (t *turnstile) acquire(ctx context.Context, wait bool) (leaf.Permit, error) {
	if err := t.begin(ctx); err != nil {
		if t.wrong("done ctx comes with a permit") {
			return leaf.NewPermit(t, 0), err
		}
		return leaf.Permit{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wrong("nobody gets in") {
		return leaf.Permit{}, refused{}
	}
	if t.closed != 0 {
		return leaf.Permit{}, refused{wait: t.closed}
	}
	limit := t.max
	if t.wrong("one too many") {
		limit++
	}
	if t.wrong("one too few") {
		limit--
	}
	if t.wrong("full under the lock only") && t.in < limit {
		t.mu.Unlock()
		for range 10 {
			runtime.Gosched() // looked, and acts later
		}
		t.mu.Lock()
		t.in++
		return t.permit(), nil
	}
	if t.in < limit && (len(t.queue) == 0 || !wait) {
		t.in++
		return t.permit(), nil
	}
	if ctx.Err() != nil && t.wrong("done ctx gets in when full") {
		return t.permit(), nil
	}
	if !wait {
		return t.refuse()
	}
	return t.wait(ctx)
}

// begin is the check of ctx.
func (t *turnstile) begin(ctx context.Context) error {
	err := ended.Err(ctx)
	if err == nil {
		return nil
	}
	switch t.fault {
	case "done ctx gets in", "done ctx gets in when full":
		return nil
	case "done ctx loses the cause":
		return ctx.Err()
	case "done ctx is a refusal":
		return refusedCtx{err}
	case "done ctx takes a slot":
		t.mu.Lock()
		t.in++
		t.mu.Unlock()
	}
	return err
}

func (t *turnstile) permit() leaf.Permit {
	t.token++
	return leaf.NewPermit(t, t.token)
}

func (t *turnstile) refuse() (leaf.Permit, error) {
	switch t.fault {
	case "refusal comes with a permit":
		return t.permit(), refused{}
	case "refusal is a plain error":
		return leaf.Permit{}, errors.New("full")
	case "refusal knows no RetryAfter":
		return leaf.Permit{}, silent{}
	case "refusal goes back in time":
		return leaf.Permit{}, refused{wait: -time.Second}
	case "refusal takes a slot":
		t.in++
	case "refusal gives a slot":
		t.in--
	}
	return leaf.Permit{}, refused{}
}

// wait is under the lock, and gives it away meanwhile.
func (t *turnstile) wait(ctx context.Context) (leaf.Permit, error) {
	turn := make(chan struct{}, 1)
	t.queue = append(t.queue, turn)
	t.queued++
	done := ctx.Done()
	t.mu.Unlock()
	if t.wrong("wait ignores ctx") {
		done = nil
	}
	select {
	case <-turn:
		t.mu.Lock()
		t.queued--
		return t.permit(), nil
	case <-done:
	}
	for range 3 {
		runtime.Gosched() // the moment in which a grant may come
	}
	t.mu.Lock()
	if !t.wrong("queued is not counted down") {
		t.queued--
	}
	if i := slices.Index(t.queue, turn); i >= 0 && !t.wrong("leaves its place in the queue") {
		t.queue = slices.Delete(t.queue, i, i+1)
	} else if i < 0 && !t.wrong("grant is lost in a race") {
		t.free() // granted while it left
	}
	switch t.fault {
	case "wait loses the cause":
		return leaf.Permit{}, ctx.Err()
	case "wait ends with a refusal":
		return leaf.Permit{}, refused{}
	case "wait gives a slot that it never had":
		t.in--
	}
	return leaf.Permit{}, ended.Err(ctx)
}

// free hands a slot to the next in the queue, or back.
func (t *turnstile) free() {
	if t.wrong("nobody is woken") || len(t.queue) == 0 {
		t.in--
		return
	}
	t.queue[0] <- struct{}{}
	t.queue = t.queue[1:]
}

func (t *turnstile) Settle(ctx context.Context, _ uint64, o leaf.Outcome) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case o.Verdict == leaf.NotRun && t.wrong("NotRun keeps the slot"),
		o.Verdict == leaf.Panicked && t.wrong("a panic keeps the slot"),
		o.Verdict == leaf.CallerCancelled && t.wrong("a cancelled call keeps the slot"),
		ctx.Err() != nil && t.wrong("a done ctx keeps the slot"):
		return nil
	case t.wrong("settling gives two slots"):
		t.in--
	case t.wrong("settling hangs with a done ctx") && ctx.Err() != nil:
		t.mu.Unlock()
		<-time.After(300 * time.Millisecond)
		t.mu.Lock()
	case o.Verdict == leaf.Ignored && t.wrong("settling Ignored panics"):
		panic(fmt.Sprint("what is ", o.Verdict))
	}
	if !t.spent || o.Verdict == leaf.NotRun {
		t.free()
	}
	return nil
}

func (t *turnstile) Peek(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	full := t.closed > 0 || t.in >= t.max && !t.waits
	switch t.fault {
	case "Peek takes a slot":
		t.in++
	case "Peek gives a slot":
		t.in--
	case "Peek never refuses":
		full = false
	case "Peek always refuses":
		full = true
	}
	if full {
		return refused{}
	}
	return nil
}

func (t *turnstile) Hint(_ context.Context, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.wrong("Hint of nothing closes"):
		t.closed = max(t.closed, 1)
	case t.wrong("Hint overflows") && wait > math.MaxInt64/2:
		t.closed = wait + wait // below 0
		return
	}
	t.closed = max(t.closed, wait)
}

func (t *turnstile) Lease() time.Duration {
	if t.wrong("Lease drifts") {
		return time.Duration(t.asked.Add(1))
	}
	return time.Minute
}

func (t *turnstile) Occupies() bool  { return !t.wrong("Occupies wavers") || t.asked.Add(1)%2 == 0 }
func (t *turnstile) WantsTook() bool { return !t.wrong("WantsTook wavers") || t.asked.Add(1)%2 == 0 }

func (t *turnstile) Inspect() leaf.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := leaf.Snapshot{Kind: "turnstile", Name: "gate", State: "open", Gauges: []leaf.Gauge{
		{Name: "in_use", Value: float64(t.in), Limit: float64(t.max)},
		{Name: "queued", Value: float64(t.queued)},
	}}
	switch t.fault {
	case "Inspect takes a slot":
		t.in++
	case "Inspect has no kind":
		s.Kind = ""
	case "Inspect changes the name":
		s.Name = fmt.Sprint(t.in)
	case "Inspect changes the order":
		if t.in > 0 {
			slices.Reverse(s.Gauges)
		}
	case "Inspect divides by zero":
		s.Gauges[1].Limit = math.NaN()
	case "Inspect shouts":
		s.Gauges[0].Name = "InUse"
	case "Inspect says it twice":
		s.Gauges[1].Name = "in_use"
	case "Inspect has a negative limit":
		s.Gauges[1].Limit = -1
	}
	return s
}
