package leaf_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// A guard in a package variable sees several bubbles and real time, one after the other. Nothing that it keeps of one may be a
// channel that only that one's goroutines can ask: the runtime ends the program.
func TestKeyedCrossesFromBubbleToBubble(t *testing.T) {
	g := leaf.Keyed(2, tenantOf, func(string) (*triable, error) { return &triable{}, nil }, always)
	use := func(t *testing.T) {
		for _, tenant := range []string{"a", "b", "a", "c"} { // the third is there already, the last takes another's place
			p, err := g.Acquire(as(tenant))
			require.NoError(t, err)
			require.NoError(t, p.Settle(context.Background(), leaf.Outcome{}))
		}
	}
	synctest.Test(t, use)
	use(t)
	synctest.Test(t, use)
}
