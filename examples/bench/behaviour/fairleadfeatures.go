package main

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/pipeline"
)

// asksForPause is an error that carries the other side's Retry-After.
type asksForPause struct{ error }

func (asksForPause) RetryAfter() (time.Duration, bool) { return time.Minute, true }

type tenant struct{}

func fairleadFeatures() map[string]func() bool {
	base := pipeline.For("probe")
	ok := func(context.Context) error { return nil }
	return map[string]func() bool{
		fallbackFeature: func() bool {
			v, err := pipeline.DoOr(background, base.MustBuild(), func(context.Context) (int, error) { return 0, errDown },
				func(context.Context, error) (int, error) { return 7, nil })
			return v == 7 && err == nil
		},
		coolFeature: func() bool {
			p := base.Cooldown(cooldown.MustNew(cooldown.Config{})).MustBuild()
			_ = p.Run(background, func(context.Context) error { return asksForPause{errDown} })
			return !ran(background, func(ctx context.Context, fn func(context.Context) error) error { return p.Run(ctx, fn) }, nil)
		},
		trialFeature: func() bool {
			told := 0
			b := breaker.MustNew(breaker.Config{Consecutive: 1})
			p := base.Breaker(leaf.Shadow(b, func(context.Context, error) { told++ })).MustBuild()
			_ = p.Run(background, fails)
			return p.Run(background, ok) == nil && told == 1 && b.State() == breaker.Open
		},
		tenantFeature: func() bool {
			g := leaf.Keyed(2, func(ctx context.Context) string { s, _ := ctx.Value(tenant{}).(string); return s },
				func(string) (*bulkhead.Bulkhead, error) { return bulkhead.New(bulkhead.Config{MaxConcurrent: 1}) },
				func(b *bulkhead.Bulkhead) bool { return b.InUse() == 0 })
			p := base.With(g).MustBuild()
			a, b := context.WithValue(background, tenant{}, "a"), context.WithValue(background, tenant{}, "b")
			return p.Run(a, func(ctx context.Context) error {
				if p.Run(a, ok) == nil { // a's only slot is taken
					return errDown
				}
				return p.Run(b, ok)
			}) == nil
		},
	}
}
