package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

type unavailable struct{ cause error }

func (*unavailable) Error() string   { return "billing is unavailable" }
func (e *unavailable) Unwrap() error { return e.cause }

type stubborn struct{ error }

func (stubborn) Rejected() bool { return false }

type hurried struct{ unavailable }

func (*hurried) RetryAfter() (time.Duration, bool) { return time.Second, true }

// Section 3, row 9: OnRejected runs outermost; nil keeps the original; a mapped refusal stays a rejection with its wait,
// whatever the mapper wrapped, unless the mapper's own error says Rejected() false.
func TestOnRejected(t *testing.T) {
	original := &no{wait: time.Minute}
	for name, test := range map[string]struct {
		mapper   func(error) error
		rejected bool
		wait     time.Duration
	}{
		"nil keeps the original": {func(error) error { return nil }, true, time.Minute},
		"wraps it":               {func(err error) error { return &unavailable{cause: err} }, true, time.Minute},
		"forgets it":             {func(error) error { return &unavailable{} }, true, time.Minute},
		"fmt.Errorf":             {func(err error) error { return fmt.Errorf("billing: %w", err) }, true, time.Minute},
		"a plain text":           {func(error) error { return errors.New("busy") }, true, time.Minute},
		"wraps a stranger":       {func(error) error { return fmt.Errorf("%w", errDown) }, true, time.Minute},
		"joins it with others":   {func(err error) error { return errors.Join(err, errDown) }, true, time.Minute},
		"says it is none":        {func(err error) error { return stubborn{err} }, false, time.Minute},
		"says none, forgets":     {func(error) error { return stubborn{errDown} }, false, time.Minute},
		"has a shorter wait":     {func(err error) error { return &hurried{unavailable{err}} }, true, time.Minute},
		"joins a denial":         {func(err error) error { return errors.Join(stubborn{errDown}, err) }, true, time.Minute},
		"wraps a denial":         {func(error) error { return fmt.Errorf("busy: %w", stubborn{errDown}) }, true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			var made error
			p := pipeline.For("p").Bulkhead(&rule{acquire: func(context.Context) error { return original }}).
				OnRejected(func(_ context.Context, err error) error {
					calls++
					require.Same(t, original, err)
					made = test.mapper(err)
					return made
				}).MustBuild()
			err := p.Run(t.Context(), func(context.Context) error { return nil })
			require.Equal(t, 1, calls)
			require.ErrorIs(t, err, original, "stays reachable")
			if made != nil {
				require.ErrorIs(t, err, made)
				require.Equal(t, made.Error(), err.Error())
			}
			require.Equal(t, test.rejected, rejection.Is(err))
			wait, ok := rejection.RetryAfter(err)
			require.True(t, ok)
			require.Equal(t, test.wait, wait)
		})
	}
}

// A mapper that keeps everything by itself gets its own error back, unwrapped: callers may assert its type.
func TestMapperThatKeepsTheOriginalIsNotWrapped(t *testing.T) {
	p := pipeline.For("p").Bulkhead(&rule{acquire: func(context.Context) error { return &no{} }}).
		OnRejected(func(_ context.Context, err error) error { return &unavailable{cause: err} }).MustBuild()
	err := p.Run(t.Context(), func(context.Context) error { return nil })
	_, ok := err.(*unavailable)
	require.True(t, ok)
	require.True(t, rejection.Is(err))
}

// The mapper gets the caller's context; a panic in it comes when nothing is held any more.
func TestMapperGetsTheCallersContextAndMayPanic(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "tenant 7")
	first := &rule{}
	p := pipeline.For("p").Breaker(first).Bulkhead(&rule{acquire: func(context.Context) error { return &no{} }}).
		Timeout(limitOf(time.Hour)).
		OnRejected(func(ctx context.Context, err error) error {
			require.Equal(t, "tenant 7", ctx.Value(key{}))
			require.Len(t, first.told, 1)
			panic("mapper")
		}).MustBuild()
	require.PanicsWithValue(t, "mapper", func() { _ = p.Run(ctx, func(context.Context) error { return nil }) })
	require.Len(t, first.told, 1)
}

// A failure of fn, and the caller's own end, are not mapped.
func TestOnRejectedIsForRefusalsAlone(t *testing.T) {
	p := pipeline.For("p").OnRejected(func(context.Context, error) error { t.Fatal("no refusal"); return nil }).MustBuild()
	require.Same(t, errDown, p.Run(t.Context(), func(context.Context) error { return errDown }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Run(ctx, func(context.Context) error { return nil }), context.Canceled)
}

// A guard's error that is no refusal by its shape: the engine knows that fn never ran, so the mapper is asked. What it makes is
// a rejection; where it makes nothing, or hands the error back, the caller gets the error unchanged, which is none.
func TestGuardErrorThatIsNoRefusal(t *testing.T) {
	broken := errors.New("no such tenant")
	for name, test := range map[string]struct {
		mapper   func(error) error
		rejected bool
	}{
		"no mapper": {nil, false},
		"nil":       {func(error) error { return nil }, false},
		"itself":    {func(err error) error { return err }, false},
		"wrapped":   {func(err error) error { return fmt.Errorf("billing: %w", err) }, true},
		"forgotten": {func(error) error { return &unavailable{} }, true},
		"denied":    {func(err error) error { return stubborn{err} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := pipeline.For("p").Bulkhead(&rule{acquire: func(context.Context) error { return broken }})
			calls := 0
			if test.mapper != nil {
				b = b.OnRejected(func(_ context.Context, err error) error {
					calls++
					require.Same(t, broken, err)
					return test.mapper(err)
				})
			}
			_, r, err := pipeline.DoDetailed(t.Context(), b.MustBuild(), fails(0, nil))
			require.ErrorIs(t, err, broken)
			require.Equal(t, test.rejected, rejection.Is(err))
			require.Equal(t, pipeline.Rejected, r.Disposition, "the engine's knowledge")
			if test.mapper != nil {
				require.Equal(t, 1, calls)
			}
			if name == "nil" || name == "itself" || name == "no mapper" {
				require.Same(t, broken, err)
			}
		})
	}
}

// nobodys is an error type of a program that returns a nil of it where it has nothing to say.
type nobodys struct{ text string }

func (n *nobodys) Error() string { return n.text }

func TestAMapperThatReturnsATypedNilKeepsTheOriginal(t *testing.T) {
	refusal := &no{wait: time.Second}
	p := pipeline.For("p").With(&rule{acquire: func(context.Context) error { return refusal }}).
		OnRejected(func(context.Context, error) error { var n *nobodys; return n }).MustBuild()
	err := p.Run(t.Context(), func(context.Context) error { return nil })
	require.Same(t, error(refusal), err)
}
