package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A forced-open circuit names no wait, for it has none: also where an Acquire finds the circuit open under the lock alone, as one
// that comes while ForceOpen publishes, and also over an opening that had one.
func TestAForcedOpenCircuitNamesNoWaitUnderTheLockEither(t *testing.T) {
	for name, before := range map[string]func(r *rig){
		"closed": func(*rig) {}, "open": func(r *rig) { r.run(3, failure) },
		"half-open": func(r *rig) { r.run(3, failure); r.to(10); r.begin() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{MinCalls: 3, OpenFor: 10 * time.Second})
			before(r)
			require.NoError(t, r.ForceOpen(bg))
			r.opened.Store(nil) // the word says open, and the opening is not there yet
			e := r.refused()
			require.Equal(t, OpenError{State: Open}, *e)
			_, hinted := e.RetryAfter()
			require.False(t, hinted)
			require.ErrorIs(t, r.Peek(bg), ErrOpen)

			// One that is not forced names the wait on that way, too.
			require.NoError(t, r.Reset(bg))
			r.run(3, failure)
			r.opened.Store(nil)
			require.Equal(t, 10*time.Second, r.refused().Wait)
		})
	}
}
