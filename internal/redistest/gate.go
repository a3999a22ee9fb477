package redistest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Gate holds a client's answers back while it is shut, after the server has run the commands, and counts them. Safe for
// concurrent use.
type Gate struct {
	commands atomic.Int64

	mu   sync.Mutex
	hold chan struct{} // closed when the gate opens; nil = open
	held chan struct{} // closed at the first answer that is held; nil = nobody waits for that
}

// NewGate puts an open gate before client.
func NewGate(client *redis.Client) *Gate {
	g := &Gate{}
	client.AddHook(g)
	return g
}

// Commands is how many have been sent so far.
func (g *Gate) Commands() int64 { return g.commands.Load() }

// Shut holds every answer from now on, until open is called, once; held is closed when the first one is held.
func (g *Gate) Shut() (open func(), held <-chan struct{}) {
	hold, first := make(chan struct{}), make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold, g.held = hold, first
	return func() {
		g.mu.Lock()
		g.hold = nil
		g.mu.Unlock()
		close(hold)
	}, first
}

// ProcessHook is for the client.
func (g *Gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.commands.Add(1)
		err := next(ctx, cmd)
		g.mu.Lock()
		hold, first := g.hold, g.held
		g.held = nil
		g.mu.Unlock()
		if first != nil {
			close(first)
		}
		if hold != nil {
			<-hold
		}
		return err
	}
}

// DialHook is for the client, and leaves dialling alone.
func (g *Gate) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook is for the client, and leaves pipelines alone: no guard sends one.
func (g *Gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
