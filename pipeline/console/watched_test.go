package console

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
)

// "It survives 200 pipelines and 10,000 events/s without growing", whole: the calls go through real pipelines, some of them open
// circuits, a server sends the stream, and somebody reads it.
func TestTheHeapDoesNotGrowWhileItIsWatched(t *testing.T) {
	const perSecond = 3_400 // calls, each of at least three events
	synctest.Test(t, func(t *testing.T) {
		all := make([]*pipeline.Pipeline, 200)
		for i := range all {
			all[i], _ = bank(nil)
		}
		c := started(t, Pipelines(all...))
		s := listen(t, served(t, c)())
		defer s.conn.Close()
		first := s.next()
		require.Len(t, first.Rows, len(all))

		calls, told, failed, refused := uint64(0), uint64(0), uint64(0), uint64(0)
		flood := func(seconds int) {
			for range seconds {
				for range perSecond {
					n := calls
					calls++
					_ = all[n%200].Run(bg, func(context.Context) error {
						if n%200 < 20 || n%7 == 0 { // twenty are down, and their circuits open; the others fail now and then
							return fmt.Errorf("request %d%c: 503", n, 'a'+rune(n%26)) // no two texts are the same
						}
						return nil
					})
				}
				for _, r := range s.next().Rows {
					told += r.Last.Calls
					failed += r.Last.Failed
					refused += r.Last.Refused
				}
			}
		}
		flood(10)
		before := heap()
		flood(5)
		grown := heap() - before
		t.Logf("%d calls, %d failed, %d refused; the heap grew by %d bytes", calls, failed, refused, grown)
		require.Less(t, grown, int64(64<<10), "after %d more calls", 5*perSecond)
		require.Equal(t, calls, told, "the stream told of every call")
		require.Greater(t, failed, uint64(1000))
		require.Greater(t, refused, uint64(1000))
		runtime.KeepAlive(c)
	})
}
