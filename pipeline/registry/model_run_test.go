package registry

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

var (
	ops  = flag.Int("ops", 10_000, "operations of the random model test")
	seed = flag.Uint64("seed", 0, "of the random model test; 0 = another one each time")
)

const tenth = 100 * time.Millisecond

// modelRun is a registry beside its model. What was once got is held for ever, as a program would.
type modelRun struct {
	t     *testing.T
	rnd   *rand.Rand
	clk   *clockwork.FakeClock
	reg   *Registry
	ref   *refRegistry
	where string

	held    map[string][]*leaf.Permit // by bulkhead
	waiting map[int]*waiter
	ids     int

	retries  map[string]*retry.Retry
	breakers map[string]breaker.Circuit
	limits   map[string]*ratelimit.Limiter
	slots    map[string]*bulkhead.Bulkhead
	pools    map[string]*budget.Tokens
	cools    map[string]Cooling
	pipes    map[string]*pipeline.Pipeline

	next  *refDoc // which is being put in force
	looks int     // at steps of that
	told  map[string]int
}

type waiter struct {
	cancel context.CancelFunc
	got    chan *leaf.Permit // closed without one where it was cancelled
}

// Whatever is loaded and reloaded, valid or not, between whatever calls: balances, open times, permits and queues are those of
// the model, an invalid document changes nothing, and a name is one instance for ever.
func TestReloadAgainstTheModel(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", *seed)
	m := &modelRun{
		t: t, rnd: rand.New(rand.NewPCG(*seed, 1)), clk: clockwork.NewFakeClock(), ref: newRef(), held: map[string][]*leaf.Permit{}, waiting: map[int]*waiter{},
		retries: map[string]*retry.Retry{}, breakers: map[string]breaker.Circuit{}, limits: map[string]*ratelimit.Limiter{}, slots: map[string]*bulkhead.Bulkhead{},
		pools: map[string]*budget.Tokens{}, cools: map[string]Cooling{}, pipes: map[string]*pipeline.Pipeline{}, told: map[string]int{},
	}
	m.reg = loaded(t, "", WithClock(m.clk))
	m.spy()
	m.ref.doc.enabled = true
	m.where = "the first document"
	m.reload()
	for i := range *ops {
		m.where = fmt.Sprintf("seed %d, operation %d", *seed, i)
		m.step()
	}
	for id, w := range m.waiting {
		w.cancel()
		delete(m.waiting, id)
		<-w.got
	}
}

func (m *modelRun) step() {
	name := []string{"a", "b"}[m.rnd.IntN(2)]
	switch m.rnd.IntN(12) {
	case 0:
		m.reload()
	case 1:
		m.invalid()
	case 2, 3:
		steps := m.rnd.IntN(12)
		m.clk.Advance(time.Duration(steps) * tenth)
		m.ref.pass(steps)
	case 4:
		if l := m.ref.limits[name]; l != nil {
			n := 1 + m.rnd.IntN(4)
			m.same(l.take(n), m.limits[name].AllowN(n) == nil, "a token of "+name)
		}
		if q := m.ref.quotas["q"+name]; q != nil {
			ok := q.left() > 0
			if m.same(ok, m.limits["q"+name].AllowN(1) == nil, "a token of q"+name); ok {
				q.spent++
			}
		}
	case 5:
		if b := m.ref.breakers[name]; b != nil {
			permit, err := m.breakers[name].Acquire(bg)
			m.same(b.refuses(m.ref.now), err != nil, "the circuit "+name)
			if failed := m.rnd.IntN(2) == 0; err == nil {
				b.result(m.ref.now, failed)
				require.NoError(m.t, permit.Settle(bg, outcome(failed)), m.where)
			}
		}
	case 6, 7:
		m.enter(name)
	case 8:
		m.leave(name)
	case 9:
		if p := m.ref.pools[name]; p != nil {
			token, ok := m.pools[name].Reserve()
			m.same(p.left > 0, ok, "a retry of "+name)
			if ok && m.rnd.IntN(2) == 0 {
				token.Commit()
				p.left--
			} else if ok {
				token.Cancel()
			}
		}
	case 10:
		if c := m.ref.cools[name]; c != nil {
			wait := m.rnd.IntN(60)
			m.cools[name].Hint(bg, time.Duration(wait)*tenth)
			if c.hint(m.ref.now, wait); wait == 0 {
				break
			}
		}
	case 11:
		m.run([]string{"p", "q"}[m.rnd.IntN(2)])
	}
	if m.rnd.IntN(16) == 0 {
		m.compare()
	}
}

