package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// layer is one of the eight optional layers; a plan's subset is a set of them.
type layer uint8

const (
	total layer = 1 << iota
	retrying
	cooling
	breaking
	limiting
	extra
	bulk
	attempt
)

// guards are the layers that admit, in the order in which an attempt asks them.
var guards = []layer{cooling, breaking, limiting, extra, bulk}

var layerNames = map[layer]string{
	total: "timeout", retrying: "retry", cooling: "cooldown", breaking: "breaker",
	limiting: "ratelimit", extra: "guard", bulk: "bulkhead", attempt: "attempt-timeout",
}

func (l layer) String() string {
	var names []string
	for bit := total; bit != 0; bit <<= 1 {
		if l&bit != 0 {
			names = append(names, layerNames[bit])
		}
	}
	return strings.Join(names, "+")
}

// What the real leaves of every plan are set to. No two ends fall together, except where a scenario wants it.
const (
	totalLimit    = 1500 * time.Millisecond
	attemptLimit  = 1000 * time.Millisecond
	maxAttempts   = 3
	backoff       = 100 * time.Millisecond
	maxRetryAfter = 600 * time.Millisecond
	work          = 10 * time.Millisecond // what fn takes where nothing else is said
)

// plan is a pipeline of the matrix.
type plan struct {
	layers    layer
	outside   bool // BreakerOutsideRetry
	onFull    bool // RetryOnBulkheadFull
	onLimited bool // RetryOnRateLimited
	mapping   mapping
}

func (p plan) has(l layer) bool { return p.layers&l != 0 }

func (p plan) String() string {
	return fmt.Sprintf("[%v] breaker outside: %v, retry on full: %v, on limited: %v, OnRejected: %v",
		p.layers, p.outside, p.onFull, p.onLimited, p.mapping)
}

// mapping is what OnRejected does.
type mapping uint8

const (
	noMapper mapping = iota
	mapsPlain
	mapsNil
	mapsVeto // the mapper's own error says Rejected() false
)

func (m mapping) String() string {
	return [...]string{"none", "a domain error", "nil", "an error that says it is no rejection"}[m]
}

func (m mapping) answer() error {
	switch m {
	case mapsPlain:
		return errMapped
	case mapsVeto:
		return errVeto
	}
	return nil
}

// The errors of the matrix. Each has a name, so that traces can be compared.
type named string

func (n *named) Error() string { return string(*n) }

func newNamed(name string) *named { return (*named)(&name) }

var (
	errLeft   = newNamed("the caller left")
	errDue    = newNamed("the caller's deadline")
	errMapped = newNamed("mapped")
	errVeto   = &vetoError{}
	errOpen   = &refusal{name: "open", wait: 300 * time.Millisecond}
)

type vetoError struct{}

func (*vetoError) Error() string  { return "veto" }
func (*vetoError) Rejected() bool { return false }

// refusal is what a guard, or a nested pipeline, refuses with.
type refusal struct {
	name string
	wait time.Duration
	most bool // the wait is an upper bound, as every bulkhead's: for headers only
}

func (e *refusal) UpperBound() bool { return e.most }

func (e *refusal) Error() string                     { return e.name }
func (e *refusal) Rejected() bool                    { return true }
func (e *refusal) RetryAfter() (time.Duration, bool) { return e.wait, e.wait > 0 }

// asked is a failure that asks for a wait, and judges itself where it has a verdict.
type asked struct {
	name  string
	wait  time.Duration
	judge func(leaf.Outcome) leaf.Outcome
}

func (e *asked) Error() string                     { return e.name }
func (e *asked) RetryAfter() (time.Duration, bool) { return e.wait, true }
func (e *asked) Judge(o leaf.Outcome) leaf.Outcome {
	if e.judge == nil {
		return o
	}
	return e.judge(o)
}

const (
	boom       = "boom"
	settleBoom = "settle boom"
	hookBoom   = "hook boom"
)

// then is how a step ends, where it is not with its error.
type then uint8

const (
	_ then = iota
	panics
	exits // runtime.Goexit
)

// step is what a guard or fn does once. The zero step admits, or succeeds, at once.
type step struct {
	takes    time.Duration
	heeds    bool          // it looks at its ctx meanwhile
	says     bool          // fn: when ctx ended it, it returns ctx.Err() instead of err
	leavesIn time.Duration // the caller goes away after so long; 0 = not
	leaves   bool          // the caller goes away at the end of the step
	then     then
	err      error // a guard's refusal, fn's failure
}

