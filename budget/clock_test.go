package budget

import (
	"context"

	"github.com/jonboulle/clockwork"
)

// pending says whether a timer is waiting on clock, without waiting for one.
func pending(clock *clockwork.FakeClock) bool {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	return clock.BlockUntilContext(done, 1) == nil
}
