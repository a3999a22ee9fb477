package guardtest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// recorder is a testing.TB that keeps what it is told.
type recorder struct {
	testing.TB // for what the suite does not use: nil would hide it
	ctx        context.Context
	mu         sync.Mutex
	failure    string
	cleanups   []func()
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Cleanup(f func())         { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.mu.Lock()
	r.failure = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	runtime.Goexit()
}

// failureOf runs one promise and returns how it failed; "" = it did not.
func failureOf(t *testing.T, promise string, cfg Config) string {
	i := slices.IndexFunc(promises, func(p struct {
		name  string
		check func(*suite)
	}) bool {
		return p.name == promise
	})
	require.GreaterOrEqual(t, i, 0, "no promise %q", promise)
	r := &recorder{TB: t, ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		defer func() {
			if v := recover(); v != nil {
				r.failure = fmt.Sprintf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		promises[i].check(&suite{TB: r, cfg: cfg.withDefaults()})
	}()
	<-done
	return r.failure
}

// broken is what each fault breaks, and a word of how it is told.
var broken = []struct {
	fault    fault
	promises []string
	says     string
}{
	{"nobody gets in", []string{"a fresh guard admits", "concurrent calls keep the capacity"}, "want an admission"},
	{"TryAcquire panics", []string{"a fresh guard admits"}, "panicked"},
	{"done ctx gets in", []string{"a done context takes nothing"}, "admitted"},
	{"done ctx loses the cause", []string{"a done context takes nothing"}, "Cause"},
	{"done ctx is a refusal", []string{"a done context takes nothing"}, "refusal"},
	{"done ctx comes with a permit", []string{"a done context takes nothing", "a done context enters no refusing guard"}, "zero Permit"},
	{"done ctx takes a slot", []string{"a done context takes nothing"}, "after many calls with a done ctx"},
	{"done ctx gets in when full", []string{"a done context enters no refusing guard"}, "admitted"},
	{"one too many", []string{"capacity is exact", "TryAcquire never waits"}, ""},
	{"one too few", []string{"capacity is exact"}, "want an admission"},
	{"refusal comes with a permit", []string{"a refusal says so", "TryAcquire never waits"}, "zero Permit"},
	{"refusal is a plain error", []string{"a refusal says so", "a refusal takes nothing"}, "want a refusal"},
	{"refusal knows no RetryAfter", []string{"a refusal says so"}, "RetryAfter"},
	{"refusal goes back in time", []string{"a refusal says so"}, "RetryAfter"},
	{"refusal takes a slot", []string{"a refusal takes nothing"}, ""},
	{"refusal gives a slot", []string{"a refusal takes nothing"}, ""},
	{"NotRun keeps the slot", []string{"NotRun gives everything back", "every verdict settles, once", "concurrent calls keep the capacity"}, ""},
	{"a panic keeps the slot", []string{"a slot comes back after every verdict", "panic and Goexit settle", "every verdict settles, once"}, ""},
	{"a cancelled call keeps the slot", []string{"a slot comes back after every verdict"}, "caller_cancelled"},
	{"a done ctx keeps the slot", []string{"a done context settles"}, "done ctx"},
	{"settling hangs with a done ctx", []string{"a done context settles"}, "did not return"},
	{"settling gives two slots", []string{"NotRun gives everything back", "every verdict settles, once"}, "more than"},
	{"settling Ignored panics", []string{"every verdict settles, once"}, "what is ignored"},
	{"TryAcquire waits", []string{"TryAcquire never waits"}, "did not return"},
	{"wait ignores ctx", []string{"a wait that ctx ended is ctx's error"}, "did not return"},
	{"wait loses the cause", []string{"a wait that ctx ended is ctx's error"}, "Cause"},
	{"wait ends with a refusal", []string{"a wait that ctx ended is ctx's error", "a cancelled wait takes nothing along"}, "ctx.Err()"},
	{"wait gives a slot that it never had", []string{"a cancelled wait takes nothing along", "concurrent waiters keep the capacity"}, ""},
	{"leaves its place in the queue", []string{"a cancelled wait takes nothing along"}, ""},
	{"queued is not counted down", []string{"a cancelled wait takes nothing along"}, "queued"},
	{"grant is lost in a race", []string{"a grant that races with leaving is not lost"}, ""},
	{"nobody is woken", []string{"a waiter gets the place that is freed"}, "did not return"},
	{"Peek takes a slot", []string{"Peek is pure"}, "Peek"},
	{"Peek gives a slot", []string{"Peek tells what Acquire does"}, "want a refusal"},
	{"Peek never refuses", []string{"Peek tells what Acquire does"}, "want a refusal"},
	{"Peek always refuses", []string{"Peek is pure"}, "want nil"},
	{"Hint of nothing closes", []string{"a hint of nothing changes nothing"}, ""},
	{"Hint overflows", []string{"any hint is survived"}, "RetryAfter"},
	{"Lease drifts", []string{"Lease, Occupies and WantsTook are steady"}, "lease:"},
	{"Occupies wavers", []string{"Lease, Occupies and WantsTook are steady"}, "occupies:"},
	{"WantsTook wavers", []string{"Lease, Occupies and WantsTook are steady"}, "wantsIt:"},
	{"Inspect takes a slot", []string{"Inspect is consistent"}, "in_use"},
	{"Inspect has no kind", []string{"Inspect is consistent"}, "no Kind"},
	{"Inspect changes the name", []string{"Inspect is consistent"}, "name"},
	{"Inspect changes the order", []string{"Inspect is consistent"}, "gauges were"},
	{"Inspect divides by zero", []string{"Inspect is consistent"}, "finite"},
	{"Inspect shouts", []string{"Inspect is consistent"}, "snake case"},
	{"Inspect says it twice", []string{"Inspect is consistent"}, "two gauges"},
	{"Inspect has a negative limit", []string{"Inspect is consistent"}, "below 0"},
	{"full under the lock only", []string{"concurrent calls keep the capacity"}, "inside at once"},
}

func faulty(f fault) Config {
	return Config{
		New:      func(testing.TB) leaf.Guard { return &turnstile{max: 3, fault: f} },
		Waiting:  func(testing.TB) leaf.Guard { return &turnstile{max: 3, waits: true, fault: f} },
		Capacity: 3,
		Slots:    true,
		Patience: 200 * time.Millisecond,
	}
}

func TestEveryFaultIsCaught(t *testing.T) {
	for _, b := range broken {
		for _, promise := range b.promises {
			t.Run(string(b.fault)+"/"+promise, func(t *testing.T) {
				failure := failureOf(t, promise, faulty(b.fault))
				require.NotEmpty(t, failure, "the fault %q passed", b.fault)
				if promise == b.promises[0] {
					require.Contains(t, failure, b.says)
				}
			})
		}
	}
}

// TestNoFaultIsFound is the other half: the recorder itself does not fail.
func TestNoFaultIsFound(t *testing.T) {
	cfg := faulty("")
	cfg.Patience = 0
	for _, p := range promises {
		require.Empty(t, failureOf(t, p.name, cfg), p.name)
	}
}

// TestEveryPromiseCanBreak: a promise that no fault breaks is a test that cannot fail.
func TestEveryPromiseCanBreak(t *testing.T) {
	var names []string
	for _, b := range broken {
		names = append(names, b.promises...)
	}
	for _, p := range promises {
		require.Contains(t, names, p.name)
	}
}

func TestConfigIsChecked(t *testing.T) {
	err := Config{Capacity: -1, Lag: -1, Patience: -1, Rounds: -1}.validate()
	require.Error(t, err)
	for _, field := range []string{"New", "Capacity is -1", "Lag is -1ns", "Patience is -1ns", "Rounds is -1"} {
		require.Contains(t, err.Error(), field)
	}
	err = Config{New: faulty("").New, Slots: true, Waiting: faulty("").Waiting}.validate()
	require.ErrorContains(t, err, "Slots")
	require.ErrorContains(t, err, "Waiting")
	require.Len(t, strings.Split(err.Error(), "\n"), 2)
	require.NoError(t, faulty("").validate())
}

// A maker that makes nothing is told as that, not as a nil dereference in the suite.
func TestMakerOfNothing(t *testing.T) {
	ok := func(testing.TB) leaf.Guard { return door{} }
	for says, g := range map[string]leaf.Guard{"nil": nil, "a nil *guardtest.turnstile": (*turnstile)(nil)} {
		none := func(testing.TB) leaf.Guard { return g }
		want := " returned " + says + ": want a guard"
		require.Equal(t, "guardtest: New"+want, failureOf(t, "a fresh guard admits", Config{New: none}))
		require.Equal(t, "guardtest: Refusing"+want, failureOf(t, "a refusal says so", Config{New: ok, Refusing: none}))
		require.Equal(t, "guardtest: Waiting"+want, failureOf(t, "a wait that ctx ended is ctx's error",
			Config{New: ok, Waiting: none, Capacity: 1}))
	}
}
