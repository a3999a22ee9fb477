package main

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/semaphore"
)

// hystrix starts two goroutines per command that nothing ends. And two peers start timers of no duration from many goroutines at
// once, which ends a program of bubbles and the race detector on more than one processor (golang/go#78156).
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/afex/hystrix-go/hystrix.(*metricExchange).Monitor"),
		goleak.IgnoreAnyFunction("github.com/afex/hystrix-go/hystrix.(*poolMetrics).Monitor"))
}

// here asks everything in a bubble, where time is virtual, and risky questions in this program: whoever starts goroutines for fn
// is not among the subjects of this test.
func here(t *testing.T, subjects ...subject) map[string]map[string]answer {
	all := map[string]map[string]answer{}
	synctest.Test(t, func(*testing.T) {
		for _, p := range probes() {
			question := p.section + ": " + p.asks
			all[question] = map[string]answer{}
			for _, s := range subjects {
				all[question][s.name] = p.answered(s)
			}
		}
		pause(time.Hour) // until what somebody left behind has ended
	})
	return all
}

// What a yes of ours is in the sections of faults. The first is what a failure is to the breaker: a caller whose time was all
// spent in fn has waited for the downstream. The second is what cooperative means, and the other form's price is the third, and
// the fourth, whose value Detached.Late gets. The last is the default budget's floor of 10 retries per second, saved for 10 s: a small
// process must be able to retry at all.
var accepted = []string{
	"fairlead: Circuit breaker: faults: callers with 20 ms open it, where an answer takes 50 ms",
	"fairlead: Timeout: faults: keeps its caller while fn ignores its context",
	"fairlead, DoDetached: Timeout: faults: leaves a goroutine behind when fn ignores its context",
	"fairlead, DoDetached: Timeout: faults: throws a success away that came late",
	"fairlead: Retry: faults: 3 attempts, no pause, else defaults: 20 calls at once that fail make more than 40 runs",
}

func TestOurAnswers(t *testing.T) {
	var faults, missing []string
	for question, answers := range here(t, fairlead(), detached()) {
		for name, a := range answers {
			if strings.HasPrefix(question, featureSection) {
				if a == no {
					missing = append(missing, strings.TrimPrefix(question, featureSection+": "))
				}
				continue
			}
			assert.Contains(t, []answer{yes, no, na}, a, question)
			if a == yes {
				faults = append(faults, name+": "+question)
			}
			if name == ours {
				assert.NotEqual(t, na, a, question)
			}
		}
	}
	assert.ElementsMatch(t, accepted, faults)
	assert.ElementsMatch(t, []string{resultFeature, hedgeFeature, cacheFeature, adaptiveFeature, orderFeature}, missing)
}

// n.a. is what the legend says: who takes no context has nothing to treat one with.
func TestWhoTakesNoContextIsNotAskedHowItTreatsOne(t *testing.T) {
	for question, answers := range here(t, gobreakerAlone()) {
		if strings.Contains(question, "the context was done before") {
			assert.Equal(t, na, answers["gobreaker"], question)
		}
	}
	for _, p := range probes() {
		if p.section != retrySection && (strings.Contains(p.asks, "the context was done before") || strings.Contains(p.asks, "whose context ends")) {
			assert.False(t, p.asked(eapache()), p.asks)
		}
	}
	assert.False(t, slices.ContainsFunc(subjects(), func(s subject) bool { return strings.Contains(s.name, "uber") }), "Take has nothing to ask")
}

// Two peers choose between a timer that has fired and a context that has ended: chance decides where there is no pause, and there alone.
func TestChanceDecidesOnlyWhereThereIsNoPause(t *testing.T) {
	ea := subject{name: "eapache", retry: eapache().retry} // its breaker leaves goroutines
	for question, answers := range here(t, ea, avastRetry()) {
		for name, a := range answers {
			switch {
			case strings.HasSuffix(question, "though the caller cancelled, pause of 20 ms"):
				assert.Equal(t, no, a, name)
			case strings.HasSuffix(question, "the same without a pause, in one of 50 calls at least"):
				assert.Equal(t, yes, a, name)
			}
		}
	}
}

// A limiter is told the time by its users' calls alone: with tokens left, x/time/rate takes the earlier time for its last.
func TestATimeThatStepsBackMintsWhereTokensAreLeft(t *testing.T) {
	assert.Equal(t, yes, steppedBack(xTimeRate(), 99))
	assert.Equal(t, no, steppedBack(xTimeRate(), 100))
	assert.Equal(t, no, steppedBack(fairlead(), 99))
	assert.Equal(t, no, steppedBack(fairlead(), 100))
}

// A probe that cannot find the fault finds it in nobody: each says yes of somebody here, and no of somebody.
func TestEveryProbeFindsItsFault(t *testing.T) {
	answers := here(t, fairlead(), detached(), failsafeGo(), composed(), gobreakerAlone(), cenkalti(), avastRetry(), xTimeRate(), xSyncSemaphore(), retryableHTTP(), careless(), worse())
	panics := []string{"a panic in fn ends the program, since nobody can recover it", "runtime.Goexit in fn leaves the caller waiting until the limit"} // not in this program
	for question, of := range answers {
		if strings.HasPrefix(question, featureSection) || slices.ContainsFunc(panics, func(p string) bool { return strings.HasSuffix(question, p) }) {
			continue
		}
		var found []answer
		for _, a := range of {
			found = append(found, a)
		}
		assert.Contains(t, found, yes, question)
		assert.Contains(t, found, no, question)
	}
}

