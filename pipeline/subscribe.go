package pipeline

import (
	"context"
	"slices"
	"sync"
)

// subscriber is one Subscribe; its address tells it from another with the same function.
type subscriber struct {
	observe func(ctx context.Context, e Event)
}

// Subscribe adds an observer to a pipeline that is built already, for a console, a log or metrics: it is told every [Event] as
// the Builder's Observe is, after it and after earlier subscribers, and stays through an Update. Calls that have begun keep the
// observers that they began with: a subscriber sees each call from its start to its end or not at all, and may still be told of
// a call's end after cancel. A panic of one goes on to the caller, as the Builder's Observe says, after the others were told.
// Nothing is paid while nobody subscribes. cancel is idempotent; a nil observe subscribes nobody.
// Safe for concurrent use.
func (p *Pipeline) Subscribe(observe func(ctx context.Context, e Event)) (cancel func()) {
	if observe == nil {
		return func() {}
	}
	s := &subscriber{observe}
	p.change.Lock()
	defer p.change.Unlock()
	p.subscribers = append(slices.Clone(p.subscribers), s)
	p.store(*p.latest())
	return sync.OnceFunc(func() { p.unsubscribe(s) })
}

func (p *Pipeline) unsubscribe(s *subscriber) {
	p.change.Lock()
	defer p.change.Unlock()
	p.subscribers = slices.DeleteFunc(slices.Clone(p.subscribers), func(other *subscriber) bool { return other == s })
	p.store(*p.latest())
}

// store puts pl in force, with everyone who observes it now. change is held.
func (p *Pipeline) store(pl plan) {
	pl.observe = everyone(pl.observer, p.subscribers)
	if pl.plain != nil {
		plain := *pl.plain
		plain.observe = everyone(nil, p.subscribers)
		pl.plain = &plain
	}
	p.plan.Store(&pl)
}

// everyone is what a plan tells: nil, so that nothing is paid, where nobody listens.
func everyone(first func(context.Context, Event), then []*subscriber) func(context.Context, Event) {
	switch {
	case len(then) == 0:
		return first
	case first == nil && len(then) == 1:
		return then[0].observe
	case first != nil:
		then = append([]*subscriber{{first}}, then...)
	}
	return func(ctx context.Context, e Event) { tellAll(then, ctx, e) }
}

// tellAll tells each in turn, also where one before it panics or calls runtime.Goexit: nobody sees half a call.
func tellAll(all []*subscriber, ctx context.Context, e Event) {
	if len(all) > 1 {
		defer tellAll(all[1:], ctx, e)
	}
	all[0].observe(ctx, e)
}