func outcome(failed bool) leaf.Outcome {
	if failed {
		return failure
	}
	return leaf.Outcome{}
}

func (m *modelRun) same(want, got any, what string) {
	require.Equal(m.t, want, got, "%s: %s", m.where, what)
}

func (m *modelRun) reload() {
	doc := randomDoc(m.rnd)
	m.next = &doc
	require.NoError(m.t, m.reg.Reload(strings.NewReader(doc.text(m.rnd, nil))), m.where)
	m.next = nil
	m.granted(m.ref.put(doc))
	m.get()
	m.subscribe()
	m.compare()
}

func (m *modelRun) invalid() {
	fault := faults[m.rnd.IntN(len(faults))]
	looks := m.looks
	require.Error(m.t, m.reg.Reload(strings.NewReader(randomDoc(m.rnd).text(m.rnd, fault))), "%s: %v", m.where, fault)
	m.same(looks, m.looks, "nothing is touched")
	m.get()
	m.compare()
}

// granted are let in now: they have their permits.
func (m *modelRun) granted(ids []int) {
	for _, id := range ids {
		permit, ok := <-m.waiting[id].got
		m.same(true, ok, "a waiter is let in")
		name := []string{"a", "b"}[id%2]
		m.held[name] = append(m.held[name], permit)
		delete(m.waiting, id)
	}
}

func (m *modelRun) enter(name string) {
	s, real := m.ref.slots[name], m.slots[name]
	if s == nil || len(s.line) > 8 {
		return
	}
	if m.ids += 2; name == "a" { // even ids are a's
		m.ids += m.ids % 2
	} else {
		m.ids += 1 - m.ids%2
	}
	ctx, cancel := context.WithCancel(bg)
	w := &waiter{cancel, make(chan *leaf.Permit, 1)}
	m.waiting[m.ids] = w
	go func() {
		defer close(w.got)
		if permit, err := real.Acquire(ctx); err == nil {
			w.got <- &permit
		}
	}()
	s.line = append(s.line, m.ids)
	granted := s.serve()
	m.granted(granted)
	for real.Queued() != len(s.line) {
		runtime.Gosched()
	}
}

// leave: one that is inside or one that waits.
func (m *modelRun) leave(name string) {
	s := m.ref.slots[name]
	if s == nil {
		return
	}
	if n := len(s.line); n > 0 && m.rnd.IntN(2) == 0 {
		i := m.rnd.IntN(n)
		w := m.waiting[s.line[i]]
		w.cancel()
		_, ok := <-w.got
		m.same(false, ok, "a waiter that went away")
		delete(m.waiting, s.line[i])
		s.line = slices.Delete(s.line, i, i+1)
		return
	}
	if n := len(m.held[name]); n > 0 {
		i := m.rnd.IntN(n)
		require.NoError(m.t, m.held[name][i].Settle(bg, leaf.Outcome{}), m.where)
		m.held[name] = slices.Delete(m.held[name], i, i+1)
		s.inside--
		m.granted(s.serve())
	}
}

// run is a call through a pipeline, unless it would have to wait.
func (m *modelRun) run(name string) {
	p, ok := m.ref.pipes[name]
	if !ok || p.slots && (m.ref.slots["a"].inside >= m.ref.slots["a"].max || len(m.ref.slots["a"].line) > 0) {
		return
	}
	failed := m.rnd.IntN(2) == 0
	ran, told := false, m.told[name]
	err := m.pipes[name].Run(bg, func(context.Context) error {
		if ran = true; failed {
			return errDown
		}
		return nil
	})
	want := true
	if on := m.ref.doc.enabled; on && p.breaker && m.ref.breakers["a"].refuses(m.ref.now) || on && p.limit && !m.ref.limits["a"].take(1) {
		want = false
	} else if on && p.breaker {
		m.ref.breakers["a"].result(m.ref.now, failed)
	}
	m.same(want, ran, "a call through "+name)
	m.same(want && !failed, err == nil, "a call through "+name)
	m.same(told+1, m.told[name], "a subscriber of "+name)
}

