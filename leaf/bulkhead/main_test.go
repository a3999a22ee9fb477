package bulkhead

import (
	"context"
	"testing"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

// held takes a slot that must be free, and returns how to give it back.
func held(t *testing.T, b *Bulkhead) (settle func()) {
	t.Helper()
	p, err := b.Acquire(bg)
	require.NoError(t, err)
	return func() { require.NoError(t, p.Settle(bg, leaf.Outcome{})) }
}

// hold takes as many slots as there are, which must be n.
func hold(t *testing.T, b *Bulkhead, n int) (settle []func()) {
	t.Helper()
	for range n {
		settle = append(settle, held(t, b))
	}
	_, err := b.TryAcquire(bg)
	require.ErrorIs(t, err, ErrFull)
	return settle
}
