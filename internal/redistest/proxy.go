package redistest

import (
	"bufio"
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Action is what a [Proxy] does with one reply, after the server has executed the command.
type Action struct {
	Drop  bool          // close the connection instead of passing it on
	Delay time.Duration // pass it on later, and all that follow on this connection
}

// Proxy stands between clients and a plain server.
type Proxy struct {
	Addr string // where clients connect

	listener net.Listener
	target   string
	rule     atomic.Pointer[func(command []string) Action]
	dropped  atomic.Int64
	done     sync.WaitGroup
	closing  chan struct{}

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// NewProxy listens on a loopback port of its own, passes everything on to target, and ends with t.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), listener: l, target: target, conns: map[net.Conn]bool{}, closing: make(chan struct{})}
	p.OnReply(nil)
	p.done.Go(p.accept)
	t.Cleanup(func() {
		close(p.closing)
		_ = l.Close() // it is only listening
		p.Cut()
		p.done.Wait()
	})
	return p
}

// OnReply sets the rule for the replies from now on; it is given each reply's command, as words. nil = pass on.
func (p *Proxy) OnReply(rule func(command []string) Action) {
	if rule == nil {
		rule = func([]string) Action { return Action{} }
	}
	p.rule.Store(&rule)
}

// DropEvery drops the reply of every n-th command that is one of names ("evalsha"); 1 = of all.
func (p *Proxy) DropEvery(n int64, names ...string) {
	var seen atomic.Int64
	p.OnReply(func(command []string) Action {
		return Action{Drop: named(command, names) && seen.Add(1)%n == 0}
	})
}

// DropShare drops the replies of a random share of the commands that are one of names.
func (p *Proxy) DropShare(share float64, seed uint64, names ...string) {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	p.OnReply(func(command []string) Action {
		mu.Lock()
		defer mu.Unlock()
		return Action{Drop: named(command, names) && rnd.Float64() < share}
	})
}

func named(command, names []string) bool {
	return len(command) > 0 && slices.Contains(names, strings.ToLower(command[0]))
}

// Dropped is how many replies were dropped.
func (p *Proxy) Dropped() int { return int(p.dropped.Load()) }

// Cut closes every connection, and each new one at once, until Mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close() // that is what it is for
	}
}

// Mend lets new connections through again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.serve(client) })
	}
}

// add says whether the connection may live.
func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.cut
}

func (p *Proxy) remove(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
		_ = c.Close() // both ends go together
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close() // as the server would have it
		return
	}
	defer p.remove(client, server)
	if !p.add(client, server) {
		return
	}
	commands := make(chan []string, 1<<12) // under way, in order
	p.done.Go(func() {
		defer p.remove(client, server)
		defer close(commands)
		for r := bufio.NewReader(client); ; {
			f, err := frame(r)
			if err != nil {
				return
			}
			commands <- words(f)
			if _, err := server.Write(f); err != nil {
				return
			}
		}
	})
	p.replies(client, bufio.NewReader(server), commands)
}

func (p *Proxy) replies(client net.Conn, server *bufio.Reader, commands <-chan []string) {
	for {
		f, err := frame(server)
		if err != nil {
			return
		}
		if f[0] != '>' { // a push answers nothing
			command, ok := <-commands
			if !ok {
				return
			}
			action := (*p.rule.Load())(command)
			if action.Drop {
				p.dropped.Add(1)
				return
			}
			if !p.wait(action.Delay) {
				return
			}
		}
		if _, err := client.Write(f); err != nil {
			return
		}
	}
}

func (p *Proxy) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.closing:
		return false
	}
}

// Dial is a client's Dialer: the target is reached through the proxy, every other address directly. So also a client that is
// told addresses, by Sentinels or a Cluster, meets the proxy.
func (p *Proxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == p.target {
		addr = p.Addr
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}
