package check

import (
	"errors"
	"io"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Every problem is named at once, each with field, value and what is right.
func TestListJoinsAll(t *testing.T) {
	var l List
	require.NoError(t, l.Err())
	l.Add(nil)
	require.NoError(t, l.Err())
	l.Bad("breaker", "OpenFor", -5*time.Second, "a positive duration")
	l.Bad("breaker", "FailureRate", math.NaN(), "a number in (0, 1]")
	l.Add(io.EOF)
	require.EqualError(t, l.Err(), "breaker: OpenFor is -5s: want a positive duration\n"+
		"breaker: FailureRate is NaN: want a number in (0, 1]\nEOF")
	require.ErrorIs(t, l.Err(), io.EOF)
	joined, ok := l.Err().(interface{ Unwrap() []error })
	require.True(t, ok)
	require.Len(t, joined.Unwrap(), 3)
}

// What was handed out does not change when more is found.
func TestErrIsACopy(t *testing.T) {
	var l List
	l.Add(io.EOF)
	before := l.Err()
	l.Add(io.ErrClosedPipe)
	require.NotErrorIs(t, before, io.ErrClosedPipe)
	require.ErrorIs(t, l.Err(), io.ErrClosedPipe)
}

func TestFinite(t *testing.T) {
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64} {
		require.True(t, Finite(f), "%v", f)
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.False(t, Finite(f), "%v", f)
	}
}

func TestNilLooksIntoInterfaces(t *testing.T) {
	for _, v := range []any{nil, (*int)(nil), map[string]int(nil), (func())(nil), (chan int)(nil), []int(nil), unsafe.Pointer(nil), error((*wrong)(nil))} {
		require.True(t, Nil(v), "%T", v)
	}
	for _, v := range []any{0, "", false, new(int), map[string]int{}, func() {}, make(chan int), []int{}, struct{}{}, errors.New("x"), [0]int{}} {
		require.False(t, Nil(v), "%T", v)
	}
}

type wrong struct{}

func (*wrong) Error() string { return "wrong" }

func TestListNamesTheInstance(t *testing.T) {
	l := List{Name: `the "bank"`}
	l.Bad("breaker", "OpenFor", -1, "positive")
	require.EqualError(t, l.Err(), `breaker "the \"bank\"": OpenFor is -1: want positive`)
	require.Equal(t, "breaker", Called("breaker", ""))
}

func TestTypeSaysWhatIsThere(t *testing.T) {
	require.Equal(t, "nil", Type(nil))
	require.Equal(t, "a nil *int", Type((*int)(nil)))
	require.Equal(t, "a *int", Type(new(int)))
}
