package registry

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
)

// Names that Gets have served with defaults meet names that reloads configure: one instance per name, and no torn map.
func TestServedDefaultsAndReloadsAtOnce(t *testing.T) {
	r := loaded(t, "")
	first := r.MustBreaker("7")
	var done atomic.Bool
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := 0; !done.Load(); n++ {
				if c, err := r.Breaker(fmt.Sprint(n % 500)); err == nil && n%500 == 7 && c != first {
					t.Error("another instance of one name")
				}
				_ = r.Describe()
				runtime.Gosched()
			}
		})
	}
	for n := range 200 {
		reload(t, r, fmt.Sprintf("resilience: {circuit-breaker: {n%d: {}}}", n%3))
		reload(t, r, "resilience: {}")
	}
	done.Store(true)
	all.Wait()
	assert.Same(t, first, r.MustBreaker("7"))
}

// While a document is tried, a Get may serve the same name with defaults: the document then cannot make it shared unnoticed.
func TestANameServedWhileADocumentIsTriedIsStillChecked(t *testing.T) {
	var r *Registry
	r = loaded(t, "", WithPipeline(func(_ string, b pipeline.Builder) pipeline.Builder {
		_ = r.MustBreaker("a") // as another goroutine would
		return b
	}))
	err := r.Reload(strings.NewReader("resilience: {store: {redis: 'redis://127.0.0.1:1'}, circuit-breaker: {a: {shared: true}}, pipelines: {p: {}}}"))
	assert.EqualError(t, err, "resilience.circuit-breaker.a.shared is true: want false, as it is: a reload cannot change it, a restart can")
	assert.IsType(t, (*breaker.Breaker)(nil), r.MustBreaker("a"))
}

// Close may come from several sides at once, with Gets, calls, reloads and watches going on: everybody comes back.
func TestCloseWhileEverythingElseGoesOn(t *testing.T) {
	s := redistest.Shared(t)
	for range 20 {
		r := process(t, s, s.Prefix(t))
		doc := fmt.Sprintf(fleetDocument, s.Addr, r.store.prefix)
		var all sync.WaitGroup
		for n := range 3 {
			all.Go(func() { assert.NoError(t, r.Close()) })
			all.Go(func() { _ = r.Watch(bg, "/nowhere", nil) })
			all.Go(func() {
				if err := r.Reload(strings.NewReader(strings.Replace(doc, "consecutive: 2", fmt.Sprintf("consecutive: %d", 2+n), 1))); err != nil {
					assert.ErrorIs(t, err, errClosed)
				}
			})
			all.Go(func() { _ = r.MustPipeline("p").Run(bg, func(context.Context) error { return nil }) })
			all.Go(func() { _ = r.Describe().String(); _ = r.MustRetry(fmt.Sprint(n)) })
		}
		all.Wait()
		assert.ErrorIs(t, r.Reload(strings.NewReader(doc)), errClosed)
		require.NoError(t, r.Close())
	}
}

// A shared guard that cannot tell the store what it has to tell must not make everybody else wait for the registry's end.
func TestGetsGoOnWhileCloseWaitsForTheStore(t *testing.T) {
	r := loaded(t, "resilience: {bulkhead: {a: {max-concurrent: 1}}}")
	broken := *r.bulkheads.kind
	closing, proceed := make(chan struct{}), make(chan struct{})
	broken.close = func(context.Context, slots) error { close(closing); <-proceed; return errDown }
	r.bulkheads.kind = &broken
	closed := make(chan error)
	go func() { closed <- r.Close() }()
	<-closing
	require.NoError(t, second(r.Retry("a new name")), "which takes the registry's lock")
	assert.ErrorIs(t, r.Reload(strings.NewReader("")), errClosed)
	assert.ErrorIs(t, r.Watch(bg, "x", nil), errClosed)
	assert.NotEmpty(t, r.Describe().Instances)
	again := make(chan error)
	go func() { again <- r.Close() }()
	close(proceed)
	assert.ErrorIs(t, <-closed, errDown)
	assert.ErrorIs(t, <-again, errDown, "one Close, whoever asks")
	r.closeErr = nil // the test's end closes it once more
}

// Half of the calls of a burst begin before a switch and half after it: each is whole, and nothing that is held is lost.
func TestPermitsHeldAcrossTheSwitchGoBackToTheirGuards(t *testing.T) {
	doc := "resilience: {enabled: %v, bulkhead: {db: {max-concurrent: 64}}, circuit-breaker: {c: {window-size: 1000, failure-rate-threshold: off, consecutive: off, failure-threshold: 1000}}, pipelines: {p: {bulkhead: db, circuit-breaker: c, timeout: 1h}}}"
	r := loaded(t, fmt.Sprintf(doc, true))
	p := r.MustPipeline("p")
	b := r.bulkheads.now["db"].item
	guarded, plain := 0, 0
	for n := range 40 {
		var calls sync.WaitGroup
		var limited, failed atomic.Int64
		proceed := make(chan struct{})
		inside := make(chan struct{}, 16)
		for range 16 {
			calls.Go(func() {
				err := p.Run(bg, func(ctx context.Context) error {
					_, ok := ctx.Deadline()
					if ok {
						limited.Add(1)
					}
					inside <- struct{}{}
					<-proceed
					return errDown
				})
				if err == errDown {
					failed.Add(1)
				}
			})
		}
		for range 8 {
			<-inside
		}
		before := r.MustBreaker("c").Snapshot().Failures
		reload(t, r, fmt.Sprintf(doc, n%2 == 1))
		for range 8 {
			<-inside
		}
		assert.Equal(t, float64(limited.Load()), b.Inspect().Gauges[0].Value, "who has a deadline holds a slot")
		close(proceed)
		calls.Wait()
		assert.Equal(t, int64(16), failed.Load())
		assert.Zero(t, b.Inspect().Gauges[0].Value)
		assert.Equal(t, before+int(limited.Load()), r.MustBreaker("c").Snapshot().Failures, "who holds a permit is counted")
		guarded, plain = guarded+int(limited.Load()), plain+16-int(limited.Load())
	}
	assert.Positive(t, guarded)
	assert.Positive(t, plain)
}
