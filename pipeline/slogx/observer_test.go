package slogx_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/slogx"
	"github.com/stretchr/testify/require"
)

// fullOne is a bulkhead whose only slot is taken.
func fullOne(t *testing.T) *bulkhead.Bulkhead {
	b := bulkhead.MustNew(bulkhead.Config{Name: "db", MaxConcurrent: 1})
	p, err := b.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Settle(context.Background(), leaf.Outcome{})) })
	return b
}

// A call is at most one line, at its end, which sums it up; its level goes by how it ended.
func TestACallIsOneLine(t *testing.T) {
	for name, test := range map[string]struct {
		b         func(*testing.T) pipeline.Builder
		cancelled bool
		fn        func(context.Context) (string, error)
		opts      []pipeline.Option
		want      string
	}{
		"succeeded": {b: func(*testing.T) pipeline.Builder { return pipeline.For("p") }, fn: fails(0, nil),
			want: "DEBUG pipeline: call succeeded pipeline=p attempts=1 took=0s"},
		"mended": {b: func(*testing.T) pipeline.Builder { return pipeline.For("p").Retry(steady()) }, fn: fails(2, errDown),
			want: "DEBUG pipeline: call succeeded pipeline=p attempts=3 took=200ms"},
		"failed": {b: func(*testing.T) pipeline.Builder { return pipeline.For("p") }, fn: fails(1, errDown),
			want: "ERROR pipeline: call failed pipeline=p attempts=1 took=0s error=down"},
		"used up, with an operation": {b: func(*testing.T) pipeline.Builder { return pipeline.For("p").Retry(steady()) }, fn: fails(9, errDown),
			opts: []pipeline.Option{pipeline.OperationID("order 7")},
			want: "ERROR pipeline: call failed pipeline=p operation=order 7 attempts=3 took=200ms reason=attempts_exhausted " +
				"error=retry: attempts_exhausted after 3 attempts: last failure: down"},
		"rejected": {b: func(t *testing.T) pipeline.Builder { return pipeline.For("p").Bulkhead(fullOne(t)) }, fn: fails(0, nil),
			want: `WARN pipeline: call rejected pipeline=p attempts=0 took=0s layer=bulkhead error=bulkhead "db": full (1 at once)`},
		"deferred": {b: func(*testing.T) pipeline.Builder { return pipeline.For("p").Retry(steady()) }, fn: fails(9, &later{time.Hour}),
			want: "WARN pipeline: call deferred pipeline=p attempts=1 took=0s reason=retry_after_exceeds_maximum_delay wait=1h0m0s " +
				"error=retry: retry_after_exceeds_maximum_delay after 1 attempt (wait 1h0m0s): last failure: later"},
		"expired": {b: func(*testing.T) pipeline.Builder {
			return pipeline.For("p").Timeout(timeout.MustNew(timeout.Config{Limit: time.Second}))
		}, fn: func(ctx context.Context) (string, error) { <-ctx.Done(); return secret, ctx.Err() },
			want: "ERROR pipeline: call expired pipeline=p attempts=1 took=1s error=timeout: limit of 1s reached"},
		"cancelled": {b: func(*testing.T) pipeline.Builder { return pipeline.For("p") }, cancelled: true, fn: fails(0, nil),
			want: "INFO pipeline: call cancelled pipeline=p attempts=0 took=0s error=context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.cancelled {
					cancel()
				}
				lines := newPad(slog.LevelDebug)
				p := test.b(t).Observe(slogx.Observer(slog.New(lines))).MustBuild()
				_, _ = pipeline.Do(ctx, p, test.fn, test.opts...)
				require.Equal(t, []string{test.want}, lines.taken())
			})
		})
	}
}

// Nothing is written of a success at Info, the level of most programs.
func TestASuccessIsNoLineAtInfo(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	p := pipeline.For("p").Retry(steady()).Observe(slogx.Observer(slog.New(lines), slogx.Every())).MustBuild()
	_, err := pipeline.Do(t.Context(), p, fails(0, nil))
	require.NoError(t, err)
	require.Empty(t, lines.taken())
}

