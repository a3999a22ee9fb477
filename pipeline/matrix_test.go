package pipeline_test

import (
	"flag"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// go test -run TestEverySubset -scenario 'the caller leaves' ./pipeline
var onlyScenario = flag.String("scenario", "", "the matrix: only scenarios whose name contains this")

// driver is a way to make the call.
type driver uint8

const (
	unobserved driver = iota // Do without an observer: the fast path, which reads no clock that it does not need
	detailed                 // DoDetailed, observed
	detached                 // DoDetached, observed
)

func (d driver) String() string { return [...]string{"Do, unobserved,", "DoDetailed", "DoDetached"}[d] }

// TestEverySubsetAgainstTheModel is the matrix: every subset of layers, both breaker orders, every scenario.
func TestEverySubsetAgainstTheModel(t *testing.T) {
	all := scenarios()
	seen := map[string]bool{}
	for _, sc := range all {
		if seen[sc.name] {
			t.Fatalf("two scenarios %q", sc.name)
		}
		seen[sc.name] = true
	}
	found := &differences{shown: map[string]string{}, size: map[string]int{}, count: map[string]int{}}
	t.Run("subsets", func(t *testing.T) {
		for set := range 256 {
			t.Run(fmt.Sprint(set), func(t *testing.T) {
				t.Parallel()
				for _, p := range plans(layer(set)) {
					for i, sc := range all {
						if layer(set)&sc.needs != sc.needs || !strings.Contains(sc.name, *onlyScenario) || (set+i)%everyNth != 0 {
							continue
						}
						for _, v := range variants(p, sc) {
							compare(t, sc, v, found)
						}
					}
				}
			})
		}
	})
	found.report(t)
	t.Logf("%d calls", found.calls.Load())
}

// differences keeps, for each scenario and driver, the smallest pipeline in which engine and model differ.
type differences struct {
	calls atomic.Int64

	mu    sync.Mutex
	shown map[string]string
	size  map[string]int
	count map[string]int
}

func (d *differences) add(sc *scenario, p plan, by driver, text func() string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := fmt.Sprintf("%v of %q", by, sc.name)
	d.count[key]++
	if size := bits.OnesCount8(uint8(p.layers)); d.count[key] == 1 || size < d.size[key] {
		d.size[key], d.shown[key] = size, text()
	}
}

func (d *differences) report(t *testing.T) {
	for _, key := range slices.Sorted(maps.Keys(d.shown)) {
		t.Errorf("%s differs in %d pipelines, such as %s", key, d.count[key], d.shown[key])
	}
}

// plans are the orders of a subset.
func plans(set layer) []plan {
	all := []plan{{layers: set}}
	if set&breaking != 0 && set&retrying != 0 {
		all = append(all, plan{layers: set, outside: true})
	}
	return all
}

// variants are the options that matter to a scenario.
func variants(p plan, sc *scenario) []plan {
	p.mapping = mapsPlain
	all := []plan{p}
	if sc.refuses {
		for _, m := range []mapping{noMapper, mapsNil, mapsVeto} {
			p.mapping = m
			all = append(all, p)
		}
		p.mapping = mapsPlain
		full, limited := p.has(retrying) && p.has(bulk), p.has(retrying) && p.has(limiting)
		for _, opt := range [][2]bool{{full, false}, {false, limited}, {full, limited}} {
			p.onFull, p.onLimited = opt[0], opt[1]
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// build makes the pipeline of p around w's spies.
func (p plan) build(w *world, d driver) *pipeline.Pipeline {
	b := pipeline.For("matrix")
	if d != unobserved {
		b = b.Observe(w.observe)
	}
	if p.has(total) {
		b = b.Timeout(timeout.MustNew(timeout.Config{Name: "total", Limit: totalLimit}))
	}
	if p.has(retrying) {
		b = b.Retry(retry.MustNew(retry.Config{
			Name: "retry", MaxAttempts: maxAttempts, Backoff: retry.Constant(backoff), Jitter: retry.None,
			MaxRetryAfter: maxRetryAfter, Budget: &purse{w},
		}))
	}
	if p.has(cooling) {
		b = b.Cooldown(&coolSpy{peekSpy{spy{w, cooling}}})
	}
	if p.has(breaking) {
		b = b.Breaker(&breakSpy{peekSpy{spy{w, breaking}}})
	}
	if p.has(limiting) {
		b = b.RateLimit(&spy{w, limiting})
	}
	if p.has(extra) {
		b = b.With(&spy{w, extra})
	}
	if p.has(bulk) {
		b = b.Bulkhead(&bulkSpy{spy{w, bulk}})
	}
	if p.has(attempt) {
		b = b.AttemptTimeout(timeout.MustNew(timeout.Config{Name: "attempt", Limit: attemptLimit}))
	}
	if p.outside {
		b = b.BreakerOutsideRetry()
	}
	if p.onFull {
		b = b.RetryOnBulkheadFull()
	}
	if p.onLimited {
		b = b.RetryOnRateLimited()
	}
	if p.mapping != noMapper {
		b = b.OnRejected(w.mapper(p.mapping))
	}
	return b.MustBuild()
}

// compare runs sc on p in each way and holds the traces against the model's.
func compare(t *testing.T, sc *scenario, p plan, found *differences) {
	m := predict(sc, p)
	for _, d := range []driver{unobserved, detailed, detached} {
		if d == detached && m.late {
			continue // a detached call does not wait for it
		}
		found.calls.Add(1)
		synctest.Test(t, func(t *testing.T) {
			got, want := play(sc, p, d, 0), m.lines(d)
			if !slices.Equal(got.trace, want) || len(got.wrong) != 0 {
				found.add(sc, p, d, func() string {
					return fmt.Sprintf("%v\n%s\nthe model says:\n%s\nthe engine did:\n%s",
						p, strings.Join(got.wrong, "\n"), render(got.trace, want), render(want, got.trace))
				})
			}
		})
	}
}

// play makes one call and adds its end to the trace.
func play(sc *scenario, p plan, d driver, hookPanicsAt int) *world {
	w := newWorld(sc, p)
	defer w.end()
	w.hookPanicsAt = hookPanicsAt
	pl := p.build(w, d)
	end := "goexit"
	var tail []entry
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				end = fmt.Sprint(r)
			}
		}()
		v, err := 0, error(nil)
		op := pipeline.OperationID("op")
		switch d {
		case unobserved:
			v, err = pipeline.Do(w.ctx, pl, w.fn, op)
		case detailed:
			var r pipeline.Report
			v, r, err = pipeline.DoDetailed(w.ctx, pl, w.fn, op)
			tail = reported(sc, r)
		case detached:
			v, err = pipeline.DoDetached(w.ctx, pl, w.fn, pipeline.Detached[int]{
				Late: func(int, error) { w.complain("late") }, LatePanic: func(any) { w.complain("late panic") },
			}, op)
		}
		end = sc.tell(err)
		if (v == 0) != (err != nil) {
			w.complain("value %d beside error %v", v, err)
		}
	}()
	<-done
	w.add(entry{what: "result", err: end})
	w.trace = append(undo(w.trace), tail...)
	for token, l := range w.held {
		w.complain("%v still holds %d", l, token)
	}
	if w.last != nil && (p.has(attempt) || p.has(total)) && w.last.Err() == nil {
		w.complain("the last run's ctx is still alive")
	}
	return w
}

// lines are what the trace of a call by d must be.
func (m *model) lines(d driver) []entry {
	end := m.unwinds
	if end == "" {
		end = m.sc.tell(m.err)
	}
	lines := undo(append(slices.Clone(m.trace), entry{at: m.now, what: "result", err: end}))
	if d == unobserved {
		return slices.DeleteFunc(lines, func(e entry) bool { return slices.Contains(events, e.what) })
	}
	if d == detailed && m.unwinds == "" {
		lines = append(lines, reported(m.sc, m.report)...)
	}
	return lines
}

// events are the lines that only an observer sees.
var events = []string{"call_started", "call_finished", "attempt_finished", "retry_scheduled", "retry_stopped", "rejected"}

// undo takes out the tokens that were taken and given back: when that happens is nobody's business.
func undo(trace []entry) []entry {
	var kept []entry
	for _, e := range trace {
		if e.what == "cancel" {
			for i, k := range slices.Backward(kept) {
				if k.what == "reserve" {
					kept = slices.Delete(kept, i, i+1)
					break
				}
			}
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// reported is a Report as lines.
func reported(sc *scenario, r pipeline.Report) []entry {
	lines := []entry{
		{what: "report", word: r.Disposition.String() + " " + r.Reason.String(), n: r.Attempts, layer: r.Layer, wait: r.Wait, err: sc.tell(r.Last)},
		{what: "report", word: "elapsed, waited", took: r.Elapsed, delay: r.Waited},
	}
	for _, a := range r.History {
		lines = append(lines, entry{at: a.Began, what: "history", n: a.Number, took: a.Took, delay: a.Delay, err: sc.tell(a.Err)})
	}
	return lines
}

// render prints a trace, and marks where it leaves the other one.
func render(other, trace []entry) string {
	var b strings.Builder
	for i, e := range trace {
		mark := "  "
		if i >= len(other) || other[i] != e {
			mark = "! "
		}
		b.WriteString(mark + e.String() + "\n")
	}
	return b.String()
}
