package pipeline_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// leased is a guard that holds a permit for a limited time.
type leased struct {
	rule
	lease time.Duration
}

func (l *leased) Lease() time.Duration { return l.lease }

// Section 3: Build joins all errors; each names what is wrong and what would be right.
func TestBuildRefuses(t *testing.T) {
	fake, other := clockwork.NewFakeClock(), clockwork.NewFakeClock()
	var noBreaker *breaker.Breaker
	var noRetry *retry.Retry
	g := &rule{}
	tokens := func(hold time.Duration) *retry.Retry {
		return steady(func(c *retry.Config) {
			c.Budget = budget.MustNewTokens(budget.TokenConfig{Capacity: 1, Hold: hold})
		})
	}
	for name, test := range map[string]struct {
		b    pipeline.Builder
		want []string
	}{
		"no name":           {pipeline.For(""), []string{`name is ""`}},
		"nil timeout":       {pipeline.For("p").Timeout(nil), []string{"timeout is a nil *timeout.Timeout"}},
		"nil retry":         {pipeline.For("p").Retry(noRetry), []string{"retry is a nil *retry.Retry"}},
		"nil breaker":       {pipeline.For("p").Breaker(nil), []string{"breaker is nil: want"}},
		"typed nil":         {pipeline.For("p").Breaker(noBreaker), []string{"breaker is a nil *breaker.Breaker"}},
		"nil attempt":       {pipeline.For("p").AttemptTimeout(nil), []string{"attempt-timeout is a nil"}},
		"nil cooldown":      {pipeline.For("p").Cooldown((*cooldown.Cooldown)(nil)), []string{"cooldown is a nil"}},
		"nil limit":         {pipeline.For("p").RateLimit((*ratelimit.Limiter)(nil)), []string{"ratelimit is a nil"}},
		"nil bulkhead":      {pipeline.For("p").Bulkhead((*bulkhead.Bulkhead)(nil)), []string{"bulkhead is a nil"}},
		"nil guard":         {pipeline.For("p").With(g, nil), []string{"With guard 2 is nil: want"}},
		"all at once":       {pipeline.For("").Breaker(nil).Retry(nil).FallbackTimeout(-1), []string{"name", "breaker", "retry", "FallbackTimeout is -1ns"}},
		"order":             {pipeline.For("p").Breaker(g).BreakerOutsideRetry(), []string{"BreakerOutsideRetry", "both a Breaker and a Retry"}},
		"order, no breaker": {pipeline.For("p").Retry(steady()).BreakerOutsideRetry(), []string{"BreakerOutsideRetry"}},
		"opt-in full":       {pipeline.For("p").Retry(steady()).RetryOnBulkheadFull(), []string{"RetryOnBulkheadFull"}},
		"opt-in limited":    {pipeline.For("p").RateLimit(g).RetryOnRateLimited(), []string{"RetryOnRateLimited"}},
		"attempt = total":   {pipeline.For("p").Timeout(limitOf(time.Second)).AttemptTimeout(limitOf(time.Second)), []string{"AttemptTimeout is 1s", "below the total timeout of 1s"}},
		"attempt > total":   {pipeline.For("p").Timeout(limitOf(time.Second)).AttemptTimeout(limitOf(2 * time.Second)), []string{"AttemptTimeout is 2s"}},
		"lease < attempt": {pipeline.For("p").Bulkhead(&leased{lease: time.Second}).Timeout(limitOf(time.Hour)).AttemptTimeout(limitOf(2 * time.Second)),
			[]string{"bulkhead lease is 1s", "2s"}},
		"lease < total": {pipeline.For("p").With(&leased{lease: time.Second}).Timeout(limitOf(time.Minute)), []string{"guard lease is 1s", "1m0s"}},
		"probe lease < attempt": {pipeline.For("p").Breaker(breaker.MustNew(breaker.Config{ProbeLease: time.Second})).AttemptTimeout(limitOf(2 * time.Second)),
			[]string{"breaker lease is 1s"}},
		"probe lease < total, outside": {pipeline.For("p").Retry(steady()).Breaker(breaker.MustNew(breaker.Config{ProbeLease: time.Second})).BreakerOutsideRetry().
			Timeout(limitOf(10 * time.Second)).AttemptTimeout(limitOf(500 * time.Millisecond)), []string{"breaker lease is 1s", "10s"}},
		"hold":        {pipeline.For("p").Retry(tokens(3 * time.Second)).AttemptTimeout(limitOf(2 * time.Second)), []string{"Hold is 3s", "more than 1s above"}},
		"nine guards": {pipeline.For("p").Breaker(g).With(g, g, g, g, g, g, g).Bulkhead(g), []string{"number of guards is 9", "at most 8"}},
		"two clocks": {pipeline.For("p").
			Breaker(breaker.MustNew(breaker.Config{Clock: fake})).
			RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1, Clock: other})), []string{"the clock of ratelimit", "the clock of breaker"}},
		"real and fake": {pipeline.For("p").Timeout(limitOf(time.Second)).
			Breaker(breaker.MustNew(breaker.Config{Clock: fake})), []string{"the clock of breaker", "real time"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := test.b.Build()
			require.Nil(t, p)
			require.Error(t, err)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
			require.Panics(t, func() { test.b.MustBuild() })
		})
	}
}

