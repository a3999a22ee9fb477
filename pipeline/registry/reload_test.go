package registry

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

func reload(t *testing.T, r *Registry, text string) {
	t.Helper()
	require.NoError(t, r.Reload(strings.NewReader(text)))
}

func TestAReloadKeepsTokensThatAccruedAtTheOldRate(t *testing.T) {
	clk := clockwork.NewFakeClock()
	r := loaded(t, "resilience: {rate-limiter: {api: {max-tokens: 100, refill-rate: 10}}}", WithClock(clk))
	l := r.MustRateLimit("api").(*ratelimit.Limiter)
	require.NoError(t, l.AllowN(100))
	clk.Advance(3 * time.Second) // 30 tokens at 10 per second
	reload(t, r, "resilience: {rate-limiter: {api: {max-tokens: 100, refill-rate: 1}}}")
	assert.Same(t, l, r.MustRateLimit("api"))
	assert.InDelta(t, 30, l.Tokens(), 1e-6)
	clk.Advance(5 * time.Second)
	assert.InDelta(t, 35, l.Tokens(), 1e-6)
}

func TestAReloadKeepsAnOpenCircuitAndItsTime(t *testing.T) {
	clk := clockwork.NewFakeClock()
	doc := "resilience: {circuit-breaker: {a: {consecutive: 2, wait-duration-in-open: %s}}, pipelines: {p: {circuit-breaker: a}}}"
	r := loaded(t, fmt.Sprintf(doc, "10s"), WithClock(clk))
	p := r.MustPipeline("p")
	for range 2 {
		require.ErrorIs(t, p.Run(bg, func(context.Context) error { return errDown }), errDown)
	}
	clk.Advance(4 * time.Second)
	reload(t, r, fmt.Sprintf(doc, "60s"))
	wait, ok := rejection.RetryAfter(p.Run(bg, func(context.Context) error { return nil }))
	require.True(t, ok)
	assert.Equal(t, 6*time.Second, wait, "the open time stands")
	clk.Advance(6 * time.Second)
	assert.NoError(t, p.Run(bg, func(context.Context) error { return nil }))
	assert.Equal(t, breaker.Closed, r.MustBreaker("a").State())
}

func TestAReloadCountsPermitsInFlightAgainstTheNewLimitAndLetsWaitersIn(t *testing.T) {
	r := loaded(t, "resilience: {bulkhead: {db: {max-concurrent: 2, max-wait: 1h}}}")
	b := r.MustBulkhead("db")
	first, err := b.TryAcquire(bg)
	require.NoError(t, err)
	other, err := b.TryAcquire(bg)
	require.NoError(t, err)
	entered := make(chan error)
	go func() {
		p, err := b.Acquire(bg)
		_ = p.Settle(bg, leaf.Outcome{})
		entered <- err
	}()
	for b.Queued() == 0 {
		runtime.Gosched()
	}
	reload(t, r, "resilience: {bulkhead: {db: {max-concurrent: 3, max-wait: 1h}}}")
	require.NoError(t, <-entered, "let in at once by the larger limit")
	reload(t, r, "resilience: {bulkhead: {db: {max-concurrent: 1}}}")
	_ = first.Settle(bg, leaf.Outcome{})
	_, err = b.TryAcquire(bg)
	assert.ErrorIs(t, err, bulkhead.ErrFull, "one is still in flight, of one")
	_ = other.Settle(bg, leaf.Outcome{})
	_, err = b.TryAcquire(bg)
	assert.NoError(t, err)
}

func TestAReloadKeepsTheBalanceOfRetryBudgets(t *testing.T) {
	doc := "resilience: {retry-budget: {b: {capacity: %d}}, retry: {a: {budget: b, max-attempts: %d, wait-duration: 0}}}"
	r := loaded(t, fmt.Sprintf(doc, 10, 2))
	b := r.MustRetryBudget("b").(*budget.Tokens)
	for range 4 {
		token, ok := b.Reserve()
		require.True(t, ok)
		token.Commit()
	}
	reload(t, r, fmt.Sprintf(doc, 8, 5))
	assert.Equal(t, 6, b.Balance())
	assert.Same(t, b, r.MustRetry("a").Config().Budget)
	assert.Equal(t, 5, r.MustRetry("a").Config().MaxAttempts)
}

