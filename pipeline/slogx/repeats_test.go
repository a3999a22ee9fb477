package slogx_test

import (
	"context"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/slogx"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// Of lines that are alike 5 a minute are written; when the minute is over, one line counts the rest.
func TestRepeatsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelInfo)
		p := pipeline.For("p").Observe(slogx.Observer(slog.New(lines))).MustBuild()
		call := func() { _, _ = pipeline.Do(t.Context(), p, fails(1, errDown)) }
		for range 100 {
			call()
			<-time.After(100 * time.Millisecond)
		}
		failed := "ERROR pipeline: call failed pipeline=p attempts=1 took=0s error=down"
		require.Equal(t, []string{failed, failed, failed, failed, failed}, lines.taken())
		<-time.After(50*time.Second - time.Nanosecond)
		call()
		require.Empty(t, lines.taken(), "a nanosecond before the minute is over")
		<-time.After(time.Nanosecond)
		call()
		require.Equal(t, []string{
			"ERROR lines suppressed pipeline=p line=pipeline: call failed suppressed=96 per=1m0s", failed,
		}, lines.taken(), "first what was held back, then the new one")
		<-time.After(time.Hour)
		call()
		require.Equal(t, []string{failed}, lines.taken(), "nothing was held back")
	})
}

// The count is told by the next event of any pipeline of the observer, also by a success, which is no line itself.
func TestAnyEventTellsWhatWasHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelInfo)
		observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Second))
		bad, good := pipeline.For("bad").Observe(observe).MustBuild(), pipeline.For("good").Observe(observe).MustBuild()
		for range 3 {
			_, _ = pipeline.Do(t.Context(), bad, fails(1, errDown))
		}
		require.Len(t, lines.taken(), 1)
		<-time.After(time.Second)
		_, err := pipeline.Do(t.Context(), good, fails(0, nil))
		require.NoError(t, err)
		require.Equal(t, []string{"ERROR lines suppressed pipeline=bad line=pipeline: call failed suppressed=2 per=1s"}, lines.taken())
	})
}

// Lines are alike when pipeline, event, outcome, layer and reason are; what differs in one of them is not held back for the other.
func TestWhatIsAlike(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Hour))
	base := pipeline.Event{Kind: pipeline.CallFinished, Time: time.Unix(1, 0), Pipeline: "p", Disposition: pipeline.Failed}
	for _, change := range []func(*pipeline.Event){
		func(*pipeline.Event) {},
		func(e *pipeline.Event) { e.Pipeline = "q" },
		func(e *pipeline.Event) { e.Disposition = pipeline.Expired },
		func(e *pipeline.Event) { e.Layer = "breaker" },
		func(e *pipeline.Event) { e.Layer = "bulkhead" },
		func(e *pipeline.Event) { e.Reason = 1 },
	} {
		e := base
		change(&e)
		observe(t.Context(), e)
		require.Len(t, lines.taken(), 1)
		e.Err, e.Attempt, e.Took, e.Operation = errDown, 3, time.Second, "op"
		observe(t.Context(), e)
		require.Empty(t, lines.taken())
	}
}

// Debug lines are never held back, and most < 1 or per <= 0 holds nothing back.
func TestWhatIsNotHeldBack(t *testing.T) {
	for _, test := range []struct {
		level slog.Level
		most  int
		per   time.Duration
	}{{slog.LevelDebug, 1, time.Hour}, {slog.LevelError, 0, time.Hour}, {slog.LevelError, 1, 0}, {slog.LevelError, -1, -1}} {
		lines := newPad(slog.LevelDebug)
		observe := slogx.Observer(slog.New(lines), slogx.Repeats(test.most, test.per),
			slogx.Level(func(pipeline.Event) slog.Level { return test.level }))
		for range 100 {
			observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: time.Unix(1, 0)})
		}
		require.Len(t, lines.taken(), 100)
	}
}

// A period may be as long as there is time.
func TestAPeriodForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelInfo)
		observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, math.MaxInt64))
		for range 100 {
			observe(t.Context(), failedAt(time.Now(), "p"))
			<-time.After(2000 * time.Hour)
		}
		require.Len(t, lines.taken(), 1)
	})
}

// Time that jumps back, as that of a goroutine which enters a test bubble does, holds nothing back for decades.
func TestTimeThatJumpsBack(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Hour))
	tell := func() { observe(t.Context(), failedAt(time.Now(), "p")) }
	tell()
	tell()
	require.Len(t, lines.taken(), 1)
	synctest.Test(t, func(t *testing.T) {
		tell()
		require.Len(t, lines.taken(), 2, "what was held back outside, and the bubble's first")
		tell()
		require.Empty(t, lines.taken())
	})
}

