package otelx

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fairlead/fairlead/pipeline"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// scope names the instrumentation.
const scope = "github.com/fairlead/fairlead/pipeline/otelx"

// Config of a Telemetry; its zero value is ready to use.
type Config struct {
	// MeterProvider makes the instruments; nil = otel.GetMeterProvider(), whose instruments also work where the program sets its
	// provider later.
	MeterProvider metric.MeterProvider
	// NoSpanEvents leaves the caller's spans alone.
	NoSpanEvents bool
	// ErrorText is error.message of an attempt's event, up to its first 512 bytes; nil = none is written, since an error's text
	// may hold secrets. It is never asked about nil, must be safe for concurrent use, and runs on the caller's goroutine. Where it
	// panics there is no message.
	ErrorText func(err error) string
}

// Telemetry tells OpenTelemetry what pipelines do. Make it with [New]; the zero Telemetry is not ready.
type Telemetry struct {
	cfg          Config
	instruments  instruments
	known        names
	registration metric.Registration

	mu      sync.Mutex
	watched map[*pipeline.Pipeline]*watch
	sources map[Source]map[*pipeline.Pipeline]bool // what each had when it was asked last
	closed  bool
}

// watch is one pipeline's place, for as many as asked for it.
type watch struct {
	unsubscribe func()
	series      *series
	holders     int
}

// ErrClosed is what Watch and WatchAll say after Close.
var ErrClosed = errors.New("otelx: the Telemetry is closed")

// New makes the instruments. Its error is the MeterProvider's, joined if there are several.
func New(cfg Config) (*Telemetry, error) {
	provider := cfg.MeterProvider
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	t := &Telemetry{cfg: cfg, watched: map[*pipeline.Pipeline]*watch{}, sources: map[Source]map[*pipeline.Pipeline]bool{}}
	meter := provider.Meter(scope)
	if err := t.instruments.make(meter); err != nil {
		return nil, fmt.Errorf("otelx: making the instruments: %w", err)
	}
	var err error
	if t.registration, err = meter.RegisterCallback(t.collect, t.instruments.observed()...); err != nil {
		return nil, fmt.Errorf("otelx: registering the gauges: %w", err)
	}
	return t, nil
}

// Watch counts p's calls, and shows its guards, until stop or Close: whatever Update makes of it. A pipeline that is watched
// twice is counted once, until both have stopped; two pipelines of one name are added up. stop is idempotent; calls that have
// begun are still counted at their end. An error says that p is nil, or ErrClosed.
//
// Watch subscribes [Telemetry.Observe]: a pipeline whose Builder observes with it already would be counted twice.
func (t *Telemetry) Watch(p *pipeline.Pipeline) (stop func(), err error) {
	if p == nil {
		return nil, errors.New("otelx: Watch: p is nil: want a pipeline")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	t.hold(p)
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.release(p)
	}), nil
}

// hold and release are called with mu held.
func (t *Telemetry) hold(p *pipeline.Pipeline) {
	w := t.watched[p]
	if w == nil {
		s := t.known.of(p.Name())
		w = &watch{series: s, unsubscribe: p.Subscribe(func(ctx context.Context, e pipeline.Event) { t.record(ctx, s, &e) })}
		t.watched[p] = w
	}
	w.holders++
}

func (t *Telemetry) release(p *pipeline.Pipeline) {
	w := t.watched[p]
	if w == nil { // closed meanwhile
		return
	}
	if w.holders--; w.holders == 0 {
		delete(t.watched, p)
		w.unsubscribe()
	}
}

// Observe is for Builder.Observe where the pipeline itself is not at hand: it counts calls, attempts and rejections and writes
// span events, but shows no guards. Not together with Watch on one pipeline. It goes on after Close.
func (t *Telemetry) Observe(ctx context.Context, e pipeline.Event) {
	t.record(ctx, t.known.of(e.Pipeline), &e)
}

// Close stops watching and unregisters the gauges; it is idempotent. Instruments belong to the MeterProvider, which the program
// shuts down itself.
func (t *Telemetry) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	for p, w := range t.watched {
		w.unsubscribe()
		delete(t.watched, p)
	}
	clear(t.sources)
	t.mu.Unlock()
	return t.registration.Unregister() // waits for a collection under way, which may want mu
}