func TestOneInvalidSectionChangesNothing(t *testing.T) {
	var told []error
	r := loaded(t, "resilience: {retry: {a: {max-attempts: 2}}, bulkhead: {db: {max-concurrent: 2}}}", WithOnReload(func(err error) { told = append(told, err) }))
	before := r.Describe()
	err := r.Reload(strings.NewReader("resilience: {retry: {a: {max-attempts: 9}, b: {}}, bulkhead: {db: {max-concurrent: -1}}}"))
	require.EqualError(t, err, "resilience.bulkhead.db.max-concurrent is -1: want a whole number from 1")
	assert.Equal(t, before, r.Describe())
	assert.Equal(t, 2, r.MustRetry("a").Config().MaxAttempts)
	assert.Error(t, second(r.Retry("b")))
	assert.Equal(t, []error{err}, told)
}

// An empty document would take every instance away: who means that says so, and a file that was cut off does not.
func TestAReloadOfADocumentThatSaysNothingChangesNothing(t *testing.T) {
	const want = "registry: the document is empty, which would remove every instance: want `resilience: {}` where that is meant"
	r := loaded(t, "resilience: {enabled: false, bulkhead: {db: {max-concurrent: 2}}, pipelines: {p: {bulkhead: db}}}")
	before := r.Describe()
	for _, text := range []string{
		"", " \n", "\ufeff", "# all of it was commented out\n", "---\n", "--- # a beginning\n...\n", "~", "{}", "resilience:", "resilience: # to come\n#  retry:\n", "resilience: null\nother: 1", "a: &a\nresilience: *a",
		"null", `{"resilience": null}`, `{"resilience": null, "other": {}}`,
	} {
		assert.EqualError(t, r.Reload(strings.NewReader(text)), want, "%q", text)
		assert.Equal(t, before, r.Describe(), "%q", text)
	}
	assert.EqualError(t, r.Reload(strings.NewReader("other: 1")), "the document has no key resilience; it has: other")
	assert.EqualError(t, r.Reload(strings.NewReader("resilience: ''")), "resilience is '': want a mapping")
	reload(t, r, "resilience: {}")
	assert.Empty(t, r.Describe().Instances)
	assert.True(t, r.Describe().Enabled)
}

// LoadYAML and its sisters take it: a program may begin without a single setting.
func TestAnEmptyDocumentLoads(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "resilience:", "{}"} {
		assert.Empty(t, loaded(t, text).Describe().Instances, "%q", text)
	}
	for _, r := range []*Registry{must(LoadJSON(strings.NewReader(""))), must(LoadJSON(strings.NewReader("{}"))), must(LoadMap(nil))} {
		assert.Empty(t, r.Describe().Instances)
		require.NoError(t, r.Close())
	}
}

func TestARemovedNameKeepsItsInstanceForWhoHoldsItAndComesBackWithIt(t *testing.T) {
	doc := "resilience: {bulkhead: {db: {max-concurrent: 2}%s}, pipelines: {%s}}"
	r := loaded(t, fmt.Sprintf(doc, ", old: {max-concurrent: 1}", "p: {bulkhead: old}"))
	old, p := r.MustBulkhead("old"), r.MustPipeline("p")
	reload(t, r, fmt.Sprintf(doc, "", ""))
	assert.EqualError(t, second(r.Bulkhead("old")), "no resilience [bulkhead] instance named [old]; available: db")
	assert.EqualError(t, second(r.Pipeline("p")), "no resilience [pipelines] instance named [p]; available: (none)")
	require.NoError(t, p.Run(bg, func(context.Context) error {
		_, err := old.TryAcquire(bg)
		assert.ErrorIs(t, err, bulkhead.ErrFull, "the pipeline holds its one slot")
		return nil
	}))
	reload(t, r, fmt.Sprintf(doc, ", old: {max-concurrent: 2}", "p: {bulkhead: old}"))
	assert.Same(t, old, r.MustBulkhead("old"))
	assert.Same(t, p, r.MustPipeline("p"))
}

