package guardtest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
)

const stressors = 8

// inside counts who is admitted and not yet settled, and the most there ever were.
type inside struct{ now, most atomic.Int64 }

func (i *inside) enter() {
	now := i.now.Add(1)
	for most := i.most.Load(); now > most && !i.most.CompareAndSwap(most, now); most = i.most.Load() {
	}
}

func (i *inside) leave() { i.now.Add(-1) }

// stress asks, settles, peeks, hints and inspects from many goroutines; most must stay within the capacity, and
// everything must be back at the end.
func (s *suite) stress() {
	g := s.cfg.New(s)
	s.storm(g, func(ask ask, round int, in *inside) error {
		v := leaf.NotRun
		if s.cfg.Slots {
			v = verdicts[round%len(verdicts)]
		}
		var p leaf.Permit
		var err error
		if p, err = ask(context.Background()); err != nil {
			return err
		}
		in.enter()
		around(g)
		in.leave() // before Settle, where the place is free for the next
		_ = p.Settle(context.Background(), outcome(v))
		return nil
	})
}

// stressWaiting does the same with callers that wait and callers that give up, by turns.
func (s *suite) stressWaiting() {
	if s.cfg.Waiting == nil {
		return
	}
	g := s.cfg.Waiting(s)
	var got atomic.Bool
	var vain atomic.Int64 // gave up before anybody had got in: a guard may have to ask a store, which takes its time
	s.storm(g, func(_ ask, round int, in *inside) error {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		if round%2 == 0 || !s.cfg.Slots {
			// Without slots a wait may outlast everybody: somebody always gives up.
			timer := time.AfterFunc(time.Duration(round%5)*100*time.Microsecond*time.Duration(1+min(vain.Load(), 100)), func() { cancel(errCause) })
			defer timer.Stop()
		}
		var p leaf.Permit
		var err error
		if p, err = g.Acquire(ctx); err != nil {
			if !got.Load() {
				vain.Add(1)
			}
			return err
		}
		got.Store(true)
		in.enter()
		around(g)
		in.leave()
		_ = p.Settle(ctx, outcome(leaf.NotRun))
		return nil
	})
}

// storm runs visit from many goroutines. An error has to be a refusal or a context's.
func (s *suite) storm(g leaf.Guard, visit func(ask ask, round int, in *inside) error) {
	s.Helper()
	var (
		in       inside
		admitted atomic.Int64
		strange  atomic.Pointer[error]
		running  sync.WaitGroup
		all      = ways(g)
		done     = make(chan struct{})
	)
	for n := range stressors {
		running.Go(func() {
			for round := range s.cfg.Rounds {
				err := visit(all[(n+round)%len(all)].ask, n+round, &in)
				switch {
				case err == nil:
					admitted.Add(1)
				case !ordinary(err):
					strange.Store(&err)
				}
			}
		})
	}
	go func() { running.Wait(); close(done) }()
	if !within(done, s.cfg.Patience+time.Duration(s.cfg.Rounds*stressors)*(time.Millisecond+s.cfg.Lag)) {
		s.Fatalf("concurrent calls did not come to an end: somebody waits for ever")
	}
	if err := strange.Load(); err != nil {
		s.Fatalf("concurrent calls: got %q (%T), want admission, a refusal, or ctx's error", *err, *err)
	}
	if admitted.Load() == 0 {
		s.Fatalf("concurrent calls: none of %d was admitted", stressors*s.cfg.Rounds)
	}
	if limit := int64(s.cfg.Capacity); limit > 0 && in.most.Load() > limit {
		s.Fatalf("concurrent calls: %d were inside at once, capacity is %d", in.most.Load(), limit)
	}
	s.intact(g, "concurrent calls")
	s.idle(g)
}

func ordinary(err error) bool {
	return refusal.Is(err) || errors.Is(err, context.Canceled)
}

// around reads everything that may be read at any time, and lets the others in between.
func around(g leaf.Guard) {
	runtime.Gosched()
	if p, ok := g.(leaf.Peeker); ok {
		_ = p.Peek(context.Background())
	}
	if h, ok := g.(leaf.Hinter); ok {
		h.Hint(context.Background(), 0)
	}
	if l, ok := g.(leaf.Leaser); ok {
		l.Lease()
	}
	if o, ok := g.(leaf.Occupier); ok {
		o.Occupies()
	}
	if t, ok := g.(leaf.Timed); ok {
		t.WantsTook()
	}
	inspect(g)
}
