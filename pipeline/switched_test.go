package pipeline_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/toggle"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// limited says whether a call of p's runs under a timeout.
func limited(t *testing.T, p *pipeline.Pipeline) (yes bool) {
	t.Helper()
	require.NoError(t, p.Run(t.Context(), func(ctx context.Context) error {
		_, yes = ctx.Deadline()
		return nil
	}))
	return yes
}

func TestWhileTheSwitchIsOffEveryPipelineOfItIsAPlainCall(t *testing.T) {
	s := toggle.New(true)
	var heard []string
	open := breaker.MustNew(breaker.Config{Name: "b"})
	require.NoError(t, open.ForceOpen(t.Context()))
	mapped := errors.New("mapped")
	base := pipeline.For("p").Breaker(open).Retry(retry.MustNew(retry.Config{})).Observe(hear(&heard, "builder")).SwitchedBy(s)
	p := base.OnRejected(func(context.Context, error) error { return mapped }).MustBuild()
	other := base.MustBuild()
	nesting := p.String()

	require.ErrorIs(t, p.Run(t.Context(), ok), mapped)
	heard = nil
	s.Set(false)
	for _, p := range []*pipeline.Pipeline{p, other} {
		v, report, err := pipeline.DoDetailed(t.Context(), p, func(context.Context) (int, error) { return 7, errDown })
		require.Equal(t, errDown, err, "no retry")
		require.Zero(t, v)
		require.Equal(t, 1, report.Attempts)
		require.NoError(t, p.Run(t.Context(), ok), "the open circuit is not asked")
		require.Equal(t, "p: fn", p.String())
		require.Equal(t, pipeline.Description{Name: "p"}, p.Describe())
		require.Equal(t, "p", p.Name())
		for range p.Layers() {
			t.Fatal("a layer")
		}
	}
	require.Empty(t, heard, "nor is the Builder's observer")
	s.Set(true)
	require.ErrorIs(t, p.Run(t.Context(), ok), mapped)
	require.ErrorIs(t, other.Run(t.Context(), ok), breaker.ErrOpen)
	require.Equal(t, nesting, p.String())
}

func TestACallThatHasBegunKeepsWhatItReadOfTheSwitch(t *testing.T) {
	s := toggle.New(true)
	slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
	p := pipeline.For("p").Bulkhead(slots).Retry(retry.MustNew(retry.Config{MaxAttempts: 2, Backoff: retry.Immediate})).SwitchedBy(s).MustBuild()
	runs := 0
	err := p.Run(t.Context(), func(context.Context) error {
		runs++
		require.Equal(t, 1, slots.InUse(), "attempt %d", runs)
		s.Set(false)
		require.NoError(t, p.Run(t.Context(), ok), "a call that begins now is plain")
		return errDown
	})
	var stop *retry.Error
	require.ErrorAs(t, err, &stop)
	require.Equal(t, 2, runs, "it is retried all the same")
	require.Zero(t, slots.InUse())

	require.NoError(t, p.Run(t.Context(), func(context.Context) error {
		s.Set(true)
		require.Zero(t, slots.InUse(), "and one that began without holds nothing")
		return nil
	}))
	require.ErrorIs(t, p.Run(t.Context(), func(context.Context) error {
		return p.Run(t.Context(), ok)
	}), bulkhead.ErrFull)
}

func TestSubscribersHearTheCallsOfBothSidesOfTheSwitch(t *testing.T) {
	s := toggle.New(true)
	var heard []string
	p := pipeline.For("p").Observe(hear(&heard, "builder")).SwitchedBy(s).MustBuild()
	both := p.Subscribe(hear(&heard, "both"))
	s.Set(false)
	off := p.Subscribe(hear(&heard, "off"))
	require.NoError(t, p.Run(t.Context(), ok))
	require.Equal(t, []string{
		"both call_started", "off call_started", "both attempt_finished", "off attempt_finished", "both call_finished", "off call_finished",
	}, heard)
	off()
	require.NoError(t, p.Update(pipeline.For("p").Observe(hear(&heard, "new"))))
	heard = nil
	require.NoError(t, p.Run(t.Context(), ok))
	require.Equal(t, []string{"both call_started", "both attempt_finished", "both call_finished"}, heard)
	s.Set(true)
	heard = nil
	require.NoError(t, p.Run(t.Context(), ok))
	require.Equal(t, []string{
		"new call_started", "both call_started", "new attempt_finished", "both attempt_finished", "new call_finished", "both call_finished",
	}, heard)
	both()
	s.Set(false)
	heard = nil
	require.NoError(t, p.Run(t.Context(), ok))
	require.Empty(t, heard)
}

