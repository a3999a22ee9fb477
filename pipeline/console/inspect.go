package console

import (
	"fmt"
	"reflect"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// seen is one layer as it was read, before the counters are put to it.
type seen struct {
	layer
	item     any // for identity: what several pipelines share
	snapshot *breaker.Snapshot
	config   *breaker.Config
}

// look reads a pipeline's layers. It asks the guards' own code, so it holds no lock, and a panic in there is a text on the page, as
// is a runtime.Goexit.
func look(p *pipeline.Pipeline) (all []seen, l limits, failed string) {
	failed = guarded(func() {
		for d, item := range p.Layers() {
			s := seen{layer: layer{Kind: d.Kind, Name: clip(d.Name, longestName), Per: "attempt", Gauges: []gauge{}}}
			if comparable(item) {
				s.item = item
			}
			switch item := item.(type) {
			case *timeout.Timeout:
				cfg := item.Config()
				s.Limit = number(cfg.Limit.Seconds())
				if d.Kind == "timeout" {
					s.Per, l.total = "call", cfg
				} else {
					l.attempt = cfg
				}
			case *retry.Retry:
				s.Per = "call"
				cfg := item.Config()
				s.Retry = &budgets{Attempts: cfg.MaxAttempts, Budget: "unknown"}
				s.Error = guarded(func() { s.Retry.ask(cfg) })
			default:
				s.Error = guarded(func() { s.ask(item) })
			}
			all = append(all, s)
		}
	})
	return all, l, failed
}

// ask fills in what a guard has to show.
func (s *seen) ask(guard any) {
	if i, ok := guard.(leaf.Inspector); ok {
		snapshot := i.Inspect()
		s.State = clip(snapshot.State, longestName)
		for _, g := range snapshot.Gauges {
			if len(s.Gauges) == mostGauges {
				break
			}
			s.Gauges = append(s.Gauges, gauge{clip(g.Name, longestName), number(g.Value), number(g.Limit)})
			if g.Name == "queued" {
				waiting := number(g.Value)
				s.Waiting = &waiting
			}
		}
	}
	if c, ok := guard.(breaker.Circuit); ok {
		snapshot := c.Snapshot()
		s.snapshot = &snapshot
		if c, ok := guard.(interface{ Config() breaker.Config }); ok {
			cfg := c.Config()
			s.config = &cfg
		}
	}
}

// guarded runs code that is not the console's, and tells its panic. It runs on a goroutine of its own: runtime.Goexit ends that one,
// and nothing else.
func guarded(f func()) (failed string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		failed = "runtime.Goexit"
		defer func() {
			if p := recover(); p != nil {
				failed = clip(fmt.Sprintf("panic of type %T", p), longestText)
			}
		}()
		f()
		failed = ""
	}()
	<-done
	return failed
}

func (b *budgets) ask(cfg retry.Config) {
	if cfg.NoBudget {
		b.Budget = "none"
		return
	}
	if balanced, ok := cfg.Budget.(interface{ Balance() int }); ok {
		b.Budget, b.Balance = "balance", balanced.Balance()
	}
	if pool, ok := cfg.Budget.(*budget.Tokens); ok {
		capacity := number(pool.Config().Capacity)
		b.Capacity = &capacity
	}
}

// comparable says that v can be a key. A guard may be a struct with a slice in it.
func comparable(v any) bool {
	return v != nil && reflect.TypeOf(v).Comparable() && reflect.ValueOf(v).Comparable()
}

// rules is what opens a circuit, as a sentence.
func rules(c breaker.Config) string {
	calls, within := c.Window.Size()
	window := "the last " + plural(calls, "call")
	switch {
	case calls == 0:
		window = fmt.Sprint(within)
	case within > 0:
		window += fmt.Sprintf(" within %v", within)
	}
	var all []string
	if c.FailureRate > 0 {
		all = append(all, fmt.Sprintf("%.4g %% of at least %s in %s fail", 100*c.FailureRate, plural(c.MinCalls, "call"), window))
	}
	if c.FailureCount > 0 {
		all = append(all, fmt.Sprintf("%s in %s", plural(c.FailureCount, "failure"), window))
	}
	if c.Consecutive > 0 {
		all = append(all, fmt.Sprintf("%s in a row, below %s", plural(c.Consecutive, "failure"), plural(c.MinCalls, "call")))
	}
	if c.SlowCall > 0 {
		all = append(all, fmt.Sprintf("%.4g %% of at least %s take %v", 100*c.SlowRate, plural(c.MinCalls, "call"), c.SlowCall))
	}
	return or(all)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func or(all []string) string {
	text := ""
	for i, s := range all {
		if i > 0 {
			text += ", or "
		}
		text += s
	}
	return text
}