// The period is the program's own time: pipelines on other clocks, at whatever instants, end nobody's period, neither another's nor
// their own, and are held back like all.
func TestPipelinesOnOtherClocksDefeatNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelInfo)
		observe := slogx.Observer(slog.New(lines))
		then, fake := time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC), clockwork.NewFakeClockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		ahead := pipeline.For("ahead").Retry(steady(func(c *retry.Config) { c.MaxAttempts, c.Clock = 1, fake })).Observe(observe).MustBuild()
		for range 1000 {
			observe(t.Context(), failedAt(time.Now(), "real"))
			observe(t.Context(), failedAt(then, "stuck"))
			_, _ = pipeline.Do(t.Context(), ahead, fails(1, errDown))
			fake.Advance(time.Hour)
		}
		require.Equal(t, 3*5, len(lines.taken()))
		<-time.After(time.Minute)
		observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: then})
		require.ElementsMatch(t, []string{
			"ERROR lines suppressed pipeline=real line=pipeline: call failed suppressed=995 per=1m0s",
			"ERROR lines suppressed pipeline=stuck line=pipeline: call failed suppressed=995 per=1m0s",
			"ERROR lines suppressed pipeline=ahead line=pipeline: call failed reason=attempts_exhausted suppressed=995 per=1m0s",
		}, lines.taken())
	})
}

// failedAt is the end of a call that failed.
func failedAt(at time.Time, name string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.CallFinished, Time: at, Pipeline: name, Disposition: pipeline.Failed}
}

var suppressed = regexp.MustCompile(`suppressed=(\d+)`)

// Whatever happens at once, each line is either written or counted.
func TestEachLineIsWrittenOrCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelInfo)
		observe := slogx.Observer(slog.New(lines), slogx.Repeats(3, 10*time.Millisecond))
		const callers, each = 16, 200
		var done sync.WaitGroup
		for n := range callers {
			done.Go(func() {
				for i := range each {
					<-time.After(time.Duration(1+(n*i)%7) * 100 * time.Microsecond)
					observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: time.Now(), Disposition: pipeline.Failed, Pipeline: strconv.Itoa(n % 3)})
				}
			})
		}
		done.Wait()
		<-time.After(time.Second)
		observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: time.Now()}) // a success
		written, counted := 0, 0
		for _, line := range lines.taken() {
			if m := suppressed.FindStringSubmatch(line); m != nil {
				n, err := strconv.Atoi(m[1])
				require.NoError(t, err)
				counted += n
			} else {
				written++
			}
		}
		require.Equal(t, callers*each, written+counted)
		require.NotZero(t, counted)
	})
}

// A goroutine that read the time before another began the period, and counts after it, does not begin it anew.
func TestThePeriodsFirstLinesAreCountedExactly(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Hour))
	const periods = 1000
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for n := range periods {
				observe(t.Context(), failedAt(time.Now(), strconv.Itoa(n)))
			}
		})
	}
	done.Wait()
	require.Equal(t, periods, len(lines.taken()))
}

// What is remembered is bounded: names without end count as alike.
func TestNamesWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelInfo)
		observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Minute))
		for n := range 5000 {
			observe(t.Context(), failedAt(time.Now(), strconv.Itoa(n)))
		}
		require.Len(t, lines.taken(), 1024+1)
		<-time.After(time.Minute)
		for n := range 5000 {
			observe(t.Context(), failedAt(time.Now(), strconv.Itoa(5000+n)))
		}
		got := lines.taken()
		require.Len(t, got, 1+1024+1, "what was held back, and room again")
		require.Equal(t, "ERROR lines suppressed line=pipeline: lines of too many kinds suppressed=3975 per=1m0s", got[0])
	})
}

// The count is told at the level of what was held back, where that is enabled still; a line that is not enabled is not held back.
func TestTheCountHasTheLinesLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for least, want := range map[slog.Level]int{slog.LevelWarn: 1, slog.LevelError: 0} {
			lines := newPad(slog.LevelWarn)
			observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Second))
			tell := func(how pipeline.Disposition) {
				observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: time.Now(), Disposition: how})
			}
			for range 3 {
				tell(pipeline.Rejected)
				tell(pipeline.Cancelled) // an Info
			}
			require.Len(t, lines.taken(), 1)
			lines.least = least
			<-time.After(8 * time.Second)
			tell(pipeline.Succeeded)
			got := lines.taken()
			require.Len(t, got, want)
			if want == 1 {
				require.Equal(t, "WARN lines suppressed line=pipeline: call rejected suppressed=2 per=1s", got[0])
			}
		}
	})
}

// Nothing is lost between looking for what is over and counting: here the period ends in between, and another line was held back.
func TestALineThatComesInBetweenIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelInfo)
		began := time.Now()
		var observe func(context.Context, pipeline.Event)
		tell := func() { observe(t.Context(), failedAt(time.Now(), "p")) }
		between := false
		observe = slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Minute), slogx.Level(func(pipeline.Event) slog.Level {
			if between {
				between = false
				tell()
				<-time.After(time.Minute - time.Since(began))
			}
			return slog.LevelError
		}))
		tell()
		<-time.After(time.Minute - time.Nanosecond)
		between = true
		tell()
		<-time.After(time.Hour)
		tell()
		failed := "ERROR pipeline: call failed pipeline=p attempts=0 took=0s"
		require.Equal(t, []string{failed, "ERROR lines suppressed pipeline=p line=pipeline: call failed suppressed=2 per=1m0s", failed}, lines.taken())
	})
}
