package otelx_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/otelx"
	"github.com/fairlead/fairlead/pipeline/registry"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

func slotsOf(name string) *bulkhead.Bulkhead {
	return bulkhead.MustNew(bulkhead.Config{Name: name, MaxConcurrent: 1})
}

// A pipeline that is watched after calls were made, and one whose plan Update swaps: what counts is what is in force now.
func TestGaugesFollowUpdate(t *testing.T) {
	d := newDesk(t)
	p := pipeline.For("p").Bulkhead(slotsOf("old")).MustBuild()
	require.NoError(t, p.Run(t.Context(), fails(0, nil)))
	stop := d.watch(t, p)
	require.Equal(t, map[string]string{"gauge resilience.bulkhead.in_use {call}{bulkhead.name=old pipeline.name=p}": "0"}, d.read(t))
	require.NoError(t, p.Update(pipeline.For("p").Bulkhead(slotsOf("new"))))
	require.Equal(t, map[string]string{"gauge resilience.bulkhead.in_use {call}{bulkhead.name=new pipeline.name=p}": "0"}, d.read(t))
	require.NoError(t, p.Run(t.Context(), fails(0, nil)))
	require.Equal(t, "1", d.read(t)["counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=p}"])
	stop()
	require.Empty(t, only(d.read(t), "gauge"))
}

// A pipeline that is watched twice is counted once, until both have stopped; a stop that is called twice stops once.
func TestWatchedTwiceIsCountedOnce(t *testing.T) {
	d := newDesk(t)
	p := pipeline.For("p").Bulkhead(slotsOf("b")).MustBuild()
	first, second := d.watch(t, p), d.watch(t, p)
	count := func() string {
		require.NoError(t, p.Run(t.Context(), fails(0, nil)))
		return d.read(t)["counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=p}"]
	}
	require.Equal(t, "1", count())
	first()
	first()
	require.Equal(t, "2", count())
	require.Len(t, only(d.read(t), "gauge"), 1)
	second()
	require.Equal(t, "2", count())
	require.Empty(t, only(d.read(t), "gauge"))
}

// Close unregisters the gauges and leaves every pipeline; it is idempotent, and what comes later says so.
func TestCloseLeavesNothing(t *testing.T) {
	d := newDesk(t)
	p := pipeline.For("p").Retry(retry.MustNew(retry.Config{})).Bulkhead(slotsOf("b")).MustBuild()
	stop := d.watch(t, p)
	require.Len(t, only(d.read(t), "gauge"), 2)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	stop()
	require.NoError(t, p.Run(t.Context(), fails(0, nil)))
	require.Empty(t, d.read(t))
	_, err := d.Watch(p)
	require.ErrorIs(t, err, otelx.ErrClosed)
	require.ErrorIs(t, d.WatchAll(list{}.self()), otelx.ErrClosed)
}

// counted is a provider that counts callbacks which are registered.
type counted struct {
	noop.MeterProvider
	callbacks int
}

type registration struct {
	noop.Registration
	of *counted
}

func (c *counted) Meter(string, ...metric.MeterOption) metric.Meter { return countedMeter{of: c} }

type countedMeter struct {
	noop.Meter
	of *counted
}

func (m countedMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	m.of.callbacks++
	return registration{of: m.of}, nil
}

func (r registration) Unregister() error {
	r.of.callbacks--
	return errNone
}

// The callback goes with the Telemetry, once, and Close tells the provider's error.
func TestCloseUnregisters(t *testing.T) {
	provider := &counted{}
	telemetry, err := otelx.New(otelx.Config{MeterProvider: provider})
	require.NoError(t, err)
	require.Equal(t, 1, provider.callbacks)
	require.ErrorIs(t, telemetry.Close(), errNone)
	require.NoError(t, telemetry.Close())
	require.Zero(t, provider.callbacks)
}

// list is a Source.
type list struct{ all []*pipeline.Pipeline }

func (l list) self() *list                      { return &l }
func (l *list) Pipelines() []*pipeline.Pipeline { return l.all }

type uncomparable []*pipeline.Pipeline

func (u uncomparable) Pipelines() []*pipeline.Pipeline { return u }

// Bad input is an error that says what would be right.
func TestBadInput(t *testing.T) {
	d := newDesk(t)
	_, err := d.Watch(nil)
	require.EqualError(t, err, "otelx: Watch: p is nil: want a pipeline")
	want := "otelx: WatchAll: s is nil: want a source of pipelines, such as a *registry.Registry"
	require.EqualError(t, d.WatchAll(nil), want)
	require.EqualError(t, d.WatchAll((*registry.Registry)(nil)), want)
	require.EqualError(t, d.WatchAll(uncomparable{}), "otelx: WatchAll: s is a otelx_test.uncomparable: want what can be compared, such as a pointer")
	require.NoError(t, d.WatchAll(&list{all: []*pipeline.Pipeline{nil}}))
	require.Empty(t, d.read(t))
}

