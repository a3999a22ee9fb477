package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/registry"
)

// newConfigured is a stage whose pipelines come from a document, which is replaced while they are used: by others that mean
// other limits, and by some that are refused and change nothing.
func newConfigured(w *world) *stage {
	s := &stage{w: w, name: "configured"}
	fallback := w.some(20)
	reg, err := registry.LoadYAML(strings.NewReader(document(w.rnd, w.unit)), registry.WithClock(w.timer()),
		registry.WithPipeline(func(_ string, b pipeline.Builder) pipeline.Builder {
			return b.Observe(observe).FallbackTimeout(fallback)
		}))
	if err != nil {
		w.fail("load: %v", err)
		return newStage(w, "outer", 1)
	}
	w.reg = reg
	var g gauge
	slots := &part{
		kind: "configured bulkhead",
		run:  func(_ context.Context, in bool) { g.run(w, "configured bulkhead", mostSlots, in) },
		rest: func() error {
			for _, gauge := range reg.MustBulkhead("b").Inspect().Gauges {
				if gauge.Value != 0 {
					return fmt.Errorf("configured bulkhead at rest: %+v", gauge)
				}
			}
			return nil
		},
	}
	circuit := &part{
		kind:   "configured breaker",
		revive: 200 * w.unit,
		rest: func() error {
			if snap := reg.MustBreaker("c").Snapshot(); snap.Probes != 0 {
				return fmt.Errorf("configured breaker at rest: %+v", snap)
			}
			return nil
		},
		meddle: func(ctx context.Context, r *rand.Rand) {
			c := reg.MustBreaker("c")
			_ = []func(context.Context) error{c.ForceOpen, c.Auto, c.Auto}[r.IntN(3)](ctx)
		},
		after: func(ctx context.Context) {
			if c := reg.MustBreaker("c"); c.Snapshot().Forced || c.State() == breaker.Open {
				_ = c.Auto(ctx)
			}
		},
	}
	limit := &part{kind: "configured limiter", revive: 100 * w.unit}
	s.parts = []*part{slots, circuit, limit}
	for _, name := range []string{"inside", "outside"} {
		p := reg.MustPipeline(name)
		t := &target{Pipeline: p, observed: true, fallback: fallback, parts: s.parts, bare: true}
		s.targets = append(s.targets, t)
	}
	s.meddle = func(r *rand.Rand) {
		text, valid := document(r, w.unit), r.IntN(3) > 0
		if !valid {
			text = strings.Replace(text, "max-concurrent: ", "max-concurrent: -", 1)
		}
		before := reg.MustPipeline("inside")
		err := reg.Reload(strings.NewReader(text))
		if (err == nil) != valid {
			w.fail("reload: %v of\n%s", err, text)
		}
		if reg.MustPipeline("inside") != before {
			w.fail("another pipeline under the same name after a reload")
		}
	}
	return s
}

const mostSlots = 4

// document is a random configuration of two pipelines over the same parts.
func document(r *rand.Rand, unit time.Duration) string {
	some := func(n int) time.Duration { return unit + time.Duration(r.Int64N(int64(n)*int64(unit))) }
	attempt := some(20)
	return fmt.Sprintf(`
resilience:
  retry: { r: { max-attempts: %d, wait-duration: %v, jitter: %s, max-wait: %v, budget: shared, return-last: %v } }
  retry-budget: { shared: { min-per-second: %d } }
  circuit-breaker: { c: { window-size: 8, consecutive: %d, wait-duration-in-open: %v, half-open-max-calls: %d } }
  rate-limiter: { l: { refill-rate: %d, per: %v, max-tokens: %d, timeout: %v } }
  bulkhead: { b: { max-concurrent: %d, max-wait: %v } }
  cooldown: { d: { max: %v } }
  pipelines:
    inside: { timeout: %v, retry: r, cooldown: d, circuit-breaker: c, rate-limiter: l, bulkhead: b, attempt-timeout: %v }
    outside: { timeout: %v, retry: r, circuit-breaker: c, breaker: outside-retry, bulkhead: b, retry-on-bulkhead-full: %v }
`, 1+r.IntN(5), some(5), []string{"full", "none", "equal"}[r.IntN(3)], some(20)+5*unit, r.IntN(2) == 0,
		1+r.IntN(20), 1+r.IntN(4), some(40), 1+r.IntN(3), 1+r.IntN(20), some(40), 1+r.IntN(8), some(10),
		1+r.IntN(mostSlots), some(10), some(20), attempt+some(50), attempt, some(80), r.IntN(2) == 0)
}
