package guardtest

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func waiting(max int) *turnstile { return &turnstile{max: max, waits: true} }

// TestSlots: a guard that counts who is inside.
func TestSlots(t *testing.T) {
	for _, capacity := range []int{1, 4} {
		Run(t, Config{
			New:      func(testing.TB) leaf.Guard { return &turnstile{max: capacity} },
			Waiting:  func(testing.TB) leaf.Guard { return waiting(capacity) },
			Capacity: capacity,
			Slots:    true,
		})
	}
}

// TestSpent: a guard whose places are used up, as a quota's.
func TestSpent(t *testing.T) {
	Run(t, Config{
		New:      func(testing.TB) leaf.Guard { return &turnstile{max: 3, spent: true} },
		Waiting:  func(testing.TB) leaf.Guard { return &turnstile{max: 3, spent: true, waits: true} },
		Capacity: 3,
	})
}

// distant is a guard behind a store: each call lasts longer than an impatient caller waits.
type distant struct{ leaf.Guard }

func (d distant) Acquire(ctx context.Context) (leaf.Permit, error) {
	answer := time.NewTimer(2 * time.Millisecond)
	defer answer.Stop()
	select {
	case <-answer.C:
		return d.Guard.Acquire(ctx)
	case <-ctx.Done():
		return leaf.Permit{}, causeOf(ctx)
	}
}

// TestDistant: a round trip is no fault, also where every caller gives up at some time.
func TestDistant(t *testing.T) {
	Run(t, Config{
		New:      func(testing.TB) leaf.Guard { return distant{&turnstile{max: 3, spent: true}} },
		Waiting:  func(testing.TB) leaf.Guard { return distant{&turnstile{max: 3, spent: true, waits: true}} },
		Capacity: 3,
		Rounds:   30,
	})
}

// door refuses everybody or nobody, and has nothing to settle, as a cooldown.
type door struct{ shut bool }

func (d door) Acquire(ctx context.Context) (leaf.Permit, error) {
	if err := ctx.Err(); err != nil {
		return leaf.Permit{}, causeOf(ctx)
	}
	if d.shut {
		return leaf.Permit{}, refused{}
	}
	return leaf.Permit{}, nil
}

func causeOf(ctx context.Context) error { return joined{ctx.Err(), context.Cause(ctx)} }

type joined [2]error

func (j joined) Error() string   { return j[0].Error() + ": " + j[1].Error() }
func (j joined) Unwrap() []error { return j[:] }

// TestUncounted: a guard without a capacity, that has no optional methods at all.
func TestUncounted(t *testing.T) {
	Run(t, Config{
		New:      func(testing.TB) leaf.Guard { return door{} },
		Refusing: func(testing.TB) leaf.Guard { return door{shut: true} },
	})
}

func keyed[G leaf.Guard](make func() G) leaf.Guard {
	return leaf.Keyed(2,
		func(context.Context) string { return "tenant" },
		func(string) (G, error) { return make(), nil },
		func(G) bool { return true })
}

// TestKeyed: what stands before a guard of one key is as good a guard.
func TestKeyed(t *testing.T) {
	Run(t, Config{
		New:      func(testing.TB) leaf.Guard { return keyed(func() *turnstile { return &turnstile{max: 3} }) },
		Waiting:  func(testing.TB) leaf.Guard { return keyed(func() *turnstile { return waiting(3) }) },
		Capacity: 3,
		Slots:    true,
	})
	Run(t, Config{
		New:      func(testing.TB) leaf.Guard { return keyed(func() door { return door{} }) },
		Refusing: func(testing.TB) leaf.Guard { return keyed(func() door { return door{shut: true} }) },
	})
}

// TestKeyedNested: a guard known only as a leaf.Guard, twice.
func TestKeyedNested(t *testing.T) {
	Run(t, Config{
		New: func(testing.TB) leaf.Guard {
			return keyed(func() leaf.Guard { return keyed(func() *turnstile { return &turnstile{max: 3} }) })
		},
		Waiting: func(testing.TB) leaf.Guard {
			return keyed(func() leaf.Guard { return keyed(func() *turnstile { return waiting(3) }) })
		},
		Capacity: 3,
		Slots:    true,
	})
}

// TestShadow: whatever it shadows, it admits, keeps to ctx and shows what the guard shows.
func TestShadow(t *testing.T) {
	for _, g := range []func() leaf.Trier{
		func() leaf.Trier { return &turnstile{max: 3} },
		func() leaf.Trier { return waiting(1) },
		func() leaf.Trier { return &turnstile{max: 0} },
		func() leaf.Trier { return keyed(func() *turnstile { return &turnstile{max: 3} }).(leaf.Trier) },
	} {
		Run(t, Config{New: func(testing.TB) leaf.Guard { return leaf.Shadow(g(), nil) }})
	}
}
