package main

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.uber.org/goleak"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/guardtest"
	"github.com/fairlead/fairlead/rejection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSlots(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New:      func(testing.TB) leaf.Guard { return &Slots{sem: semaphore.NewWeighted(4)} },
		Waiting:  func(testing.TB) leaf.Guard { return &Slots{sem: semaphore.NewWeighted(4), waits: true} },
		Capacity: 4,
		Slots:    true,
	})
}

func TestRate(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New:      func(testing.TB) leaf.Guard { return &Rate{rate.NewLimiter(rate.Every(time.Hour), 4)} },
		Capacity: 4,
	})
}

func TestBreaker(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New:      func(testing.TB) leaf.Guard { return NewBreaker(gobreaker.Settings{}) },
		Refusing: func(testing.TB) leaf.Guard { return tripped(time.Hour) },
	})
}

// TestHalfOpen: what did not run, or says nothing, gives its probe back.
func TestHalfOpen(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New: func(testing.TB) leaf.Guard {
			b := tripped(time.Nanosecond)
			for b.State() != gobreaker.StateHalfOpen {
				runtime.Gosched()
			}
			return b
		},
		Capacity: 2,
	})
}

func tripped(open time.Duration) *Breaker {
	b := NewBreaker(gobreaker.Settings{
		MaxRequests: 2,
		Timeout:     open,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 1 },
	})
	_, _ = leaf.Do(context.Background(), b, func(context.Context) (int, error) { return 0, errors.New("failure") })
	return b
}

// TestVerdicts: what each way to end means to the breaker.
func TestVerdicts(t *testing.T) {
	for verdict, failure := range map[leaf.Verdict]bool{
		leaf.Returned: true, leaf.TimedOut: true, leaf.Panicked: true,
		leaf.CallerCancelled: false, leaf.CallerExpired: false, leaf.NotRun: false, leaf.Ignored: false,
	} {
		b := NewBreaker(gobreaker.Settings{})
		p, err := b.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Settle(t.Context(), leaf.Outcome{Verdict: verdict, Err: errors.New("whatever")})
		if got := b.Counts(); (got.TotalFailures == 1) != failure || got.TotalSuccesses != 0 {
			t.Errorf("%v: %+v, want a failure: %v", verdict, got, failure)
		}
	}
}

func TestRefusals(t *testing.T) {
	r := &Rate{rate.NewLimiter(rate.Every(time.Minute), 1)}
	p, err := r.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Acquire(t.Context())
	if wait, ok := rejection.RetryAfter(err); !rejection.Is(err) || !ok || wait < 50*time.Second || wait > time.Minute {
		t.Errorf("got %v, %v, %v, want a refusal of about a minute", err, wait, ok)
	}
	_ = p.Settle(t.Context(), leaf.Outcome{Verdict: leaf.Returned})
	if got := r.Tokens(); got > 0.5 {
		t.Errorf("%v tokens after a call that ran, want it spent", got)
	}
	if _, err := tripped(time.Hour).Acquire(t.Context()); !errors.Is(err, gobreaker.ErrOpenState) {
		t.Errorf("got %v, want gobreaker's own error to be reachable", err)
	}
}

func TestDemonstration(t *testing.T) {
	var out bytes.Buffer
	demonstrate(t.Context(), &out, newPipeline())
	t.Log("\n" + out.String())
	row := regexp.MustCompile(`(?m)^call (\d).{28} (yes|no) *(breaker|ratelimit|bulkhead|)`)
	var got []string
	for _, m := range row.FindAllStringSubmatch(out.String(), -1) {
		got = append(got, m[1]+" "+m[2]+" "+m[3])
	}
	want := []string{
		"1 yes ", "3 no bulkhead", "2 yes ", "4 yes ", "5 yes ", "6 yes ", "7 no ratelimit",
		"1 yes ", "2 yes ", "3 no breaker",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if strings.Count(out.String(), "1m0s") != 1 {
		t.Error("the rate limit alone knows when to come back")
	}
}
