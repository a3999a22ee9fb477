package pipeline

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Pipeline is a handle on an immutable plan, safe for concurrent use. The zero Pipeline has no name and no layers: a plain call.
type Pipeline struct {
	plan        atomic.Pointer[plan]
	change      sync.Mutex // of the plan
	subscribers []*subscriber
}

// current is the plan in force; the zero Pipeline is a plain call.
func (p *Pipeline) current() *plan {
	pl := p.plan.Load()
	if pl == nil {
		return &bare
	}
	if pl.plain != nil {
		return p.switched(pl)
	}
	return pl
}

// latest is the plan in force while the switch, if there is one, is on.
func (p *Pipeline) latest() *plan {
	if pl := p.plan.Load(); pl != nil {
		return pl
	}
	return &bare
}

// Name is the one given to For.
func (p *Pipeline) Name() string { return p.current().name }

// Update swaps the plan whole: calls that have begun keep theirs. The name may not change; on an error of b nothing changes.
func (p *Pipeline) Update(b Builder) error {
	next, err := b.plan()
	if err != nil {
		return err
	}
	p.change.Lock()
	defer p.change.Unlock()
	was := p.latest()
	if now := was.name; next.name != now {
		return fmt.Errorf("pipeline %q: name is %q: want %q, a pipeline keeps its name", now, next.name, now)
	}
	if was.plain != nil && next.plain == nil {
		next.wire(was.toggle)
	}
	p.store(*next)
	return nil
}