func TestAReloadReadsJSONAndYAML(t *testing.T) {
	r := loaded(t, "")
	reload(t, r, `{"resilience": {"bulkhead": {"db": {"max-concurrent": 3}}}}`)
	assert.Equal(t, 3, r.MustBulkhead("db").(*bulkhead.Bulkhead).Config().MaxConcurrent)
	reload(t, r, "{resilience: {bulkhead: {db: {max-concurrent: 4}}}} # flow style, but YAML")
	assert.Equal(t, 4, r.MustBulkhead("db").(*bulkhead.Bulkhead).Config().MaxConcurrent)
	assert.ErrorContains(t, r.Reload(strings.NewReader(`{"resilience": {"bulkhead": {"db": {"max-concurrent": 3}, "db": {"max-concurrent": 4}}}}`)), "resilience.bulkhead.db stands there twice")
}

func TestAReloadCannotChangeWhatAnInstanceIs(t *testing.T) {
	r := loaded(t, "resilience: {rate-limiter: {a: {max-tokens: 5, refill-rate: 0}, b: {refill-rate: 1}}, retry-budget: {c: {}}}")
	err := r.Reload(strings.NewReader("resilience: {rate-limiter: {a: {refill-rate: 1}, b: {max-tokens: 5, refill-rate: 0}}, retry-budget: {c: {capacity: 5}}}"))
	require.Error(t, err)
	assert.Equal(t, []string{
		"resilience.retry-budget.c.capacity is 5: want no capacity, as it is: a reload cannot change it, a restart can",
		"resilience.rate-limiter.a.refill-rate is 1: want 0 (a quota), as it is: a reload cannot change it, a restart can",
		"resilience.rate-limiter.b.refill-rate is 0: want a rate above 0, as it is: a reload cannot change it, a restart can",
	}, strings.Split(err.Error(), "\n"))
}

func TestAQuotaKeepsWhatWasSpent(t *testing.T) {
	doc := "resilience: {rate-limiter: {a: {max-tokens: %d, refill-rate: 0}}}"
	r := loaded(t, fmt.Sprintf(doc, 5))
	l := r.MustRateLimit("a").(*ratelimit.Limiter)
	require.NoError(t, l.AllowN(3))
	reload(t, r, fmt.Sprintf(doc, 10))
	assert.InDelta(t, 7, l.Tokens(), 0)
}

func TestDisabledMakesEveryPipelineAPlainCallAndEnabledBringsItBack(t *testing.T) {
	doc := "resilience: {enabled: %v, bulkhead: {db: {max-concurrent: 1}}, pipelines: {p: {bulkhead: db, timeout: 1s}%s}}"
	r := loaded(t, fmt.Sprintf(doc, true, ", gone: {bulkhead: db}"))
	p, gone := r.MustPipeline("p"), r.MustPipeline("gone")
	permit, err := r.MustBulkhead("db").TryAcquire(bg)
	require.NoError(t, err)
	defer func() { _ = permit.Settle(bg, leaf.Outcome{}) }()
	plain := func(p *pipeline.Pipeline) error {
		return p.Run(bg, func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); limited {
				return fmt.Errorf("it has a deadline")
			}
			return nil
		})
	}
	assert.ErrorIs(t, plain(p), bulkhead.ErrFull)
	reload(t, r, fmt.Sprintf(doc, false, ""))
	assert.False(t, r.Describe().Enabled)
	assert.NoError(t, plain(p))
	assert.NoError(t, plain(gone), "one that the same reload removed obeys the switch, too")
	assert.Same(t, p, r.MustPipeline("p"))
	reload(t, r, fmt.Sprintf(doc, true, ""))
	assert.ErrorIs(t, plain(p), bulkhead.ErrFull)
	assert.ErrorIs(t, plain(gone), bulkhead.ErrFull)
}