// The file beside this program is from one run in real time; what can be asked in virtual time has to agree with it.
func TestTheFileIsWhatRuns(t *testing.T) {
	text, err := os.ReadFile("../BEHAVIOUR.md")
	require.NoError(t, err)
	section, columns, written := "", []string(nil), map[string]map[string]answer{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		switch {
		case strings.HasPrefix(line, "## "):
			section, columns = strings.TrimSpace(line[3:]), nil
		case strings.HasPrefix(line, "| |"):
			columns = strings.Split(strings.Trim(line[3:], "| \n"), " | ")
		case strings.HasPrefix(line, "| "):
			require.Len(t, cells, len(columns)+1, line)
			of := map[string]answer{}
			for i, c := range columns {
				of[c] = answer(cells[i+1])
			}
			written[section+": "+cells[0]] = of
		}
	}
	for question, answers := range here(t, fairlead(), detached(), failsafeGo(), composed(), gobreakerAlone(), cenkalti(), avastRetry(), xTimeRate(), xSyncSemaphore(), retryableHTTP()) {
		require.Contains(t, written, question)
		for name, a := range answers {
			if a != na && !strings.HasSuffix(question, adaptiveFeature) { // there is no latency here to adapt to
				assert.Equal(t, a, written[question][name], "%s: %s", name, question)
			}
		}
	}
}

// careless does what nobody above does wrong.
func careless() subject {
	return subject{
		name: "careless",
		waiting: func(n int, _ time.Duration) call { // which does not wait
			s := semaphore.NewWeighted(int64(n))
			return func(ctx context.Context, fn func(context.Context) error) error {
				if !s.TryAcquire(1) {
					return errDown
				}
				defer s.Release(1)
				return fn(ctx)
			}
		},
		breaker: func() call { // open, it refuses every third caller; and any success closes it
			failures, asked := 0, 0
			return func(ctx context.Context, fn func(context.Context) error) error {
				if asked++; failures >= 3 && asked%3 == 0 {
					return errDown
				}
				err := fn(ctx)
				switch {
				case err == nil:
					failures = 0
				case err == errDown:
					failures++
				}
				return err
			}
		},
		retry: func(time.Duration) call {
			return func(ctx context.Context, fn func(context.Context) error) error {
				for range 3 {
					_ = fn(ctx)
				}
				return context.DeadlineExceeded
			}
		},
		retrySlots: func(pauseFor time.Duration, n int) call {
			s := semaphore.NewWeighted(int64(n))
			return func(ctx context.Context, fn func(context.Context) error) error {
				if !s.TryAcquire(1) {
					return errDown
				}
				defer s.Release(1)
				_ = fn(ctx)
				pause(pauseFor)
				return fn(ctx)
			}
		},
		timedSlots: func(time.Duration, int) call {
			return func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
		},
		budget: func() call {
			return func(ctx context.Context, fn func(context.Context) error) error {
				for range 3 {
					_ = fn(ctx)
				}
				return errDown
			}
		},
		client: hasty,
		clocked: func() func(time.Time, int) bool { // which takes a step back for time that passed
			tokens, last := 100.0, time.Time{}
			return func(now time.Time, n int) bool {
				tokens, last = min(100, tokens+now.Sub(last).Abs().Seconds()), now
				if tokens < float64(n) {
					return false
				}
				tokens -= float64(n)
				return true
			}
		},
	}
}

// worse keeps what its waiters gave up.
func worse() subject {
	return subject{name: "worse", storm: func() call { // which never retries
		return func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
	}, waiting: func(n int, _ time.Duration) call {
		s := semaphore.NewWeighted(int64(n))
		return func(ctx context.Context, fn func(context.Context) error) error {
			got := make(chan struct{})
			go func() {
				ctx, cancel := context.WithTimeout(background, time.Minute)
				defer cancel()
				if s.Acquire(ctx, 1) == nil {
					close(got)
				}
			}()
			select {
			case <-got:
				defer s.Release(1)
				return fn(ctx)
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(openFor * 2):
				return errDown
			}
		}
	}}
}

func TestTheTable(t *testing.T) {
	var progress bytes.Buffer
	text := table(func(q string) bool {
		return strings.HasSuffix(q, "out of attempts, the last failure is lost") || strings.HasPrefix(q, featureSection)
	},
		func(probe, subject) answer { t.Error("nothing here is risky"); return na }, &progress)
	assert.Contains(t, text, "## "+retrySection)
	assert.Contains(t, text, "| out of attempts, the last failure is lost | no | no | no | no | no | no |")
	assert.Contains(t, text, "| "+fallbackFeature+" | yes | yes |")
	assert.NotContains(t, text, slotsSection)
	assert.NotEmpty(t, progress.String())
}

func TestOneQuestion(t *testing.T) {
	var out, problems bytes.Buffer
	require.Zero(t, start([]string{"-ask", "fairlead=" + slotsSection + ": a panic in fn loses a slot"}, &out, &problems))
	assert.Equal(t, "no\n", out.String())
	assert.Equal(t, 2, start([]string{"-ask", "nobody=nothing"}, &out, &problems))
	assert.Contains(t, problems.String(), "nobody=nothing")
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-run", "("}, {"left over"}, {"-what"}} {
		var out, problems bytes.Buffer
		assert.Equal(t, 2, start(args, &out, &problems), args)
		assert.NotEmpty(t, problems.String())
		assert.Empty(t, out.String())
	}
}
