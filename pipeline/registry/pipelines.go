package registry

import (
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// pipelineSpec is one pipeline as it was configured: names of instances.
type pipelineSpec struct {
	entry
	total, attempt                            limitRef
	retry, cooldown, breaker, limit, bulkhead string
	outside, retryFull, retryLimited          bool
	fallback                                  time.Duration
	base                                      pipeline.Builder // with what the program adds
}

// limitRef is a time limiter's name, or a limit of the pipeline's own.
type limitRef struct {
	name  string
	limit time.Duration
}

func limitKey(name string, field func(*pipelineSpec) *limitRef) key[pipelineSpec] {
	return key[pipelineSpec]{name: name,
		read: func(d *decoder, a at, s *pipelineSpec) {
			text, ok := a.plain()
			if ok && a.node.Tag != "!!bool" && text != "" && !durationLike(text) {
				field(s).name = text
			} else if v, ok := d.duration(a, positive); ok {
				field(s).limit = v
			}
		},
		show: func(s *pipelineSpec) string {
			switch ref := field(s); {
			case ref.name != "":
				return ref.name
			case ref.limit > 0:
				return ref.limit.String()
			}
			return ""
		},
	}
}

// durationLike says that text is meant as a duration, right or wrong: a name must not begin like one.
func durationLike(text string) bool {
	_, err := parseDuration(text)
	_, calendar := errors.AsType[unfixedError](err)
	return text[0] >= '0' && text[0] <= '9' || text[0] == '.' || text[0] == '-' || calendar || err == nil
}

const outsideRetry = "outside-retry"

var pipelineKeys = []key[pipelineSpec]{
	limitKey("timeout", func(s *pipelineSpec) *limitRef { return &s.total }),
	nameKey("retry", func(s *pipelineSpec) *string { return &s.retry }),
	nameKey("cooldown", func(s *pipelineSpec) *string { return &s.cooldown }),
	nameKey("circuit-breaker", func(s *pipelineSpec) *string { return &s.breaker }),
	{name: "breaker", read: func(d *decoder, a at, s *pipelineSpec) {
		i, _ := d.word(a, "inside-retry", outsideRetry)
		s.outside = i == 1
	}, show: func(s *pipelineSpec) string {
		switch {
		case s.outside:
			return outsideRetry
		case s.breaker == "" || s.retry == "":
			return ""
		}
		return "inside-retry"
	}},
	nameKey("rate-limiter", func(s *pipelineSpec) *string { return &s.limit }),
	nameKey("bulkhead", func(s *pipelineSpec) *string { return &s.bulkhead }),
	limitKey("attempt-timeout", func(s *pipelineSpec) *limitRef { return &s.attempt }),
	boolKey("retry-on-bulkhead-full", func(s *pipelineSpec) *bool { return &s.retryFull }),
	boolKey("retry-on-rate-limited", func(s *pipelineSpec) *bool { return &s.retryLimited }),
	durationKey("fallback-timeout", positive, func(s *pipelineSpec) *time.Duration { return &s.fallback }),
}

const defaultFallback = time.Second // of package pipeline; a test compares

// readPipelines decodes the section.
func (doc *document) readPipelines(d *decoder, a at) {
	d.pairs(a, func(name string, v at) {
		if len(doc.pipelines) == mostNames {
			return
		}
		s := &pipelineSpec{entry: entry{name: name, at: v}, fallback: defaultFallback}
		readKeys(d, v, pipelineKeys, s, &s.entry)
		refer(d, doc, s)
		s.base = pipeline.For(name)
		if d.opts.pipeline != nil {
			s.base = d.opts.pipeline(name, s.base)
		}
		doc.pipelines[name], doc.order = s, append(doc.order, name)
	})
	if n := len(a.node.Content) / 2; n > mostNames {
		d.add(fmt.Errorf("%s has %d names: want at most %d", a.path, n, mostNames))
	}
}

// refer checks that what s names exists.
func refer(d *decoder, doc *document, s *pipelineSpec) {
	timeoutKind.refer(d, doc.timeouts, doc.root, s.place("timeout"), s.total.name)
	retryKind.refer(d, doc.retries, doc.root, s.place("retry"), s.retry)
	cooldownKind.refer(d, doc.cooldowns, doc.root, s.place("cooldown"), s.cooldown)
	breakerKind.refer(d, doc.breakers, doc.root, s.place("circuit-breaker"), s.breaker)
	limitKind.refer(d, doc.limits, doc.root, s.place("rate-limiter"), s.limit)
	slotsKind.refer(d, doc.bulkheads, doc.root, s.place("bulkhead"), s.bulkhead)
	timeoutKind.refer(d, doc.timeouts, doc.root, s.place("attempt-timeout"), s.attempt.name)
}

// layers is where a pipeline finds its instances: those of a trial, or those in force.
type layers struct {
	timeout  func(string) *timeout.Timeout
	retry    func(string) *retry.Retry
	cooldown func(string) leaf.Guard
	breaker  func(string) leaf.Guard
	limit    func(string) leaf.Guard
	bulkhead func(string) leaf.Guard
}

// builder puts the layers on the base.
func (s *pipelineSpec) builder(o *options, from layers) (pipeline.Builder, error) {
	b := s.base
	for _, t := range []struct {
		ref limitRef
		set func(*timeout.Timeout) pipeline.Builder
	}{
		{s.total, func(t *timeout.Timeout) pipeline.Builder { return b.Timeout(t) }},
		{s.attempt, func(t *timeout.Timeout) pipeline.Builder { return b.AttemptTimeout(t) }},
	} {
		switch {
		case t.ref.name != "":
			b = t.set(from.timeout(t.ref.name))
		case t.ref.limit > 0:
			own, err := timeout.New(timeout.Config{Name: s.name, Limit: t.ref.limit, Clock: o.clock})
			if err != nil {
				return b, err
			}
			b = t.set(own)
		}
	}
	if s.retry != "" {
		b = b.Retry(from.retry(s.retry))
	}
	if s.cooldown != "" {
		b = b.Cooldown(from.cooldown(s.cooldown))
	}
	if s.breaker != "" {
		b = b.Breaker(from.breaker(s.breaker))
	}
	if s.limit != "" {
		b = b.RateLimit(from.limit(s.limit))
	}
	if s.bulkhead != "" {
		b = b.Bulkhead(from.bulkhead(s.bulkhead))
	}
	if s.outside {
		b = b.BreakerOutsideRetry()
	}
	if s.retryFull {
		b = b.RetryOnBulkheadFull()
	}
	if s.retryLimited {
		b = b.RetryOnRateLimited()
	}
	if s.has("fallback-timeout") {
		b = b.FallbackTimeout(s.fallback)
	}
	return b, nil
}

var pipelineFields = map[string]string{
	"AttemptTimeout": "attempt-timeout", "BreakerOutsideRetry": "breaker", "RetryOnBulkheadFull": "retry-on-bulkhead-full",
	"RetryOnRateLimited": "retry-on-rate-limited", "FallbackTimeout": "fallback-timeout",
	"Breaker": "circuit-breaker", "Retry": "retry", "Bulkhead": "bulkhead", "RateLimit": "rate-limiter",
}

// elsewhere is where the parts of s say what Build compares with the pipeline's times.
func (doc *document) elsewhere(s *pipelineSpec) map[string]at {
	places := map[string]at{}
	if b := doc.bulkheads.specs[s.bulkhead]; b != nil {
		places["bulkhead lease"] = b.place("permit-ttl")
	}
	if b := doc.breakers.specs[s.breaker]; b != nil {
		places["breaker lease"] = b.place("half-open-probe-timeout")
	}
	if r := doc.retries.specs[s.retry]; r != nil {
		if b := doc.budgets.specs[r.budget]; b != nil {
			places["retry budget Hold"] = b.place("hold")
		}
	}
	return places
}

// rest is s without what the trial has no instance of: one wrong part hides nothing of the others. Nor does anything follow from
// what is missing: WithPipeline's base may count on it, and without its attempt timeout a run would seem to last for the total.
func (doc *document) rest(s *pipelineSpec) *pipelineSpec {
	r := *s
	keep := func(made bool, name *string, switches ...*bool) {
		if made {
			return
		}
		*name, r.base = "", pipeline.For(s.name)
		for _, on := range switches {
			*on = false
		}
	}
	keep(in(doc.timeouts.trial, s.total.name), &r.total.name)
	if keep(in(doc.timeouts.trial, s.attempt.name), &r.attempt.name); r.attempt != s.attempt {
		r.total = limitRef{}
	}
	keep(in(doc.retries.trial, s.retry), &r.retry, &r.outside, &r.retryFull, &r.retryLimited)
	keep(in(doc.cooldowns.trial, s.cooldown), &r.cooldown)
	keep(in(doc.breakers.trial, s.breaker), &r.breaker, &r.outside)
	keep(in(doc.limits.trial, s.limit), &r.limit, &r.retryLimited)
	keep(in(doc.bulkheads.trial, s.bulkhead), &r.bulkhead, &r.retryFull)
	return &r
}

func in[T any](all map[string]T, name string) bool {
	_, ok := all[name]
	return ok || name == ""
}

// try builds each pipeline of the document on the instances of its trial.
func (doc *document) try(d *decoder) {
	from := layers{
		timeout:  func(n string) *timeout.Timeout { return doc.timeouts.trial[n] },
		retry:    func(n string) *retry.Retry { return doc.retries.trial[n] },
		cooldown: func(n string) leaf.Guard { return doc.cooldowns.trial[n] },
		breaker:  func(n string) leaf.Guard { return doc.breakers.trial[n] },
		limit:    func(n string) leaf.Guard { return doc.limits.trial[n] },
		bulkhead: func(n string) leaf.Guard { return doc.bulkheads.trial[n] },
	}
	for _, name := range doc.order {
		s := doc.pipelines[name]
		if s.unread {
			continue // what the others mean beside it is not known
		}
		rest := doc.rest(s)
		b, err := rest.builder(d.opts, from)
		if err != nil {
			d.named(s.at, err)
			continue
		}
		p, err := b.Build()
		if err != nil {
			d.translateElsewhere(&s.entry, "pipeline", pipelineFields, doc.elsewhere(rest), err)
		} else if p.Name() != s.name {
			d.add(fmt.Errorf("%s: WithPipeline returned a builder named %q: want the one that it was given", s.at.path, shorten(p.Name())))
		}
	}
}
