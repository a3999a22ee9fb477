package redisscript

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
)

var errClosed = errors.New("the guard is closed")

// Store is one guard's way to its key. It is safe for concurrent use. Make one with [Open] and end it with Close.
type Store struct {
	client  redis.UniversalClient
	key     string
	name    string
	opts    Options // with its defaults
	flights flights
	health  health

	base context.Context // of what runs in the background; done after Close
	stop context.CancelFunc

	mu      sync.Mutex
	running int // goroutines that were started and have not ended
	closed  bool
	idle    chan struct{} // closed when closed and nothing runs
}

// Open makes the store of the guard called name. kind ("limit", "bulkhead", …) keeps the keys of different guards apart;
// pkg is the guard's package, for errors. It starts nothing, sends nothing and writes nothing.
func Open(client redis.UniversalClient, pkg, kind, name string, opts Options) (*Store, error) {
	opts, err := opts.Check(pkg, client)
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, key: Key(opts.Prefix, kind, name), name: name, opts: opts, idle: make(chan struct{})}
	s.base, s.stop = context.WithCancel(context.Background())
	s.flights.init()
	if opts.Aside && opts.OnStore != nil {
		opts.OnStore = (&aside{store: s, hook: opts.OnStore}).tell
	}
	s.health.init(name, opts)
	return s, nil
}

// Key is the instance's key.
func (s *Store) Key() string { return s.key }

// Options is what is in force, defaults filled in.
func (s *Store) Options() Options { return s.opts }

// Client is the user's.
func (s *Store) Client() redis.UniversalClient { return s.client }

// Call is one run of a script.
type Call struct {
	Op     string  // leaf.OpAdmit or leaf.OpRecord
	Script *Script // run on the store's key
	Args   []any   // ARGV[2] and on: strings and integers
	// Resend: a second run changes nothing that the first one has not, since a token in Args says that they are the same.
	// Then a call whose fate is unknown is sent once more, if there is time.
	Resend bool
	// Late is told the reply of a call that succeeded after Do had returned an error; nil = nobody. It runs in the
	// background, and may call Do, to take back what nobody waits for any more.
	Late func(Reply)
}

// Do runs c, and returns within min(Timeout, the time that ctx leaves), give or take the scheduler.
//
// Its error is a *leaf.StoreError with c.Op, or, where ctx was done or ended first, ctx's own ([ended.Err]): then nobody knows
// whether the script ran, and Late will tell. For leaf.OpRecord ctx's end does not count: what has happened is recorded under
// the store's own timeout.
//
// While the store's breaker is open it costs microseconds. Do itself never panics.
func (s *Store) Do(ctx context.Context, c Call) (Reply, error) {
	if c.Op == leaf.OpRecord {
		ctx = context.WithoutCancel(ctx)
	}
	if err := ended.Err(ctx); err != nil {
		return Reply{}, err
	}
	if err := s.health.refuses(); err != nil {
		return Reply{}, s.storeError(c.Op, err)
	}
	reply, err := s.fly(ctx, c)
	if err == nil {
		s.health.succeeded(ctx, c.Op)
		return reply, nil
	}
	if err == errClosed {
		return Reply{}, s.storeError(c.Op, err)
	}
	if left, ok := err.(*leftError); ok && left.ctx != nil {
		return Reply{}, left.ctx // an impatient caller says nothing of the store
	}
	s.failed(ctx, c.Op, err)
	return Reply{}, s.storeError(c.Op, err)
}

// failed takes note of a failure, and does what helps.
func (s *Store) failed(ctx context.Context, op string, err error) {
	s.reload(err)
	if opened := s.health.failed(ctx, op, err); opened != nil && !s.Go(func(ctx context.Context) { s.probe(ctx, opened) }) {
		s.health.abandon()
	}
}

func (s *Store) storeError(op string, err error) error {
	return &leaf.StoreError{Op: op, Name: s.name, Err: err, NotExecuted: classify(err).notExecuted}
}

// now is ARGV[1]: 0 where the server's own clock counts.
func (s *Store) now() string {
	if s.opts.Now == nil {
		return "0"
	}
	const exact = 1<<53 - 1 // what a Lua number holds
	return strconv.FormatInt(min(max(1, s.opts.Now().UnixMicro()), exact), 10)
}

// Down says whether the last call failed.
func (s *Store) Down() bool { return s.health.isDown() }

// Overage tells OnStore that a permit came back too late.
func (s *Store) Overage(ctx context.Context, op string, err error) {
	s.health.tell(ctx, leaf.StoreEvent{Name: s.name, Kind: "overage", Op: op, Policy: s.opts.OnOutage, Err: err})
}

// Repanic goes on with the first panic of an OnStore hook since the last Repanic. Do and Late hold it back, because whoever
// calls them may hold a permit or a place in a queue. A guard calls it first thing in Acquire, where nothing is held.
func (s *Store) Repanic() { s.health.repanic() }

// Go runs f in the background; ctx is done when Close begins, and Close waits for f. False = the store is closed.
func (s *Store) Go(f func(ctx context.Context)) bool {
	if !s.begin() {
		return false
	}
	go func() {
		defer s.end()
		f(s.base)
	}()
	return true
}

func (s *Store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running++
	return true
}

func (s *Store) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.settle()
}

// settle is called under mu.
func (s *Store) settle() {
	if s.closed && s.running == 0 {
		close(s.idle)
	}
}

// Close ends every goroutine of the store and leaves the client open. From its first call on Do refuses; calls under way end
// within their budget. What was left behind ends with the client's own ReadTimeout at the latest: Close waits for it as long
// as ctx allows, and says how many were left. It may be called again, to wait again.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.stop()
		s.settle()
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
		return nil
	default:
	}
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running == 0 {
			return nil
		}
		return fmt.Errorf("redis store of %q: %d calls are still under way: %w", s.name, s.running, ended.Err(ctx))
	}
}
