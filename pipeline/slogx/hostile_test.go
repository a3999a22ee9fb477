package slogx_test

import (
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/slogx"
	"github.com/stretchr/testify/require"
)

// bad is a handler that does what a test says.
type bad struct {
	enabled, handle func()
	lines           *pad
}

func (b bad) WithAttrs([]slog.Attr) slog.Handler { return b }
func (b bad) WithGroup(string) slog.Handler      { return b }
func (b bad) Enabled(context.Context, slog.Level) bool {
	if b.enabled != nil {
		b.enabled()
	}
	return true
}
func (b bad) Handle(ctx context.Context, r slog.Record) error {
	if b.handle != nil {
		b.handle()
	}
	return b.lines.Handle(ctx, r)
}

// A logger is no part of a call: what its handler, an option or an error panics with goes no further, and that line is lost.
func TestAPanicOfTheLoggerGoesNoFurther(t *testing.T) {
	boom := func() { panic("boom") }
	for name, observe := range map[string]func(context.Context, pipeline.Event){
		"Enabled": slogx.Observer(slog.New(bad{enabled: boom}), slogx.Every()),
		"Handle":  slogx.Observer(slog.New(bad{handle: boom}), slogx.Every()),
		"Level":   slogx.Observer(slog.New(bad{}), slogx.Every(), slogx.Level(func(pipeline.Event) slog.Level { panic("boom") })),
	} {
		p := pipeline.For("p").Retry(steady()).Observe(observe).MustBuild()
		_, err := pipeline.Do(t.Context(), p, fails(0, nil))
		require.NoError(t, err, name)
	}
	l := slog.New(bad{handle: boom})
	slogx.OnChange(l)(breaker.Change{})
	slogx.OnShadow(l)(t.Context(), errDown)
	slogx.OnStore(l)(t.Context(), leaf.StoreEvent{})
	slogx.OnReload(l)(errDown)
}

// A handler that exits its goroutine wedges nobody: the next line is written.
func TestAHandlerThatExitsWedgesNobody(t *testing.T) {
	lines, first := newPad(slog.LevelInfo), true
	h := bad{lines: lines, handle: func() {
		if first {
			first = false
			runtime.Goexit()
		}
	}}
	p := pipeline.For("p").Observe(slogx.Observer(slog.New(h))).MustBuild()
	returned := false
	var done sync.WaitGroup
	done.Go(func() {
		_, _ = pipeline.Do(t.Context(), p, fails(1, errDown))
		returned = true
	})
	done.Wait()
	require.False(t, returned)
	_, _ = pipeline.Do(t.Context(), p, fails(1, errDown))
	require.Len(t, lines.taken(), 1)
}

// What was held back is told line by line: a handler that panics, or exits its goroutine, at one of them loses that one alone, and of a
// panic not even the event's own line.
func TestOneSummaryThatIsLostLosesNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		end       func()
		summaries int
		own       int
	}{
		"panic":  {func() { panic("disk full") }, 9, 1},
		"panics": {nil, 0, 1},
		"Goexit": {runtime.Goexit, 9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := newPad(slog.LevelInfo)
				h := &bad{lines: lines}
				observe := slogx.Observer(slog.New(h))
				for n := range 10 {
					for range 20 {
						observe(t.Context(), failedAt(time.Now(), strconv.Itoa(n)))
					}
				}
				require.Len(t, lines.taken(), 10*5)
				<-time.After(time.Minute)
				told := 0
				h.handle = func() {
					if told++; test.end == nil && told <= 10 {
						panic("disk full")
					} else if told == 1 {
						test.end()
					}
				}
				var done sync.WaitGroup
				done.Go(func() { observe(t.Context(), failedAt(time.Now(), "next")) })
				done.Wait()
				all := strings.Join(lines.taken(), "|")
				require.Equal(t, test.summaries, strings.Count(all, "lines suppressed"))
				require.Equal(t, test.own, strings.Count(all, "pipeline=next"))
			})
		})
	}
}

