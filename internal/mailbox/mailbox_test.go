package mailbox

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTellsInTheOrderOfThePuts(t *testing.T) {
	var b Box[int]
	var got []int
	for i := range 5 {
		b.Put(i)
	}
	b.Deliver(func(i int) { got = append(got, i) })
	require.Equal(t, []int{0, 1, 2, 3, 4}, got)

	b.Deliver(func(i int) { t.Errorf("%d is told again", i) })
}

func TestWhatATellingPutsIsToldAfterIt(t *testing.T) {
	var b Box[int]
	var got []string
	var tell func(i int)
	tell = func(i int) {
		got = append(got, "begin")
		if i < 3 {
			b.Put(i + 1)
			b.Deliver(tell) // must neither deadlock nor nest
		}
		got = append(got, "end")
	}
	b.Put(1)
	b.Deliver(tell)
	require.Equal(t, slices.Repeat([]string{"begin", "end"}, 3), got)
}

func TestAPanicLosesNothingAndLeavesNoTellerBehind(t *testing.T) {
	var b Box[int]
	var got []int
	for i := range 4 {
		b.Put(i)
	}
	tell := func(i int) {
		got = append(got, i)
		if i%2 == 0 {
			panic(i)
		}
	}
	require.PanicsWithValue(t, 2, func() { b.Deliver(tell) }, "the last of several panics arrives")
	require.Equal(t, []int{0, 1, 2, 3}, got)

	b.Put(5)
	b.Deliver(tell)
	require.Equal(t, []int{0, 1, 2, 3, 5}, got)
}

func TestGoexitLosesNothingAndLeavesNoTellerBehind(t *testing.T) {
	var b Box[int]
	var got []int
	b.Put(1)
	b.Put(2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Deliver(func(i int) {
			got = append(got, i)
			if i == 1 {
				runtime.Goexit()
			}
		})
		t.Error("Goexit was stopped")
	}()
	<-done
	b.Put(3)
	b.Deliver(func(i int) { got = append(got, i) })
	require.Equal(t, []int{1, 2, 3}, got)
}

func TestASecondDelivererDoesNotWait(t *testing.T) {
	var b Box[int]
	inside, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var got []int
	tell := func(i int) {
		if got = append(got, i); i == 1 {
			close(inside)
			<-leave
		}
	}
	b.Put(1)
	go func() {
		defer close(done)
		b.Deliver(tell)
	}()
	<-inside
	b.Put(2)
	b.Deliver(func(int) { t.Error("two tellers at once") })
	close(leave)
	<-done
	require.Equal(t, []int{1, 2}, got, "the first teller tells what came meanwhile")
}

func TestConcurrentCommittersAreToldOnceEachInOrder(t *testing.T) {
	const committers, each = 8, 2000
	var b Box[int]
	var commit sync.Mutex
	next, told := 0, 0
	var wg sync.WaitGroup
	for range committers {
		wg.Go(func() {
			for range each {
				commit.Lock()
				b.Put(next)
				next++
				commit.Unlock()
				b.Deliver(func(i int) { // one at a time, or the race detector finds it
					if i != told {
						t.Errorf("told %d, want %d", i, told)
					}
					told++
				})
			}
		})
	}
	wg.Wait()
	require.Equal(t, committers*each, told, "nothing is left behind")
}

func TestDeliveringNothingAllocatesNothing(t *testing.T) {
	var b Box[int]
	require.Zero(t, testing.AllocsPerRun(100, func() { b.Deliver(func(int) {}) }))
}