// With Every each event is a line, and an attempt that will be retried is a warning at most.
func TestEveryEventIsALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelDebug)
		p := pipeline.For("p").Retry(steady()).Observe(slogx.Observer(slog.New(lines), slogx.Every())).MustBuild()
		_, err := pipeline.Do(t.Context(), p, fails(1, &later{time.Second}))
		require.NoError(t, err)
		require.Equal(t, []string{
			"DEBUG pipeline: call started pipeline=p",
			"WARN pipeline: attempt failed pipeline=p attempt=1 took=0s error=later",
			"INFO pipeline: retry scheduled pipeline=p attempt=2 delay=1s wait=1s",
			"DEBUG pipeline: attempt done pipeline=p attempt=2 took=0s",
			"DEBUG pipeline: call succeeded pipeline=p attempts=2 took=1s",
		}, lines.taken())
		p = pipeline.For("p").Retry(steady()).Bulkhead(fullOne(t)).RetryOnBulkheadFull().
			Observe(slogx.Observer(slog.New(lines), slogx.Every())).MustBuild()
		_, err = pipeline.Do(t.Context(), p, fails(0, nil))
		require.Error(t, err)
		got := lines.taken()
		require.Equal(t, `WARN pipeline: attempt rejected pipeline=p attempt=1 layer=bulkhead error=bulkhead "db": full (1 at once)`, got[1])
		require.Equal(t, "WARN pipeline: retry stopped pipeline=p reason=attempts_exhausted", got[len(got)-2])
		for _, line := range got[:len(got)-1] {
			require.NotContains(t, line, "ERROR", "only the call's end can be an error")
		}
	})
}

// Level replaces the table.
func TestLevelReplacesTheTable(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	level := func(e pipeline.Event) slog.Level {
		require.Equal(t, pipeline.CallFinished, e.Kind)
		return slog.LevelInfo + 1
	}
	p := pipeline.For("p").Observe(slogx.Observer(slog.New(lines), slogx.Level(level))).MustBuild()
	_, err := pipeline.Do(t.Context(), p, fails(1, errDown))
	require.Error(t, err)
	require.Equal(t, []string{"INFO+1 pipeline: call failed pipeline=p attempts=1 took=0s error=down"}, withoutTook(lines.taken()))
}

// A line never holds what a callback returned, and holds of an error what ErrorText says.
func TestNoLineHoldsASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := newPad(slog.LevelDebug)
		for name, text := range map[string]func(error) string{
			"down": nil, "a failure": func(error) string { return "a failure" }, "": func(error) string { return "" },
		} {
			p := pipeline.For("p").Retry(steady()).Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})).
				Observe(slogx.Observer(slog.New(lines), slogx.Every(), slogx.ErrorText(text))).MustBuild()
			_, _ = pipeline.Do(t.Context(), p, fails(1, errDown))
			_, _ = pipeline.Do(t.Context(), p, fails(9, errDown))
			got := lines.taken()
			require.NotEmpty(t, got)
			for _, line := range got {
				require.NotContains(t, line, secret)
				if name != "down" {
					require.NotContains(t, line, "down")
				}
			}
			switch name {
			case "":
				require.NotContains(t, got[1], "error=")
			default:
				require.Contains(t, got[1], "error="+name)
			}
		}
	})
}

// A logger that carries attributes keeps them, and its handler is told the event's time.
func TestTheLoggersOwnAttributesStay(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	at := time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)
	var told time.Time
	observe := slogx.Observer(slog.New(timed{lines, &told}).With("service", "billing"))
	observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Time: at, Pipeline: "p", Disposition: pipeline.Failed, Attempt: 1, Err: errDown})
	require.Equal(t, []string{"ERROR pipeline: call failed service=billing pipeline=p attempts=1 took=0s error=down"}, lines.taken())
	require.Equal(t, at, told)
}

type timed struct {
	slog.Handler
	at *time.Time
}

func (h timed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return timed{h.Handler.WithAttrs(attrs), h.at}
}
func (h timed) Handle(ctx context.Context, r slog.Record) error {
	*h.at = r.Time
	return h.Handler.Handle(ctx, r)
}
