package otelx_test

import (
	"testing"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// busy is a bulkhead with n slots in use.
func busy(t *testing.T, name string, n int) *bulkhead.Bulkhead {
	b := bulkhead.MustNew(bulkhead.Config{Name: name, MaxConcurrent: 100})
	for range n {
		permit, err := b.Acquire(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = permit.Settle(t.Context(), leaf.Outcome{}) })
	}
	return b
}

// again reads often enough that an answer which goes by the order of a map would show.
func (d desk) again(t *testing.T, want map[string]string) {
	t.Helper()
	for range 40 {
		require.Equal(t, want, only(d.read(t), "gauge"))
	}
}

const (
	inUseOfB = "gauge resilience.bulkhead.in_use {call}{bulkhead.name=b pipeline.name=p}"
	balance  = "gauge resilience.retry_budget.balance {token}{pipeline.name=p}"
)

func stateOfC(state string) string {
	return "gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=c circuit_breaker.state=" + state + " pipeline.name=p}"
}

// Guards that share a series are added up: slots, breakers in a state, tokens, whichever pipeline comes first.
func TestGuardsThatShareASeriesAreAddedUp(t *testing.T) {
	d := newDesk(t)
	one := func(inUse, tokens int, open bool) *pipeline.Pipeline {
		c := breaker.MustNew(breaker.Config{Name: "c"})
		if open {
			require.NoError(t, c.ForceOpen(t.Context()))
		}
		return pipeline.For("p").Bulkhead(busy(t, "b", inUse)).Breaker(c).
			Retry(retry.MustNew(retry.Config{Budget: budget.MustNewTokens(budget.TokenConfig{Capacity: tokens})})).MustBuild()
	}
	p, q, r := one(1, 3, true), one(50, 4, false), one(0, 5, true)
	defer d.watch(t, p, q)()
	stop := d.watch(t, r)
	d.again(t, map[string]string{inUseOfB: "51", balance: "12", stateOfC("open"): "2", stateOfC("closed"): "1", stateOfC("half_open"): "0"})
	stop()
	d.again(t, map[string]string{inUseOfB: "51", balance: "7", stateOfC("open"): "1", stateOfC("closed"): "1", stateOfC("half_open"): "0"})
	require.NoError(t, q.Run(t.Context(), fails(0, nil)))
	require.NoError(t, q.Run(t.Context(), fails(0, nil)))
	require.Equal(t, "2", d.read(t)["counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=p}"], "and so are calls")
}

// A guard or a budget that pipelines of one name share is one: it is not added to itself.
func TestAGuardOfSeveralPipelinesOfOneNameIsOne(t *testing.T) {
	d := newDesk(t)
	b, tokens := busy(t, "b", 7), budget.MustNewTokens(budget.TokenConfig{Capacity: 3})
	of := func(name string) *pipeline.Pipeline {
		return pipeline.For(name).Bulkhead(b).Retry(retry.MustNew(retry.Config{Budget: tokens})).MustBuild()
	}
	defer d.watch(t, of("p"), of("p"), of("q"))()
	d.again(t, map[string]string{
		inUseOfB: "7", balance: "3",
		"gauge resilience.bulkhead.in_use {call}{bulkhead.name=b pipeline.name=q}": "7",
		"gauge resilience.retry_budget.balance {token}{pipeline.name=q}":           "3",
	})
}

// Two guards of one name in one pipeline share a series as well; what cannot be compared is another one each time.
func TestGuardsOfOneNameInOnePipeline(t *testing.T) {
	d := newDesk(t)
	shown := hostile{func() leaf.Snapshot {
		return leaf.Snapshot{Kind: "bulkhead", Name: "b", Gauges: []leaf.Gauge{{Name: "in_use", Value: 10}}}
	}}
	defer d.watch(t, pipeline.For("p").With(shown, shown, busy(t, "b", 1)).Bulkhead(busy(t, "b", 2)).MustBuild())()
	d.again(t, map[string]string{inUseOfB: "23"})
}
