package budget

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What Inject writes FromHeader reads: over any number of hops a deadline comes nearer, by less than a millisecond each, and
// is never lengthened, whatever the time left and whatever is kept for oneself.
func FuzzHops(f *testing.F) {
	f.Add(int64(1500*time.Millisecond+999), int64(0), uint8(1))
	f.Add(int64(-1), int64(time.Hour), uint8(3))
	f.Add(int64(290*365*24*time.Hour), int64(-5), uint8(9))
	f.Fuzz(func(t *testing.T, left, reserve int64, hops uint8) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(left))
			defer cancel()
			before, ok := Left(ctx, nil)
			require.True(t, ok)
			for range hops % 10 {
				inner, cancel := WithReserve(ctx, time.Duration(reserve))
				defer cancel()
				h := http.Header{}
				Inject(inner, nil, h)
				next, cancel := FromHeader(t.Context(), h)
				defer cancel()
				after, ok := Left(next, nil)
				require.True(t, ok)
				want := before
				if reserve > 0 {
					want = max(0, before-time.Duration(reserve))
				}
				require.LessOrEqual(t, after, want)
				require.Less(t, want-after, time.Millisecond)
				require.Equal(t, after == 0, next.Err() != nil)
				ctx, before = next, after
			}
		})
	})
}