// broken is a MeterProvider that makes nothing.
type broken struct {
	noop.MeterProvider
	registers bool
}

type brokenMeter struct {
	noop.Meter
	registers bool
}

func (b broken) Meter(string, ...metric.MeterOption) metric.Meter {
	return brokenMeter{registers: b.registers}
}

var errNone = errors.New("none left")

func (m brokenMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if m.registers {
		return noop.Int64Counter{}, nil
	}
	return nil, errNone
}

func (m brokenMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errNone
}

// The provider's errors are New's.
func TestAProviderThatFails(t *testing.T) {
	_, err := otelx.New(otelx.Config{MeterProvider: broken{}})
	require.ErrorIs(t, err, errNone)
	require.ErrorContains(t, err, "otelx: making the instruments: none left")
	_, err = otelx.New(otelx.Config{MeterProvider: broken{registers: true}})
	require.ErrorContains(t, err, "otelx: registering the gauges: none left")
}

// The zero Config goes to the global provider, which does nothing until the program sets one.
func TestTheZeroConfig(t *testing.T) {
	telemetry, err := otelx.New(otelx.Config{})
	require.NoError(t, err)
	p := pipeline.For("p").Observe(telemetry.Observe).MustBuild()
	require.NoError(t, p.Run(t.Context(), fails(0, nil)))
	require.NoError(t, telemetry.Close())
}

const document = `resilience:
  bulkhead: { db: { max-concurrent: 2 }, cache: { max-concurrent: 3 } }
  pipelines:
`

// A registry's pipelines are watched through its reloads: one that comes, one whose guard changes, one that goes.
func TestARegistryIsFollowedThroughReloads(t *testing.T) {
	d := newDesk(t)
	var reg *registry.Registry
	reg, err := registry.LoadYAML(strings.NewReader(document+"    orders: { bulkhead: db }\n"), registry.WithOnReload(func(error) {
		require.NoError(t, d.WatchAll(reg))
	}))
	require.NoError(t, err)
	defer func() { require.NoError(t, reg.Close()) }()
	require.NoError(t, d.WatchAll(reg))
	orders := reg.MustPipeline("orders")
	require.NoError(t, orders.Run(t.Context(), fails(0, nil)))
	ofOrders, ofStock := "counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=orders}", "counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=stock}"
	require.Equal(t, "1", d.read(t)[ofOrders])

	require.NoError(t, reg.Reload(strings.NewReader(document+"    orders: { bulkhead: cache }\n    stock: { bulkhead: db }\n")))
	require.NoError(t, reg.MustPipeline("stock").Run(t.Context(), fails(0, nil)), "before anything was collected")
	got := d.read(t)
	require.Equal(t, "1", got[ofStock])
	require.Equal(t, map[string]string{
		"gauge resilience.bulkhead.in_use {call}{bulkhead.name=cache pipeline.name=orders}": "0",
		"gauge resilience.bulkhead.in_use {call}{bulkhead.name=db pipeline.name=stock}":     "0",
	}, only(got, "gauge"))

	require.NoError(t, reg.Reload(strings.NewReader(document+"    stock: { bulkhead: db }\n")))
	require.Equal(t, map[string]string{"gauge resilience.bulkhead.in_use {call}{bulkhead.name=db pipeline.name=stock}": "0"}, only(d.read(t), "gauge"))
	require.NoError(t, orders.Run(t.Context(), fails(0, nil)))
	require.Equal(t, "1", d.read(t)[ofOrders], "watched no longer")
}

// Without the hook, what a reload brought is found at the next collection.
func TestASourceIsAskedAtEachCollection(t *testing.T) {
	d := newDesk(t)
	p, q := pipeline.For("p").Bulkhead(slotsOf("b")).MustBuild(), pipeline.For("q").Bulkhead(slotsOf("b")).MustBuild()
	source := &list{}
	require.NoError(t, d.WatchAll(source))
	require.Empty(t, d.read(t))
	source.all = []*pipeline.Pipeline{p, nil, q, p}
	require.Len(t, only(d.read(t), "gauge"), 2)
	defer d.watch(t, q)()
	source.all = nil
	require.Len(t, only(d.read(t), "gauge"), 1, "q is watched by itself as well")
}

// hostile is a guard that shows what a test says.
type hostile struct{ inspect func() leaf.Snapshot }

func (hostile) Acquire(context.Context) (leaf.Permit, error) { return leaf.Permit{}, nil }
func (h hostile) Inspect() leaf.Snapshot                     { return h.inspect() }

// panicking is a Source that gives its first answers alone.
type panicking struct {
	answers int
	all     []*pipeline.Pipeline
}