// A handler may make calls of its own through the same pipeline, and log to the same logger.
func TestAHandlerMayCallThePipeline(t *testing.T) {
	lines, depth := newPad(slog.LevelInfo), 0
	var p *pipeline.Pipeline
	h := bad{lines: lines, handle: func() {
		if depth++; depth < 3 {
			_, _ = pipeline.Do(t.Context(), p, fails(1, errDown))
		}
	}}
	p = pipeline.For("p").Observe(slogx.Observer(slog.New(h))).MustBuild()
	_, _ = pipeline.Do(t.Context(), p, fails(1, errDown))
	require.Len(t, lines.taken(), 3)
}

// A nil logger is slog.Default, asked for at each line.
func TestANilLoggerIsTheDefault(t *testing.T) {
	p := pipeline.For("p").Observe(slogx.Observer(nil)).MustBuild()
	was := slog.Default()
	defer slog.SetDefault(was)
	lines := newPad(slog.LevelInfo)
	slog.SetDefault(slog.New(lines))
	_, _ = pipeline.Do(t.Context(), p, fails(1, errDown))
	slogx.OnReload(nil)(errDown)
	require.Len(t, lines.taken(), 2)
}

// A nil option is none.
func TestANilOptionIsNone(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	slogx.Observer(slog.New(lines), nil, slogx.Level(nil), slogx.ErrorText(nil))(t.Context(),
		pipeline.Event{Kind: pipeline.CallFinished, Disposition: pipeline.Failed, Err: errDown})
	require.Equal(t, []string{"ERROR pipeline: call failed pipeline= attempts=0 took=0s error=down"}, lines.taken())
}

// nobody is an error whose typed nil has no text.
type nobody struct{ text string }

func (n *nobody) Error() string { return n.text }

// exploding is an error without a text.
type exploding struct{}

func (exploding) Error() string { panic("no text") }

// Whatever an error's Error does, the line is written.
func TestErrorsWithoutATextAreLines(t *testing.T) {
	lines := newPad(slog.LevelInfo)
	observe := slogx.Observer(slog.New(lines))
	for want, err := range map[string]error{
		"(a *slogx_test.nobody whose text cannot be had)":   (*nobody)(nil),
		"(a slogx_test.exploding whose text cannot be had)": exploding{},
	} {
		observe(t.Context(), pipeline.Event{Kind: pipeline.CallFinished, Disposition: pipeline.Failed, Pipeline: want, Err: err})
		got := lines.taken()
		require.Len(t, got, 1)
		require.Contains(t, got[0], "error="+want)
	}
	p := pipeline.For("p").Observe(observe).MustBuild()
	_, err := pipeline.Do(t.Context(), p, fails(1, (*nobody)(nil)))
	require.Equal(t, (*nobody)(nil), err)
	require.Len(t, lines.taken(), 1)
}

// An error's text is cut at 512 bytes, between two characters, and says how long it was.
func TestHugeErrorsAreCut(t *testing.T) {
	for _, unit := range []string{"x", "é", "世", "😀", "\xff"} {
		for pad := range 4 {
			text := strings.Repeat("-", pad) + strings.Repeat(unit, 1<<20/len(unit))
			h := newPad(slog.LevelInfo)
			slogx.OnReload(slog.New(h))(&nobody{text})
			got := h.taken()[0]
			_, got, _ = strings.Cut(got, "error=")
			require.Less(t, len(got), 512+40)
			require.Contains(t, got, " bytes)")
			require.Equal(t, unit != "\xff", utf8.ValidString(got), "%q", got[480:])
			kept, _, _ := strings.Cut(got, "…")
			require.True(t, strings.HasPrefix(text, kept))
			require.Greater(t, len(kept), 512-utf8.UTFMax)
		}
	}
	exactly := strings.Repeat("x", 512)
	h := newPad(slog.LevelInfo)
	slogx.OnReload(slog.New(h))(&nobody{exactly})
	require.Equal(t, []string{"ERROR configuration not reloaded error=" + exactly}, h.taken())
}

// The events of one pipeline, told by many goroutines at once.
func TestOneObserverServesManyGoroutines(t *testing.T) {
	lines := newPad(slog.LevelDebug)
	observe := slogx.Observer(slog.New(lines), slogx.Every(), slogx.Repeats(2, time.Hour))
	p := pipeline.For("p").Observe(observe).MustBuild()
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 50 {
				_, _ = pipeline.Do(t.Context(), p, fails(1, errDown))
			}
		})
	}
	done.Wait()
	require.Len(t, lines.taken(), 400+2+2, "each start; two failed attempts; two failed calls")
}
