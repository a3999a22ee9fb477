package registry

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
)

// retrySpec is one retry as it was configured.
type retrySpec struct {
	entry
	cfg        retry.Config
	wait       time.Duration // of the first delay
	multiplier float64
	jitter     string
	added      time.Duration // by the jitter, at most; 0 = it is of another kind
	retryOn    matchers
	stopOn     matchers
	budget     string // "" = private, noBudget, or a name
}

const noBudget = "none"

// The ladder's defaults, which a function (retry.Exponential) holds; a test compares.
const (
	defaultWait       = 100 * time.Millisecond
	defaultMultiplier = 2
)

const mostAttempts = 64

var retryKind = &kind[retrySpec, *retry.Retry]{
	section: "retry",
	open:    true,
	entry:   func(s *retrySpec) *entry { return &s.entry },
	keys: []key[retrySpec]{
		worded(wholeKey("max-attempts", 1, mostAttempts, attemptsOf), "unlimited", attemptsOf),
		durationKey("wait-duration", orZero, func(s *retrySpec) *time.Duration { return &s.wait }),
		decimalKey("backoff-multiplier", 1, math.MaxFloat64, "a number from 1", func(s *retrySpec) *float64 { return &s.multiplier }),
		durationKey("max-wait", positive, func(s *retrySpec) *time.Duration { return &s.cfg.MaxDelay }),
		{name: "jitter", read: readJitter, show: func(s *retrySpec) string { return s.jitter }},
		defaulting("all", matchersKey("retry-on", func(s *retrySpec) *matchers { return &s.retryOn })),
		matchersKey("stop-on", func(s *retrySpec) *matchers { return &s.stopOn }),
		durationKey("max-retry-after", positive, func(s *retrySpec) *time.Duration { return &s.cfg.MaxRetryAfter }),
		zero(durationKey("max-elapsed", positive, func(s *retrySpec) *time.Duration { return &s.cfg.MaxElapsed }), ""),
		zero(durationKey("reserve", positive, func(s *retrySpec) *time.Duration { return &s.cfg.Reserve }), ""),
		{name: "budget", read: nameKey("", func(s *retrySpec) *string { return &s.budget }).read, show: showBudget},
		boolKey("return-last", func(s *retrySpec) *bool { return &s.cfg.ReturnLast }),
		boolKey("retry-nested", func(s *retrySpec) *bool { return &s.cfg.RetryNested }),
		boolKey("strict", func(s *retrySpec) *bool { return &s.cfg.Strict }),
	},
	check: checkRetry,
	make: func(e *env, s *retrySpec) (*retry.Retry, error) {
		return retry.New(s.config(e))
	},
	update: func(e *env, r *retry.Retry, s *retrySpec) error { return r.Update(s.config(e)) },
	inForce: func(r *retry.Retry, s *retrySpec) retrySpec {
		now := *s
		now.cfg = r.Config()
		return now
	},
	inspect: inspectRetry,
}

// showBudget shows the private budget by what it grants: nobody named it, and it is there.
func showBudget(s *retrySpec) string {
	if own, ok := s.cfg.Budget.(*budget.Ratio); ok && s.budget == "" {
		c := own.Config()
		return fmt.Sprintf("its own: ratio %s, min-per-second %d, ttl %v", float(c.Ratio), c.MinPerSecond, c.TTL)
	}
	return s.budget
}

// inspectRetry is what its budget, private or named, has left.
func inspectRetry(r *retry.Retry) (leaf.Snapshot, bool) {
	b, ok := r.Config().Budget.(interface{ Balance() int })
	if !ok {
		return leaf.Snapshot{}, false
	}
	return balance(b.Balance()), true
}

func attemptsOf(s *retrySpec) *int { return &s.cfg.MaxAttempts }

// readJitter is full, equal or none; a share of the delay, such as 25%; or a duration that is added at most.
func readJitter(d *decoder, a at, s *retrySpec) {
	const want = "full, equal, none, a share such as 25%%, or a duration"
	text, ok := a.plain()
	if !ok || text == "" {
		d.bad(a, want)
		return
	}
	s.jitter = text
	words := map[string]retry.Jitter{"full": retry.Full, "equal": retry.Equal, "none": retry.None}
	if j, ok := words[text]; ok {
		s.cfg.Jitter = j
		return
	}
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		share := at{path: a.path, node: scalar("!!float", percent)}
		var quiet decoder
		f, ok := quiet.decimal(share, 0, 100, "")
		if !ok {
			d.bad(a, "a share from 0%% to 100%%")
			return
		}
		s.cfg.Jitter = retry.Proportional(f / 100)
		return
	}
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz-_") == "" {
		d.bad(a, want)
		return
	}
	if v, ok := d.duration(a, orZero); ok {
		s.cfg.Jitter = retry.Additive(v)
		s.jitter, s.added = v.String(), v
	}
}

var retryFields = map[string]string{
	"MaxAttempts": "max-attempts", "Backoff": "wait-duration", "Jitter": "jitter", "MaxDelay": "max-wait",
	"MaxRetryAfter": "max-retry-after", "MaxElapsed": "max-elapsed", "Reserve": "reserve", "RetryIf": "retry-on",
	"Budget": "budget", "Strict": "strict",
}

func checkRetry(d *decoder, s *retrySpec) {
	s.cfg.Name = s.name
	if !s.has("wait-duration") {
		s.wait = defaultWait
	}
	if !s.has("backoff-multiplier") {
		s.multiplier = defaultMultiplier
	}
	if !s.has("jitter") {
		s.jitter = "full"
	}
	s.cfg.Backoff = retry.ExponentialBy(s.wait, s.multiplier)
	s.cfg.RetryIf, s.cfg.StopIf = s.retryOn.any, s.stopOn.any
	s.cfg.NoBudget = s.budget == noBudget
	if s.has("max-wait") && s.cfg.MaxDelay < s.wait {
		d.bad(s.place("max-wait"), "at least wait-duration, %v", s.wait)
		return
	}
	trial := s.cfg
	if s.budget != "" && s.budget != noBudget {
		trial.Budget = standIn // whether there is one of that name is asked later
	}
	made, err := retry.New(trial)
	if err != nil {
		d.translate(&s.entry, "retry", retryFields, err)
		return
	}
	s.checkCap(d, made.Config().MaxDelay)
}

// checkCap finds what the cap would cut unseen: nobody who writes 30s means the 20s that max-wait is where it is not written.
func (s *retrySpec) checkCap(d *decoder, most time.Duration) {
	want := fmt.Sprintf("at most max-wait, %v", most)
	if !s.has("max-wait") {
		want = fmt.Sprintf("at most %v, which max-wait is by default, or a max-wait as well", most)
	}
	if s.wait > most {
		d.bad(s.place("wait-duration"), "%s", want)
	}
	if s.added > most {
		d.bad(s.place("jitter"), "%s", want)
	}
}

var standIn = budget.MustNewRatio(budget.RatioConfig{})

// config is the leaf's, with what the document cannot say.
func (s *retrySpec) config(e *env) retry.Config {
	cfg := s.cfg
	cfg.OnRetry, cfg.RetryAfter, cfg.Clock, cfg.Rand = e.onRetry, e.retryAfter, e.clock, e.rand
	if s.budget != "" && s.budget != noBudget {
		if b := e.budget(s.budget).Retry; b != nil {
			cfg.Budget = b
		}
	}
	return cfg
}
