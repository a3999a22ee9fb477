package pipeline_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// A guard of the user's that embeds one of this module's has its methods, also those by which the pipeline shares a reading of
// the clock. It is asked and told by its own all the same.

type strictLimiter struct {
	*ratelimit.Limiter
	asked int
}

var errMine = errors.New("mine: refused")

func (g *strictLimiter) Acquire(context.Context) (leaf.Permit, error) {
	g.asked++
	return leaf.Permit{}, errMine
}

type auditedBreaker struct {
	*breaker.Breaker
	asked, told int
}

func (g *auditedBreaker) Acquire(ctx context.Context) (leaf.Permit, error) {
	g.asked++
	if _, err := g.Breaker.Acquire(ctx); err != nil {
		return leaf.Permit{}, err
	}
	return leaf.NewPermit(g, 7), nil
}

func (g *auditedBreaker) Settle(context.Context, uint64, leaf.Outcome) error {
	g.told++
	return nil
}

type countedBulkhead struct { // by value: not even comparable by identity
	*bulkhead.Bulkhead
	asked *int
	_     []int
}

func (g countedBulkhead) Acquire(ctx context.Context) (leaf.Permit, error) {
	*g.asked++
	return g.Bulkhead.Acquire(ctx)
}

func TestAGuardThatEmbedsOneOfOursIsAskedItself(t *testing.T) {
	ok := func(context.Context) error { return nil }
	limiter := &strictLimiter{Limiter: ratelimit.MustNew(ratelimit.Config{Rate: 100})}
	require.ErrorIs(t, pipeline.For("p").RateLimit(limiter).MustBuild().Run(t.Context(), ok), errMine)
	require.Equal(t, 1, limiter.asked)

	asked := 0
	for name, b := range map[string]pipeline.Builder{
		"untimed": pipeline.For("p"), "timed": pipeline.For("p").AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 1e9})),
	} {
		audited, before := &auditedBreaker{Breaker: breaker.MustNew(breaker.Config{})}, asked
		slots := countedBulkhead{Bulkhead: bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1}), asked: &asked}
		p := b.Breaker(audited).Bulkhead(slots).MustBuild()
		for range 3 {
			require.NoError(t, p.Run(t.Context(), ok))
		}
		require.Equal(t, []int{3, 3, 3}, []int{audited.asked, audited.told, asked - before}, name)
	}
}

type nameless struct{ rule }

func (*nameless) Inspect() leaf.Snapshot { panic("nothing to show") }

func TestAnInspectThatPanicsHidesNoOtherLayer(t *testing.T) {
	p := pipeline.For("p").Breaker(&nameless{}).Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "b", MaxConcurrent: 1})).MustBuild()
	require.Equal(t, []pipeline.Layer{{Kind: "breaker"}, {Kind: "bulkhead", Name: "b"}}, p.Describe().Layers)
	require.Equal(t, `p: breaker > bulkhead "b" > fn`, p.String())
}