// get asks for every name: the same pointer as ever, or the error that lists what is there.
func (m *modelRun) get() {
	doc := m.ref.doc
	if len(doc.retries) > 0 { // else every name is served, with the defaults
		named(m, "retry", m.retries, doc.retries, []string{"a", "b"}, func(n string) (*retry.Retry, error) { return m.reg.Retry(n) })
	} else {
		for name, was := range m.retries {
			got, err := m.reg.Retry(name)
			require.NoError(m.t, err, m.where)
			require.Same(m.t, was, got, m.where)
			m.ref.attempts[name] = 3
		}
	}
	named(m, "circuit-breaker", m.breakers, doc.breakers, []string{"a", "b"}, func(n string) (breaker.Circuit, error) { return m.reg.Breaker(n) })
	limits := map[string]int{}
	for name := range doc.limits {
		limits[name] = 0
	}
	maps.Copy(limits, doc.quotas)
	named(m, "rate-limiter", m.limits, limits, []string{"a", "b", "qa", "qb"}, as[*ratelimit.Limiter](m.reg.RateLimit))
	named(m, "bulkhead", m.slots, doc.slots, []string{"a", "b"}, as[*bulkhead.Bulkhead](m.reg.Bulkhead))
	named(m, "retry-budget", m.pools, doc.pools, []string{"a", "b"}, as[*budget.Tokens](m.reg.RetryBudget))
	named(m, "cooldown", m.cools, doc.cools, []string{"a", "b"}, func(n string) (Cooling, error) { return m.reg.Cooldown(n) })
	named(m, "pipelines", m.pipes, doc.pipes, []string{"p", "q"}, func(n string) (*pipeline.Pipeline, error) { return m.reg.Pipeline(n) })
}

func as[T, I any](get func(string) (I, error)) func(string) (T, error) {
	return func(name string) (T, error) {
		item, err := get(name)
		t, _ := any(item).(T)
		return t, err
	}
}

func named[T comparable, S any](m *modelRun, section string, held map[string]T, there map[string]S, names []string, get func(string) (T, error)) {
	for _, name := range names {
		got, err := get(name)
		if _, ok := there[name]; !ok {
			list := strings.Join(slices.Sorted(maps.Keys(there)), ", ")
			if list == "" {
				list = "(none)"
			}
			require.EqualError(m.t, err, fmt.Sprintf("no resilience [%s] instance named [%s]; available: %s", section, name, list), m.where)
			continue
		}
		require.NoError(m.t, err, m.where)
		if was, had := held[name]; had {
			require.True(m.t, was == got, "%s: another %s %s", m.where, section, name)
		}
		held[name] = got
	}
}

// compare looks at everything that there ever was.
func (m *modelRun) compare() {
	for name, n := range m.ref.attempts {
		if m.retries[name] != nil {
			m.same(n, m.retries[name].Config().MaxAttempts, "retry "+name)
		}
	}
	for name, b := range m.ref.breakers {
		if m.breakers[name] == nil {
			continue
		}
		state, wait := breaker.Closed, 0
		if b.refuses(m.ref.now) {
			state, wait = breaker.Open, b.until-m.ref.now
		} else if b.open {
			state = breaker.HalfOpen
		}
		m.same(state, m.breakers[name].State(), "circuit "+name)
		m.same(time.Duration(wait)*tenth, m.breakers[name].Snapshot().Wait, "circuit "+name)
	}
	for name, l := range m.ref.limits {
		require.InDelta(m.t, float64(l.tenths)/10, m.limits[name].Tokens(), 1e-6, "%s: limit %s", m.where, name)
	}
	for name, q := range m.ref.quotas {
		m.same(float64(q.left()), max(0, m.limits[name].Tokens()), "quota "+name)
	}
	for name, s := range m.ref.slots {
		m.same([]int{s.inside, len(s.line)}, []int{m.slots[name].InUse(), m.slots[name].Queued()}, "bulkhead "+name)
	}
	for name, p := range m.ref.pools {
		m.same(p.left, m.pools[name].Balance(), "retry budget "+name)
	}
	for name, c := range m.ref.cools {
		m.same(time.Duration(max(0, c.until-m.ref.now))*tenth, m.cools[name].Wait(), "cooldown "+name)
	}
	for name := range m.ref.pipes {
		m.same(m.ref.nesting(name), m.pipes[name].String(), "pipeline "+name)
	}
	m.same(m.ref.doc.enabled, m.reg.Describe().Enabled, "enabled")
}