func TestAPipelineKeepsItsSwitchOverAnUpdate(t *testing.T) {
	s := toggle.New(false)
	p := pipeline.For("p").SwitchedBy(s).MustBuild()
	hour := timeout.MustNew(timeout.Config{Limit: time.Hour})
	require.NoError(t, p.Update(pipeline.For("p").Timeout(hour)))
	require.False(t, limited(t, p))
	require.EqualError(t, p.Update(pipeline.For("q")), `pipeline "p": name is "q": want "p", a pipeline keeps its name`)
	s.Set(true)
	require.True(t, limited(t, p))
	plain := pipeline.For("p").SwitchedBy(toggle.Switch{}).MustBuild()
	require.NoError(t, plain.Update(pipeline.For("p").Timeout(hour)))
	require.True(t, limited(t, plain), "the zero Switch is none")
}

// Who switches a pipeline off, changes it and switches it on again shows nobody the old one from the first step on, and
// nobody the new one before the last.
func TestNobodySeesAPlanThatWasChangedWhileItWasOffBeforeItIsOn(t *testing.T) {
	s := toggle.New(true)
	plan := func(n int) pipeline.Builder {
		return pipeline.For("p").Timeout(timeout.MustNew(timeout.Config{Limit: time.Duration(n+1) * time.Hour})).SwitchedBy(s)
	}
	p := plan(0).MustBuild()
	var done atomic.Bool
	var steps, seen, wrong atomic.Int64 // three steps for each change: off, changed, on
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !done.Load() {
				before := steps.Load()
				var left time.Duration
				_ = p.Run(context.Background(), func(ctx context.Context) error {
					if at, ok := ctx.Deadline(); ok {
						left = time.Until(at)
					}
					return nil
				})
				if left == 0 {
					continue
				}
				n := int64(left.Round(time.Hour)/time.Hour) - 1
				if after := steps.Load(); n < (before+2)/3 || n > (after+1)/3 {
					wrong.Add(1)
				}
				seen.Add(1)
			}
		})
	}
	for n := 1; n <= 2000; n++ {
		s.Set(false)
		steps.Add(1)
		require.NoError(t, p.Update(plan(n)))
		steps.Add(1)
		s.Set(true)
		steps.Add(1)
	}
	for had := seen.Load(); seen.Load() < had+3; { // one that began now
		runtime.Gosched()
	}
	done.Store(true)
	readers.Wait()
	require.Zero(t, wrong.Load())
}

func TestASwitchAllocatesNothing(t *testing.T) {
	s := toggle.New(true)
	p := full(breaker.Window{}).SwitchedBy(s).MustBuild()
	require.Zero(t, allocs(t, p, t.Context(), nil), "on")
	s.Set(false)
	require.Zero(t, allocs(t, p, t.Context(), nil), "off")
}

func BenchmarkSwitched(b *testing.B) {
	s, off := toggle.New(true), toggle.New(false)
	for _, c := range []struct {
		name string
		b    pipeline.Builder
	}{
		{"empty, none", pipeline.For("p")}, {"empty, on", pipeline.For("p").SwitchedBy(s)}, {"empty, off", pipeline.For("p").SwitchedBy(off)},
		{"full, none", full(breaker.Window{})}, {"full, on", full(breaker.Window{}).SwitchedBy(s)}, {"full, off", full(breaker.Window{}).SwitchedBy(off)},
	} {
		p := c.b.MustBuild()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				_, _ = pipeline.Do(b.Context(), p, func(context.Context) (int, error) { n++; return n, nil })
			}
		})
	}
}