// One mistake hides no other one, and makes no second one of itself.
func TestBuildNamesEveryMistakeOnce(t *testing.T) {
	fake, other := clockwork.NewFakeClock(), clockwork.NewFakeClock()
	limiter := ratelimit.MustNew(ratelimit.Config{Rate: 1, Clock: fake})
	for name, test := range map[string]struct {
		b    pipeline.Builder
		want []string
	}{
		"beside nil layers": {
			pipeline.For("billing").FallbackTimeout(-1).Breaker(nil).With(nil).Retry(nil).BreakerOutsideRetry().RetryOnBulkheadFull().
				Timeout(limitOf(time.Second)).AttemptTimeout(limitOf(time.Minute)).RateLimit(limiter),
			[]string{
				"FallbackTimeout is -1ns: want a positive duration (0 = 1s)",
				"retry is a nil *retry.Retry: want a layer (leave the method out for none)",
				"breaker is nil: want a layer (leave the method out for none)",
				"With guard 1 is nil: want a guard",
				"RetryOnBulkheadFull is set: want both a Bulkhead and a Retry",
				"AttemptTimeout is 1m0s: want below the total timeout of 1s",
				"the clock of ratelimit is a *clockwork.FakeClock: want the clock of timeout, real time",
			},
		},
		"a lease beside timeouts that contradict each other": {
			pipeline.For("billing").Timeout(limitOf(time.Second)).AttemptTimeout(limitOf(time.Minute)).Bulkhead(&leased{lease: 2 * time.Second}),
			[]string{"AttemptTimeout is 1m0s: want below the total timeout of 1s"},
		},
		"a nil beside a lease": {
			pipeline.For("billing").Cooldown((*cooldown.Cooldown)(nil)).Timeout(limitOf(time.Minute)).Bulkhead(&leased{lease: time.Second}),
			[]string{
				"cooldown is a nil *cooldown.Cooldown: want a layer (leave the method out for none)",
				"bulkhead lease is 1s: want at least the 1m0s that the timeouts let a call last",
			},
		},
		"one clock that differs, the first": {
			pipeline.For("billing").Timeout(timeout.MustNew(timeout.Config{Limit: time.Minute, Clock: fake})).Retry(steady()).
				Breaker(breaker.MustNew(breaker.Config{})).AttemptTimeout(limitOf(time.Second)),
			[]string{"the clock of timeout is a *clockwork.FakeClock: want the clock of retry, real time"},
		},
		"two of a type": {
			pipeline.For("billing").Breaker(breaker.MustNew(breaker.Config{Clock: other})).RateLimit(limiter),
			[]string{"the clock of ratelimit is another *clockwork.FakeClock: want the clock of breaker, a *clockwork.FakeClock"},
		},
		"a clock in a Shadow": {
			pipeline.For("billing").Breaker(leaf.Shadow(breaker.MustNew(breaker.Config{Clock: other}), nil)).Retry(steady()),
			[]string{"the clock of breaker is a *clockwork.FakeClock: want the clock of retry, real time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.b.Build()
			require.EqualError(t, err, "pipeline \"billing\": "+strings.Join(test.want, "\npipeline \"billing\": "))
		})
	}
}

func TestBuildAccepts(t *testing.T) {
	fake := clockwork.NewFakeClock()
	g := &rule{}
	for name, b := range map[string]pipeline.Builder{
		"nothing but a name": pipeline.For("p"),
		"eight guards":       pipeline.For("p").Breaker(g).With(g, g, g, g, g, g).Bulkhead(g),
		"lease unchecked":    pipeline.For("p").Bulkhead(&leased{lease: 1}),
		"lease enough":       pipeline.For("p").Bulkhead(&leased{lease: time.Second}).AttemptTimeout(limitOf(time.Second)),
		"default lease":      pipeline.For("p").Breaker(breaker.MustNew(breaker.Config{})).AttemptTimeout(limitOf(time.Hour)),
		"replaced nil":       pipeline.For("p").Breaker(nil).Breaker(g),
		"one clock": pipeline.For("p").Breaker(breaker.MustNew(breaker.Config{Clock: fake})).
			RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1, Clock: fake})),
		"real by name": pipeline.For("p").Timeout(limitOf(time.Second)).
			Breaker(breaker.MustNew(breaker.Config{Clock: clockwork.NewRealClock()})),
		"unused clock": pipeline.For("p").Breaker(breaker.MustNew(breaker.Config{Clock: fake})).
			Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})),
		"unset mappers": pipeline.For("p").OnRejected(nil).Observe(nil),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := b.Build()
			require.NoError(t, err)
			require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
		})
	}
}

