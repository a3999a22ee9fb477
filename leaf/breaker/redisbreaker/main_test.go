package redisbreaker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	redistest.RunChild()
	redis.SetLogger(silent{}) // it tells each refused connection
	goleak.VerifyTestMain(m, goleak.Cleanup(redistest.Exit))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// never is a SlowCall that nothing reaches: a breaker needs a rule.
const never = 1<<63 - 1

var (
	bg      = context.Background()
	errDown = errors.New("down")
	success = leaf.Outcome{}
	failure = leaf.Outcome{Err: errDown}
	notRun  = leaf.Outcome{Verdict: leaf.NotRun}
)

// fleet is instances of one name and one virtual time.
type fleet struct {
	t      *testing.T
	client redis.UniversalClient
	cfg    breaker.Config
	opts   Options
	at     atomic.Int64 // µs since 2030
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// newFleet uses the shared server; the timeout is long, since nothing here is about it and the machine may be slow.
func newFleet(t *testing.T, cfg breaker.Config) *fleet {
	t.Helper()
	return newFleetOn(t, redistest.Shared(t), cfg)
}

func newFleetOn(t *testing.T, s *redistest.Server, cfg breaker.Config) *fleet {
	t.Helper()
	o := s.Options()
	o.DialerRetries = 1 // a server that is gone is known to be gone at once
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	f := &fleet{t: t, client: client, cfg: cfg}
	f.opts = Options{Prefix: s.Prefix(t), Timeout: 5 * time.Second}
	f.opts.Now = func() time.Time { return epoch.Add(time.Duration(f.at.Load()) * time.Microsecond) }
	if f.cfg.Name == "" {
		f.cfg.Name = "billing"
	}
	return f
}

// to sets the fleet's clock, in seconds as the cases count them.
func (f *fleet) to(seconds float64) { f.at.Store(int64(seconds*1e6 + 0.5)) }

// real lets the fleet live on the server's own clock.
func (f *fleet) real() *fleet {
	f.opts.Now = nil
	return f
}

func (f *fleet) key() string { return redisscript.Key(f.opts.Prefix, "breaker", f.cfg.Name) }

func (f *fleet) field(name string) string {
	f.t.Helper()
	v, err := f.client.HGet(bg, f.key(), name).Result()
	require.NoError(f.t, err)
	return v
}

// member is one instance and what it told.
type member struct {
	*Breaker
	t    *testing.T
	hook sync.Mutex
	told []breaker.Change
}

func (f *fleet) join(change ...func(*breaker.Config, *Options)) *member {
	f.t.Helper()
	m := &member{t: f.t}
	cfg, opts := f.cfg, f.opts
	if cfg.OnChange == nil {
		cfg.OnChange = func(c breaker.Change) {
			m.hook.Lock()
			defer m.hook.Unlock()
			m.told = append(m.told, c)
		}
	}
	for _, c := range change {
		c(&cfg, &opts)
	}
	b, err := New(f.client, cfg, opts)
	require.NoError(f.t, err)
	m.Breaker = b
	f.t.Cleanup(func() { closeIt(f.t, b) })
	return m
}

func closeIt(t testing.TB, b *Breaker) {
	ctx, cancel := context.WithTimeout(bg, redistest.Patience)
	defer cancel()
	require.NoError(t, b.Close(ctx))
}

func (m *member) changes() []breaker.Change {
	m.hook.Lock()
	defer m.hook.Unlock()
	return append([]breaker.Change(nil), m.told...)
}

// route is the states that were told.
func (m *member) route() []breaker.State {
	m.t.Helper()
	states := []breaker.State{breaker.Closed}
	for i, c := range m.changes() {
		require.EqualValues(m.t, i+1, c.Seq, "numbered from 1 without gaps")
		require.Equal(m.t, states[len(states)-1], c.From, "every From is the To before")
		states = append(states, c.To)
	}
	return states
}

// begin is an admission that must succeed.
func (m *member) begin() func(leaf.Outcome) {
	m.t.Helper()
	p, err := m.Acquire(bg)
	require.NoError(m.t, err)
	return func(o leaf.Outcome) {
		m.t.Helper()
		require.NoError(m.t, p.Settle(bg, o))
	}
}

// run is n admitted calls, all of which the store has heard of at the end.
func (m *member) run(n int, o leaf.Outcome) {
	m.t.Helper()
	for range n {
		m.begin()(o)
	}
	m.sync()
}

// sync sends what waits.
func (m *member) sync() {
	m.t.Helper()
	for m.flushInTurn(true) {
	}
	m.tell()
	m.Breaker.mu.Lock()
	defer m.Breaker.mu.Unlock()
	require.Nil(m.t, m.outbox.sealed)
	require.Empty(m.t, m.outbox.open.runs)
}

// poll is what happens every second while the circuit is not closed.
func (m *member) poll() { m.look(bg) }

func (m *member) refused() *breaker.OpenError {
	m.t.Helper()
	p, err := m.Acquire(bg)
	if err == nil {
		_ = p.Settle(bg, notRun)
	}
	var refusal *breaker.OpenError
	require.ErrorAs(m.t, err, &refusal)
	return refusal
}

func (m *member) is(s breaker.State) {
	m.t.Helper()
	require.Equal(m.t, s, m.State(), "%+v", m.Snapshot())
}

func (m *member) counts(calls, failures int) {
	m.t.Helper()
	s := m.Snapshot()
	require.Equal(m.t, [2]int{calls, failures}, [2]int{s.Calls, s.Failures}, "calls, failures")
}

func storeCall(op string, s *redisscript.Script, args []any) redisscript.Call {
	return redisscript.Call{Op: op, Script: s, Args: args}
}
