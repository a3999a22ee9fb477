package otelx_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/otelx"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// spans records what tracing saw.
func spans(t *testing.T) (*tracetest.SpanRecorder, *trace.TracerProvider) {
	recorder := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return recorder, provider
}

// lines are a span's events, each with when since began.
func lines(began time.Time, events []trace.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprintf("%v %s %s", e.Time.Sub(began), e.Name, attrs(e.Attributes)))
	}
	return all
}

// An attempt is an event on the caller's span, and no span of its own.
func TestAnAttemptIsAnEventOnTheCallersSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		recorder, provider := spans(t)
		p := pipeline.For("p").Retry(steady()).MustBuild()
		defer d.watch(t, p)()
		began := time.Now()
		ctx, span := provider.Tracer("test").Start(t.Context(), "caller's")
		failing := fails(1, errDown)
		require.NoError(t, p.Run(ctx, func(ctx context.Context) error {
			<-time.After(250 * time.Millisecond)
			return failing(ctx)
		}))
		span.End()
		require.NoError(t, p.Run(ctx, fails(0, nil)), "a span that has ended is left alone")
		require.NoError(t, p.Run(t.Context(), fails(0, nil)), "a caller without a span")
		require.Len(t, recorder.Ended(), 1)
		require.Len(t, recorder.Started(), 1)
		require.Equal(t, []string{
			"250ms resilience.attempt pipeline.name=p attempt.number=1 attempt.duration=0.25 outcome=failed error.type=*errors.errorString",
			"600ms resilience.attempt pipeline.name=p attempt.number=2 attempt.duration=0.25 outcome=succeeded",
		}, lines(began, recorder.Ended()[0].Events()))
	})
}

// nobody is an error whose typed nil has no text.
type nobody struct{ text string }

func (n *nobody) Error() string { return n.text }

// An error's text is written where ErrorText says so, bounded; where it panics there is none. NoSpanEvents writes no events at all.
func TestWhatASpanIsToldOfAnError(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*otelx.Config)
		err    error
		want   string
	}{
		"nothing":   {func(*otelx.Config) {}, errDown, "outcome=failed error.type=*errors.errorString"},
		"the text":  {func(c *otelx.Config) { c.ErrorText = error.Error }, errDown, "outcome=failed error.type=*errors.errorString error.message=down"},
		"a panic":   {func(c *otelx.Config) { c.ErrorText = error.Error }, (*nobody)(nil), "outcome=failed error.type=*otelx_test.nobody"},
		"an empty":  {func(c *otelx.Config) { c.ErrorText = func(error) string { return "" } }, errDown, "outcome=failed error.type=*errors.errorString"},
		"a book":    {func(c *otelx.Config) { c.ErrorText = error.Error }, &nobody{strings.Repeat("世", 1e6)}, "error.message=" + strings.Repeat("世", 170) + "…"},
		"no events": {func(c *otelx.Config) { c.NoSpanEvents = true }, errDown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, test.change)
			recorder, provider := spans(t)
			p := pipeline.For("p").MustBuild()
			defer d.watch(t, p)()
			ctx, span := provider.Tracer("test").Start(t.Context(), "caller's")
			require.Equal(t, test.err, p.Run(ctx, fails(1, test.err)))
			span.End()
			got := lines(time.Now(), recorder.Ended()[0].Events())
			if test.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.True(t, strings.HasSuffix(got[0], test.want), got[0])
			require.Equal(t, "1", d.read(t)["counter resilience.attempts {attempt}{outcome=failed pipeline.name=p}"])
		})
	}
}

// A span's event is at the event's time.
func TestASpansEventIsAtTheEventsTime(t *testing.T) {
	d := newDesk(t)
	recorder, provider := spans(t)
	began := time.Now()
	ctx, span := provider.Tracer("test").Start(t.Context(), "caller's")
	d.Observe(ctx, pipeline.Event{Kind: pipeline.AttemptFinished, Time: began.Add(-time.Hour), Pipeline: "p", Attempt: 1, Took: time.Minute})
	span.End()
	require.Equal(t, []string{"-1h0m0s resilience.attempt pipeline.name=p attempt.number=1 attempt.duration=60 outcome=succeeded"},
		lines(began, recorder.Ended()[0].Events()))
}
