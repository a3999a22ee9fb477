package breaker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

type host struct{}

func at(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, host{}, name)
}

// What leaf.Keyed's doc says of breakers: nobody probes a host that is not called any more, so a half-open circuit is nothing to
// wait for; an open one still refuses, and is kept.
func TestKeyedBreakersOfDeadHostsMakeRoomAgain(t *testing.T) {
	for name, c := range map[string]struct {
		idle    func(*Breaker) bool
		forGood bool
	}{
		"not open":          {func(b *Breaker) bool { return b.State() != Open }, false},
		"closed, the wrong": {func(b *Breaker) bool { return b.State() == Closed }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := leaf.Keyed(3, func(ctx context.Context) string { return ctx.Value(host{}).(string) },
				func(name string) (*Breaker, error) { return New(Config{Name: name, Consecutive: 1}) }, c.idle)
			to := func(name string, err error) error {
				_, got := leaf.Do(at(t.Context(), name), g, func(context.Context) (int, error) { return 0, err })
				return got
			}
			down := errors.New("down")
			for _, dead := range []string{"a", "b", "c"} {
				require.Equal(t, down, to(dead, down))
			}
			require.ErrorIs(t, to("a", nil), ErrOpen, name)
			require.True(t, refusal.Is(to("alive", nil)), "%s: open circuits are not forgotten", name)
			<-time.After(5 * time.Second)
			require.Equal(t, c.forGood, refusal.Is(to("alive", nil)), name)
			<-time.After(24 * time.Hour)
			require.Equal(t, c.forGood, refusal.Is(to("another", nil)), name)
		})
	}
}