// Each call sees the whole of its pipeline or nothing of it, whenever the switch is thrown.
func TestTheSwitchIsNeverHalfApplied(t *testing.T) {
	doc := "resilience: {enabled: %v, bulkhead: {db: {max-concurrent: 1}}, pipelines: {p: {bulkhead: db, timeout: 1h}}}"
	r := loaded(t, fmt.Sprintf(doc, true))
	p, b := r.MustPipeline("p"), r.MustBulkhead("db").(*bulkhead.Bulkhead)
	var done atomic.Bool
	var calls atomic.Int64
	var on, off, half int
	var caller sync.WaitGroup
	caller.Go(func() {
		for !done.Load() {
			_ = p.Run(bg, func(ctx context.Context) error {
				_, limited := ctx.Deadline()
				switch slots := b.InUse(); {
				case limited != (slots == 1):
					half++
				case limited:
					on++
				default:
					off++
				}
				return nil
			})
			calls.Add(1)
			runtime.Gosched()
		}
	})
	for n := range 300 {
		reload(t, r, fmt.Sprintf(doc, n%2 == 0))
		for began := calls.Load(); calls.Load() < began+2; { // the second of them began after the reload
			runtime.Gosched()
		}
	}
	done.Store(true)
	caller.Wait()
	assert.Zero(t, half)
	assert.Positive(t, on)
	assert.Positive(t, off)
}

// 100 goroutines Get and Do during 1,000 reloads: one instance per name, no call fails for a reason that a reload made.
func TestGetsAndCallsDuringAThousandReloads(t *testing.T) {
	doc := "resilience: {enabled: %v, retry: {a: {max-attempts: %d}}, circuit-breaker: {a: {}}, bulkhead: {db: {max-concurrent: %d}}, pipelines: {p: {retry: a, circuit-breaker: a, bulkhead: db, timeout: %ds}}}"
	text := func(n int) string { return fmt.Sprintf(doc, n%3 > 0, 1+n%5, 200+n%7, 30+n%2) }
	r := loaded(t, text(1))
	p, b := r.MustPipeline("p"), r.MustBulkhead("db")
	var done atomic.Bool
	var calls, wrong atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for !done.Load() {
				if r.MustPipeline("p") != p || r.MustBulkhead("db") != b || p.Run(bg, func(context.Context) error { return nil }) != nil {
					wrong.Add(1)
				}
				calls.Add(1)
				runtime.Gosched() // there are fewer processors than goroutines: nobody is to wait for the others' time slices
			}
		})
	}
	for n := range 1000 {
		if n%10 == 9 {
			require.Error(t, r.Reload(strings.NewReader(text(n)+"x")))
			continue
		}
		reload(t, r, text(n))
	}
	done.Store(true)
	all.Wait()
	assert.Positive(t, calls.Load())
	assert.Zero(t, wrong.Load())
	assert.Zero(t, b.(*bulkhead.Bulkhead).InUse())
}

func TestServedDefaultsAreOneInstanceForConcurrentGets(t *testing.T) {
	r := loaded(t, "")
	var all sync.WaitGroup
	got := make([]breaker.Circuit, 50)
	for i := range got {
		all.Go(func() { got[i] = r.MustBreaker("x") })
	}
	all.Wait()
	for _, c := range got {
		assert.Same(t, got[0], c)
	}
}

func TestAfterCloseAReloadIsRefused(t *testing.T) {
	r := loaded(t, "")
	require.NoError(t, r.Close())
	require.NoError(t, r.Close(), "again")
	assert.ErrorIs(t, r.Reload(strings.NewReader("")), errClosed)
	assert.ErrorIs(t, r.Watch(bg, "x", nil), errClosed)
}
