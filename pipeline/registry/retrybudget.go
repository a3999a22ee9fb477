package registry

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
)

// anyBudget is a retry budget of either kind: one of the two fields is set.
type anyBudget struct {
	budget.Retry
	ratio  *budget.Ratio
	tokens *budget.Tokens
}

// budgetSpec is one retry budget as it was configured: the ratio of first attempts, or an absolute pool where it has a capacity.
type budgetSpec struct {
	entry
	ratio  budget.RatioConfig
	tokens budget.TokenConfig
}

func (s *budgetSpec) pool() bool { return s.tokens.Capacity > 0 || s.has("capacity") }

var (
	ratioKeys = []string{"ratio", "min-per-second", "ttl"}
	poolKeys  = []string{"capacity", "refill", "per", "hold"}
)

var budgetKind = &kind[budgetSpec, anyBudget]{
	section: "retry-budget",
	entry:   func(s *budgetSpec) *entry { return &s.entry },
	keys: []key[budgetSpec]{
		shownIf(false, worded(decimalKey("ratio", math.SmallestNonzeroFloat64, 1000, "a number above 0 and at most 1000", func(s *budgetSpec) *float64 { return &s.ratio.Ratio }), "off", func(s *budgetSpec) *float64 { return &s.ratio.Ratio })),
		shownIf(false, worded(wholeKey("min-per-second", 1, math.MaxInt, func(s *budgetSpec) *int { return &s.ratio.MinPerSecond }), "off", func(s *budgetSpec) *int { return &s.ratio.MinPerSecond })),
		shownIf(false, durationKey("ttl", positive, func(s *budgetSpec) *time.Duration { return &s.ratio.TTL })),
		shownIf(true, wholeKey("capacity", 1, math.MaxInt, func(s *budgetSpec) *int { return &s.tokens.Capacity })),
		shownIf(true, wholeKey("refill", 0, math.MaxInt, func(s *budgetSpec) *int { return &s.tokens.Refill })),
		shownIf(true, durationKey("per", positive, func(s *budgetSpec) *time.Duration { return &s.tokens.Per })),
		shownIf(true, durationKey("hold", positive, func(s *budgetSpec) *time.Duration { return &s.tokens.Hold })),
	},
	check: checkBudget,
	make: func(e *env, s *budgetSpec) (anyBudget, error) {
		if s.pool() {
			cfg := s.tokens
			cfg.Clock = e.clock
			t, err := budget.NewTokens(cfg)
			return anyBudget{Retry: t, tokens: t}, err
		}
		cfg := s.ratio
		cfg.Clock = e.clock
		r, err := budget.NewRatio(cfg)
		return anyBudget{Retry: r, ratio: r}, err
	},
	update: func(e *env, b anyBudget, s *budgetSpec) error {
		if b.tokens != nil {
			cfg := s.tokens
			cfg.Clock = e.clock
			return b.tokens.Update(cfg)
		}
		cfg := s.ratio
		cfg.Clock = e.clock
		return b.ratio.Update(cfg)
	},
	fixed: func(was, s *budgetSpec) (string, string) {
		switch {
		case was.pool() == s.pool():
			return "", ""
		case was.pool():
			return "capacity", "a capacity"
		}
		return "capacity", "no capacity"
	},
	inForce: func(b anyBudget, s *budgetSpec) budgetSpec {
		now := *s
		if b.tokens != nil {
			now.tokens = b.tokens.Config()
		} else {
			now.ratio = b.ratio.Config()
		}
		return now
	},
	inspect: func(b anyBudget) (leaf.Snapshot, bool) {
		n := 0
		if b.tokens != nil {
			n = b.tokens.Balance()
		} else {
			n = b.ratio.Balance()
		}
		return balance(n), true
	},
}

// balanceGauge says how many retries a budget would grant now: of a gauge without a limit, the one whose 0 says most.
const balanceGauge = "balance"

func balance(n int) leaf.Snapshot {
	return leaf.Snapshot{Gauges: []leaf.Gauge{{Name: balanceGauge, Value: float64(n)}}}
}

// shownIf leaves out the keys of the other kind of budget.
func shownIf(pool bool, k key[budgetSpec]) key[budgetSpec] {
	show := k.show
	k.show = func(s *budgetSpec) string {
		if s.pool() != pool {
			return ""
		}
		return show(s)
	}
	return k
}

func checkBudget(d *decoder, s *budgetSpec) {
	if s.name == noBudget {
		d.add(errors.New(s.at.path + " is named none: want another name, none is no budget at all"))
	}
	others := poolKeys
	_, errRatio := budget.NewRatio(s.ratio)
	errTokens := error(nil)
	if s.pool() {
		others = ratioKeys
		errRatio = nil
		_, errTokens = budget.NewTokens(s.tokens)
		if s.has("per") && s.tokens.Refill == 0 {
			d.bad(s.place("per"), "a refill as well: by default it is 0, and nothing flows in")
		}
	}
	for name, a := range s.set {
		if slices.Contains(others, name) {
			d.bad(a, "either a ratio budget (ratio, min-per-second, ttl) or a pool (capacity, refill, per, hold)")
		}
	}
	d.translate(&s.entry, "budget", map[string]string{"Ratio": "ratio", "MinPerSecond": "min-per-second", "TTL": "ttl"}, errRatio)
	d.translate(&s.entry, "budget", map[string]string{"Capacity": "capacity", "Refill": "refill", "Per": "per", "Hold": "hold"}, errTokens)
}
