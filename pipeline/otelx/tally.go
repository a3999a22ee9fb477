package otelx

import (
	"reflect"
	"strings"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// states are those of a circuit breaker.
var states = []string{"closed", "open", "half_open"}

// tally is one collection's sums. Pipelines of one name share their series, as guards of one name in a pipeline do, and a gauge
// keeps the last of what it is told: so they are added up here first, and the order in which they are met says nothing.
type tally struct {
	*instruments
	sums map[place]int64
	met  map[sight]bool
}

// place is one series of a gauge; attributes that it does not have are zero.
type place struct {
	gauge *metric.Int64ObservableGauge
	attrs [3]attribute.KeyValue
}

// sight is what was counted in a pipeline's series already: a guard that several pipelines of one name share is one guard.
type sight struct {
	gauge    *metric.Int64ObservableGauge
	pipeline string
	what     any
}

// add counts value towards a series.
func (t *tally) add(gauge *metric.Int64ObservableGauge, value int64, attrs ...attribute.KeyValue) {
	at := place{gauge: gauge}
	copy(at.attrs[:], attrs)
	t.sums[at] += value
}

// first says that what was not met before. What cannot be compared has no identity, and is another one each time.
func (t *tally) first(gauge *metric.Int64ObservableGauge, of string, what any) bool {
	if !reflect.ValueOf(what).Comparable() {
		return true
	}
	s := sight{gauge, of, what}
	met := t.met[s]
	t.met[s] = true
	return !met
}

func (t *tally) pipeline(p *pipeline.Pipeline) {
	for _, behind := range p.Layers() {
		t.layer(p.Name(), behind)
	}
}

// layer counts what stands behind one layer. A guard or a budget of somebody's own that panics is left out, and nothing else is:
// a scrape must not end the program.
func (t *tally) layer(of string, behind any) {
	defer func() { _ = recover() }()
	name := pipelineName.String(of)
	switch behind := behind.(type) {
	case *retry.Retry:
		paid := behind.Config().Budget
		if b, ok := paid.(interface{ Balance() int }); ok && t.first(&t.balance, of, paid) {
			t.add(&t.balance, int64(b.Balance()), name)
		}
	case leaf.Inspector:
		switch s := behind.Inspect(); s.Kind {
		case "breaker":
			if t.first(&t.state, of, behind) {
				t.breaker(name, s)
			}
		case "bulkhead":
			if t.first(&t.inUse, of, behind) {
				t.bulkhead(name, s)
			}
		}
	}
}

// breaker counts each state, so that a series that ended is told from one that is 0. A word of a guard of your own is one more.
func (t *tally) breaker(name attribute.KeyValue, s leaf.Snapshot) {
	now, known := strings.ReplaceAll(s.State, "-", "_"), false
	count := func(state string, value int64) {
		t.add(&t.state, value, name, breakerName.String(s.Name), breakerState.String(state))
	}
	for _, state := range states {
		is := int64(0)
		if state == now {
			is, known = 1, true
		}
		count(state, is)
	}
	if !known {
		count(now, 1)
	}
}

func (t *tally) bulkhead(name attribute.KeyValue, s leaf.Snapshot) {
	for _, g := range s.Gauges {
		if g.Name == "in_use" {
			t.add(&t.inUse, int64(g.Value), name, bulkheadName.String(s.Name))
		}
	}
}
