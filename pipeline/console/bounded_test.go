package console

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// refused is a refusal in some call's error, as it comes from a pipeline.
var refused = &breaker.OpenError{Name: "bank", State: breaker.Open, Wait: time.Second}

// kinds of events that a pipeline tells.
var events = []pipeline.Event{
	{Kind: pipeline.CallStarted},
	{Kind: pipeline.AttemptFinished, Attempt: 1, Took: 3 * time.Millisecond},
	{Kind: pipeline.AttemptFinished, Attempt: 1, Took: 3 * time.Millisecond, Err: errDown},
	{Kind: pipeline.RetryScheduled, Attempt: 2, Delay: time.Second},
	{Kind: pipeline.AttemptFinished, Attempt: 2, Took: 3 * time.Millisecond},
	{Kind: pipeline.RetryStopped, Attempt: 2, Reason: retry.AttemptsExhausted},
	{Kind: pipeline.GuardRejected, Layer: "breaker", Attempt: 1, Err: refused},
	{Kind: pipeline.CallFinished, Took: 5 * time.Millisecond},
	{Kind: pipeline.CallFinished, Disposition: pipeline.Failed, Took: 5 * time.Millisecond, Err: errDown},
	{Kind: pipeline.CallFinished, Disposition: pipeline.Rejected, Took: 5 * time.Millisecond, Err: refused},
	{Kind: pipeline.CallFinished, Disposition: pipeline.Deferred, Took: 5 * time.Millisecond, Wait: time.Hour, Err: errDown},
	{Kind: pipeline.CallFinished, Disposition: pipeline.Expired, Took: 5 * time.Millisecond, Err: context.DeadlineExceeded},
	{Kind: pipeline.CallFinished, Disposition: pipeline.Cancelled, Took: 5 * time.Millisecond, Err: context.Canceled},
}

// The events above are told as a pipeline tells them: each way in which a call can end is counted, and none twice.
func TestTheEventsOfTheseTestsReachEveryCounter(t *testing.T) {
	tally := &tally{text: error.Error}
	tally.limits.Store(&limits{})
	for _, e := range events {
		tally.observe(bg, e)
	}
	r := tally.read()
	require.Equal(t, totals{Calls: 6, Failed: 3, Refused: 1, Left: 1, Attempts: 3, Broken: 1, Retries: 1}, r.totals())
}

// "cost per event benchmark, 0 allocations per event": beyond the four texts of a second, a failure is a counter too.
func TestAllocNothingPerEvent(t *testing.T) {
	tally := &tally{text: error.Error}
	for _, e := range events {
		require.Zero(t, testing.AllocsPerRun(1000, func() { tally.observe(bg, e) }), "%v %v", e.Kind, e.Err)
	}
}

func BenchmarkEvent(b *testing.B) {
	tally := &tally{text: error.Error}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tally.observe(bg, events[i%len(events)])
	}
}

// What a console costs a call, beside a subscriber that does nothing and nobody at all.
func BenchmarkCall(b *testing.B) {
	for name, subscribe := range map[string]func(p *pipeline.Pipeline) func(){
		"nobody":  func(*pipeline.Pipeline) func() { return func() {} },
		"nothing": func(p *pipeline.Pipeline) func() { return p.Subscribe(func(context.Context, pipeline.Event) {}) },
		"console": func(p *pipeline.Pipeline) func() {
			c, err := Handler(Pipelines(p))
			require.NoError(b, err)
			return func() { _ = c.Close() }
		},
	} {
		b.Run(name, func(b *testing.B) {
			p := pipeline.For("p").Breaker(breaker.MustNew(breaker.Config{Window: breaker.Count(100)})).MustBuild()
			defer subscribe(p)()
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Run(bg, succeed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSecond is one second of 200 pipelines: looking, publishing, and encoding for who watches.
func BenchmarkSecond(b *testing.B) {
	c, all := many(b, 200)
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range all {
			_ = p.Run(bg, succeed)
		}
		c.sample(time.Now())
		c.mu.Lock()
		_ = c.frame(c.seq - 1)
		c.mu.Unlock()
	}
}

func many(tb testing.TB, n int) (*Console, []*pipeline.Pipeline) {
	all := make([]*pipeline.Pipeline, n)
	for i := range all {
		all[i], _ = bank(nil)
	}
	c, err := newConsole(Pipelines(all...), nil)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	c.sample(time.Now())
	return c, all
}

func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// "It survives 200 pipelines and 10,000 events/s without growing": ten seconds of 10,000 events, each failure with a text of its own,
// watched by two who are told every second, then as much again.
func TestTheHeapDoesNotGrowWithEvents(t *testing.T) {
	c, _ := many(t, 200)
	tallies := make([]*tally, 0, 200)
	for _, w := range c.watched {
		tallies = append(tallies, &w.tally)
	}
	n := 0
	flood := func(seconds int) {
		for range seconds {
			for range 10_000 {
				n++
				e := events[n%len(events)]
				if e.Err == errDown {
					e.Err = errors.New("request " + strconv.Itoa(n) + string(rune('a'+n%26)) + ": 503")
				}
				tallies[n%len(tallies)].observe(bg, e)
			}
			c.journal.OnChange(breaker.Change{Name: "bank" + strconv.Itoa(n), From: breaker.Closed, To: breaker.Open, Reason: "5 failures in a row"})
			c.sample(time.Now())
			c.mu.Lock()
			_, _ = c.frame(c.seq-1), c.frame(0)
			c.mu.Unlock()
		}
	}
	flood(10)
	before := heap()
	flood(10)
	grown := heap() - before
	require.Less(t, grown, int64(200<<10), "after 100,000 more events")
	runtime.KeepAlive(c)
}

// The doc's figure for each pipeline.
func TestAPipelineCostsWhatTheDocSays(t *testing.T) {
	all := make([]*pipeline.Pipeline, 200)
	for i := range all {
		all[i], _ = bank(nil)
	}
	before := heap()
	c, err := newConsole(Pipelines(all...), nil)
	require.NoError(t, err)
	c.sample(time.Now())
	each := (heap() - before) / int64(len(all))
	t.Logf("%d bytes for each pipeline", each)
	require.Less(t, each, int64(30<<10))
	require.NoError(t, c.Close())
	runtime.KeepAlive(all)
}