// scenario is what happens around a call, whatever its layers are.
type scenario struct {
	name     string
	needs    layer // where the plan lacks one of these, there is nothing new to see
	deadline time.Duration
	gone     bool          // the caller has gone before it calls
	overdue  bool          // its deadline has passed before it calls
	leavesAt time.Duration // the caller goes away at this instant; 0 = not
	guard    map[layer][]step
	looks    map[layer][]error // what Peek says after run 1, 2, …
	opensAt  time.Duration     // from then on the breaker's Peek says errOpen; 0 = never
	fn       []step            // the last one repeats; none = success
	broke    bool              // the retry budget is empty
	refuses  bool              // a guard refuses: OnRejected and the opt-ins matter

	settlePanics []layer

	known []error // all of the above's errors
}

func (s *scenario) run(n int) step {
	if len(s.fn) == 0 {
		return step{takes: work}
	}
	return s.fn[min(n, len(s.fn))-1]
}

func (s *scenario) ask(l layer, n int) step {
	if steps := s.guard[l]; n <= len(steps) {
		return steps[n-1]
	}
	return step{}
}

func (s *scenario) peek(l layer, runs int, now time.Duration) error {
	if l == breaking && s.opensAt > 0 && now >= s.opensAt {
		return errOpen
	}
	if looks := s.looks[l]; runs >= 1 && runs <= len(looks) {
		return looks[runs-1]
	}
	return nil
}

func (s *scenario) learn() {
	add := func(err error) {
		if err != nil && !slices.Contains(s.known, err) {
			s.known = append(s.known, err)
		}
	}
	for _, err := range []error{errLeft, errDue, errMapped, errVeto, errOpen, pipeline.ErrPanicked} {
		add(err)
	}
	for _, l := range guards {
		for _, st := range s.guard[l] {
			add(st.err)
		}
		for _, err := range s.looks[l] {
			add(err)
		}
	}
	for _, st := range s.fn {
		add(st.err)
	}
}

func (s *scenario) nameOf(err error) string {
	if !reflect.TypeOf(err).Comparable() {
		return ""
	}
	if i := slices.Index(s.known, err); i >= 0 {
		return "<" + err.Error() + ">"
	}
	return ""
}

// tell is all that matters of an error: its name where it is one of the scenario's, unchanged; else what errors.Is and
// errors.As find in it, and what package rejection says of it.
func (s *scenario) tell(err error) string {
	if err == nil {
		return ""
	}
	if name := s.nameOf(err); name != "" {
		return name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{reaches %v", s.reach(err))
	for _, sentinel := range []struct {
		name string
		err  error
	}{{"canceled", context.Canceled}, {"deadline", context.DeadlineExceeded}, {"timeout", timeout.ErrTimeout}} {
		if errors.Is(err, sentinel.err) {
			fmt.Fprintf(&b, ", is %s", sentinel.name)
		}
	}
	if e, ok := errors.AsType[*timeout.Error](err); ok {
		fmt.Fprintf(&b, ", limit %s %v", e.Name, e.Limit)
	}
	if e, ok := errors.AsType[*retry.Error](err); ok {
		fmt.Fprintf(&b, ", retry %v after %d, wait %v, last %v, stop %v", e.Reason, e.Attempts, e.Wait, s.reach(e.Last), s.reach(e.Stop))
	}
	if e, ok := errors.AsType[*pipeline.RanError](err); ok {
		fmt.Fprintf(&b, ", ran %v", s.reach(e.Err))
	}
	if rejection.Is(err) {
		b.WriteString(", rejection")
	}
	if wait, ok := rejection.RetryAfter(err); ok {
		fmt.Fprintf(&b, ", retry after %v", wait)
	}
	return b.String() + "}"
}

// reach is the names of the scenario's errors in err's tree.
func (s *scenario) reach(err error) []string {
	var names []string
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		if name := s.nameOf(err); name != "" {
			names = append(names, name)
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			walk(u.Unwrap())
		case interface{ Unwrap() []error }:
			for _, err := range u.Unwrap() {
				walk(err)
			}
		}
	}
	walk(err)
	slices.Sort(names)
	return slices.Compact(names)
}