// Two branches of one base never touch each other; setting a layer again replaces it, With alone appends.
func TestBuilderIsAValue(t *testing.T) {
	var j journal
	r := func(name string) leaf.Guard { return &rule{name: name, log: &j} }
	base := pipeline.For("base").With(r("a"), r("b"), r("c"))
	left := base.With(r("left")).Bulkhead(r("old")).Bulkhead(r("new"))
	right := base.With(r("right"))
	fn := func(context.Context) error { return nil }
	acquired := func(p *pipeline.Pipeline) (names []string) {
		j.lines = nil
		require.NoError(t, p.Run(t.Context(), fn))
		for _, l := range j.lines {
			if name, ok := strings.CutPrefix(l, "acquire "); ok {
				names = append(names, name)
			}
		}
		return names
	}
	pl, pr, pb := left.MustBuild(), right.MustBuild(), base.MustBuild()
	require.Equal(t, []string{"a", "b", "c", "left", "new"}, acquired(pl))
	require.Equal(t, []string{"a", "b", "c", "right"}, acquired(pr))
	require.Equal(t, []string{"a", "b", "c"}, acquired(pb))
}

func TestStringAndDescribe(t *testing.T) {
	b := pipeline.For("billing").
		Timeout(timeout.MustNew(timeout.Config{Name: "all", Limit: 2 * time.Second})).
		Retry(steady(func(c *retry.Config) { c.Name = "thrice" })).
		Cooldown(cooldown.MustNew(cooldown.Config{Name: "429"})).
		Breaker(breaker.MustNew(breaker.Config{Name: "bank"})).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Name: "quota", Rate: 1})).
		With(&rule{}).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "slots", MaxConcurrent: 1})).
		AttemptTimeout(limitOf(500 * time.Millisecond))
	p := b.MustBuild()
	require.Equal(t, "billing", p.Name())
	require.Equal(t, `billing: timeout "all" 2s > retry "thrice" > cooldown "429" > breaker "bank" > ratelimit "quota" > guard > `+
		`bulkhead "slots" > attempt-timeout 500ms > fn`, p.String())
	require.Equal(t, pipeline.Description{Name: "billing", Layers: []pipeline.Layer{
		{Kind: "timeout", Name: "all"}, {Kind: "breaker", Name: "bank"}, {Kind: "retry", Name: "thrice"}, {Kind: "cooldown", Name: "429"},
		{Kind: "ratelimit", Name: "quota"}, {Kind: "guard"}, {Kind: "bulkhead", Name: "slots"}, {Kind: "attempt-timeout"},
	}}, b.BreakerOutsideRetry().MustBuild().Describe())
	require.Equal(t, "p: fn", pipeline.For("p").MustBuild().String())
}

// Update swaps the plan whole: calls that have begun keep theirs; on an error nothing changes.
func TestUpdateSwapsThePlanForLaterCalls(t *testing.T) {
	before, after := &rule{}, &rule{}
	p := pipeline.For("p").Bulkhead(before).MustBuild()
	require.ErrorContains(t, p.Update(pipeline.For("q").Bulkhead(after)), `name is "q": want "p"`)
	require.Error(t, p.Update(pipeline.For("p").Bulkhead(nil)))
	require.NoError(t, p.Run(t.Context(), func(ctx context.Context) error {
		require.NoError(t, p.Update(pipeline.For("p").Bulkhead(after)))
		require.Empty(t, before.told)
		return p.Run(ctx, func(context.Context) error { return nil })
	}))
	require.Len(t, before.told, 1)
	require.Len(t, after.told, 1)
}

// The zero Pipeline is no plan, and a plain call.
func TestZeroPipelineIsAPlainCall(t *testing.T) {
	var p pipeline.Pipeline
	v, err := pipeline.Do(t.Context(), &p, fails(0, nil))
	require.NoError(t, err)
	require.Equal(t, 1, v)
	require.Empty(t, p.Name())
}