func (p *panicking) Pipelines() []*pipeline.Pipeline {
	if p.answers--; p.answers < 0 {
		panic("list")
	}
	return p.all
}

// Guards of somebody's own: one that panics is left out, and nothing else is; one with words of its own shows them, a Shadow shows what
// is behind it.
func TestGuardsOfYourOwn(t *testing.T) {
	d := newDesk(t)
	own := hostile{func() leaf.Snapshot { return leaf.Snapshot{Kind: "breaker", Name: "own", State: "brown-out"} }}
	p := pipeline.For("p").With(own, leaf.Shadow(slotsOf("shadowed"), nil)).Bulkhead(slotsOf("b")).MustBuild()
	bad := pipeline.For("bad").Breaker(hostile{func() leaf.Snapshot { panic("inspect") }}).Bulkhead(slotsOf("behind")).MustBuild()
	defer d.watch(t, bad, p)()
	require.Equal(t, map[string]string{
		"gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=own circuit_breaker.state=closed pipeline.name=p}":    "0",
		"gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=own circuit_breaker.state=open pipeline.name=p}":      "0",
		"gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=own circuit_breaker.state=half_open pipeline.name=p}": "0",
		"gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=own circuit_breaker.state=brown_out pipeline.name=p}": "1",
		"gauge resilience.bulkhead.in_use {call}{bulkhead.name=shadowed pipeline.name=p}":                                            "0",
		"gauge resilience.bulkhead.in_use {call}{bulkhead.name=b pipeline.name=p}":                                                   "0",
		"gauge resilience.bulkhead.in_use {call}{bulkhead.name=behind pipeline.name=bad}":                                            "0",
	}, only(d.read(t), "gauge"))

	require.PanicsWithValue(t, "list", func() { _ = d.WatchAll(&panicking{}) })
	require.Len(t, only(d.read(t), "gauge"), 7, "and nothing is wedged")
	other := pipeline.For("other").Bulkhead(slotsOf("b")).MustBuild()
	require.NoError(t, d.WatchAll(&panicking{answers: 1, all: []*pipeline.Pipeline{other}}))
	require.Len(t, only(d.read(t), "gauge"), 8, "a source that panics at a collection leaves things as they were")
}

// Retry budgets: the default one of each retry, a shared one for each pipeline, none.
func TestRetryBudgets(t *testing.T) {
	d := newDesk(t)
	shared := budget.MustNewTokens(budget.TokenConfig{Capacity: 7})
	with := func(name string, cfg retry.Config) *pipeline.Pipeline {
		return pipeline.For(name).Retry(retry.MustNew(cfg)).MustBuild()
	}
	defer d.watch(t, with("default", retry.Config{}), with("a", retry.Config{Budget: shared}), with("b", retry.Config{Budget: shared}),
		with("none", retry.Config{NoBudget: true}))()
	got := d.read(t)
	require.Equal(t, "7", got["gauge resilience.retry_budget.balance {token}{pipeline.name=a}"])
	require.Equal(t, "7", got["gauge resilience.retry_budget.balance {token}{pipeline.name=b}"])
	require.Contains(t, got, "gauge resilience.retry_budget.balance {token}{pipeline.name=default}")
	require.Len(t, got, 3)
}

// Everything at once, under the race detector: calls, collections, pipelines that come and go, and in the end Close.
func TestEverythingAtOnce(t *testing.T) {
	d := newDesk(t)
	source := &locked{}
	require.NoError(t, d.WatchAll(source))
	steadyOne := pipeline.For("steady").Breaker(breaker.MustNew(breaker.Config{})).MustBuild()
	defer d.watch(t, steadyOne)()
	var done sync.WaitGroup
	for n := range 4 {
		done.Go(func() {
			for i := range 100 {
				p := pipeline.For(string(rune('a' + n))).Bulkhead(slotsOf("b")).MustBuild()
				stop, err := d.Watch(p)
				require.NoError(t, err)
				source.set(p)
				_ = p.Run(t.Context(), fails(1, errDown))
				_ = steadyOne.Run(t.Context(), fails(0, nil))
				if i%10 == 0 {
					d.read(t)
				}
				stop()
			}
		})
	}
	done.Wait()
	require.Equal(t, "400", d.read(t)["counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=steady}"])
	var ending sync.WaitGroup
	for range 4 {
		ending.Go(func() { d.read(t) })
		ending.Go(func() { require.NoError(t, d.Close()) })
	}
	ending.Wait()
}

type locked struct {
	mu  sync.Mutex
	all []*pipeline.Pipeline
}

func (l *locked) set(p *pipeline.Pipeline) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = []*pipeline.Pipeline{p}
}

func (l *locked) Pipelines() []*pipeline.Pipeline {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}
