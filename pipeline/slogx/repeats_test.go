package slogx_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/slogx"
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
	lines := newPad(slog.LevelInfo)
	observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, math.MaxInt64))
	for i := range 100 {
		observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: time.Unix(int64(i)*1e7, 0), Disposition: pipeline.Failed})
	}
	require.Len(t, lines.taken(), 1)
}

// A clock that jumped back, as one that crosses into a test bubble does, holds nothing back for decades.
func TestAClockThatJumpsBack(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Minute))
	at := func(year int) {
		observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), Disposition: pipeline.Failed})
	}
	at(2026)
	at(2026)
	require.Len(t, lines.taken(), 1)
	at(2000)
	require.Len(t, lines.taken(), 2, "what was held back in 2026, and the line of 2000")
	at(2000)
	require.Empty(t, lines.taken())
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

// What is remembered is bounded: names without end count as alike.
func TestNamesWithoutEnd(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Minute))
	tell := func(n int, at time.Time) {
		observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: at, Disposition: pipeline.Failed, Pipeline: fmt.Sprint(n)})
	}
	for n := range 5000 {
		tell(n, time.Unix(1, 0))
	}
	require.Len(t, lines.taken(), 1024+1)
	for n := range 5000 {
		tell(5000+n, time.Unix(61, 0))
	}
	got := lines.taken()
	require.Len(t, got, 1+1024+1, "what was held back, and room again")
	require.Equal(t, "ERROR lines suppressed line=pipeline: lines of too many kinds suppressed=3975 per=1m0s", got[0])
}

// The count is told at the level of what was held back, where that is enabled still; a line that is not enabled is not held back.
func TestTheCountHasTheLinesLevel(t *testing.T) {
	for least, want := range map[slog.Level]int{slog.LevelWarn: 1, slog.LevelError: 0} {
		lines := newPad(slog.LevelWarn)
		observe := slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Second))
		tell := func(at int64, how pipeline.Disposition) {
			observe(context.Background(), pipeline.Event{Kind: pipeline.CallFinished, Time: time.Unix(at, 0), Disposition: how})
		}
		for range 3 {
			tell(1, pipeline.Rejected)
			tell(1, pipeline.Cancelled) // an Info
		}
		require.Len(t, lines.taken(), 1)
		lines.least = least
		tell(9, pipeline.Succeeded)
		got := lines.taken()
		require.Len(t, got, want)
		if want == 1 {
			require.Equal(t, "WARN lines suppressed line=pipeline: call rejected suppressed=2 per=1s", got[0])
		}
	}
}

// Nothing is lost between looking for what is over and writing: here an older event comes in between, as another goroutine's may.
func TestALineThatComesInBetweenIsCounted(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	var observe func(context.Context, pipeline.Event)
	tell := func(at int64) {
		observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: time.Unix(at, 0), Disposition: pipeline.Failed})
	}
	observe = slogx.Observer(slog.New(lines), slogx.Repeats(1, time.Minute), slogx.Level(func(e pipeline.Event) slog.Level {
		if e.Time.Unix() == 61 {
			tell(59)
		}
		return slog.LevelError
	}))
	tell(1)
	tell(61)
	tell(200)
	failed := "ERROR pipeline: call failed pipeline= attempts=0 took=0s"
	require.Equal(t, []string{failed, "ERROR lines suppressed line=pipeline: call failed suppressed=2 per=1m0s", failed}, lines.taken())
}
