package otelx

import (
	"context"
	"strings"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// states are those of a circuit breaker.
var states = []string{"closed", "open", "half_open"}

// collect fills the gauges when a reader asks. The guards are looked at without mu: they may be anybody's.
func (t *Telemetry) collect(_ context.Context, o metric.Observer) error {
	for _, p := range t.pipelines() {
		t.show(o, p)
	}
	return nil
}

// show observes the layers of one pipeline. A guard of somebody's own whose Inspect panics ends that, and nothing else: a scrape
// must not end the program.
func (t *Telemetry) show(o metric.Observer, p *pipeline.Pipeline) {
	defer func() { _ = recover() }()
	name := pipelineName.String(p.Name())
	for _, behind := range p.Layers() {
		t.showLayer(o, name, behind)
	}
}

// pipelines is what is watched now. Sources are asked for what has come and gone.
func (t *Telemetry) pipelines() []*pipeline.Pipeline {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.sources {
		func() {
			defer func() { _ = recover() }() // as in show
			t.refresh(s)
		}()
	}
	all := make([]*pipeline.Pipeline, 0, len(t.watched))
	for p := range t.watched {
		all = append(all, p)
	}
	return all
}

func (t *Telemetry) showLayer(o metric.Observer, name attribute.KeyValue, behind any) {
	switch behind := behind.(type) {
	case *retry.Retry:
		if b, ok := behind.Config().Budget.(interface{ Balance() int }); ok {
			o.ObserveInt64(t.instruments.balance, int64(b.Balance()), with(name))
		}
	case leaf.Inspector:
		switch s := behind.Inspect(); s.Kind {
		case "breaker":
			t.showBreaker(o, name, s)
		case "bulkhead":
			for _, g := range s.Gauges {
				if g.Name == "in_use" {
					o.ObserveInt64(t.instruments.inUse, int64(g.Value), with(name, bulkheadName.String(s.Name)))
				}
			}
		}
	}
}

// showBreaker observes each state, so that a series that ended is told from one that is 0. A word of a guard of your own is one more.
func (t *Telemetry) showBreaker(o metric.Observer, name attribute.KeyValue, s leaf.Snapshot) {
	now, known := strings.ReplaceAll(s.State, "-", "_"), false
	observe := func(state string, value int64) {
		o.ObserveInt64(t.instruments.state, value, with(name, breakerName.String(s.Name), breakerState.String(state)))
	}
	for _, state := range states {
		is := int64(0)
		if state == now {
			is, known = 1, true
		}
		observe(state, is)
	}
	if !known {
		observe(now, 1)
	}
}

func with(attrs ...attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}
