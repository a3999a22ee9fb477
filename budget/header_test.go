package budget

import (
	"context"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInjectRoundsDownAndIsNeverNegative(t *testing.T) {
	clock := newClock()
	for _, c := range []struct {
		left time.Duration
		want string
	}{
		{1500*time.Millisecond + 999*time.Microsecond, "1500"},
		{time.Millisecond - 1, "0"},
		{0, "0"},
		{-time.Hour, "0"},
		{292 * 365 * 24 * time.Hour, "9208512000000"},
	} {
		ctx, cancel := context.WithDeadline(t.Context(), clock.Now().Add(c.left))
		h := http.Header{Header: {"7"}}
		Inject(ctx, clock, h)
		require.Equal(t, http.Header{Header: {c.want}}, h)
		cancel()
	}
	h := http.Header{Header: {"7"}}
	Inject(t.Context(), clock, h)
	require.Equal(t, http.Header{Header: {"7"}}, h, "without a deadline h is left alone")
}

func TestFromHeader(t *testing.T) {
	const ignored = time.Duration(-1)
	synctest.Test(t, func(t *testing.T) {
		for value, want := range map[string]time.Duration{
			"1500":                            1500 * time.Millisecond,
			"00001500":                        1500 * time.Millisecond,
			strings.Repeat("0", 99) + "1":     time.Millisecond,
			"9223372036854":                   9223372036854 * time.Millisecond,
			"9223372036855":                   ignored, // too large for a Duration
			"18446744073710":                  ignored, // wraps to something small in int64 ns
			"9223372036854775807":             ignored,
			"18446744073709551617":            ignored, // wraps to 1 in uint64
			strings.Repeat("9", 10_000):       ignored,
			"":                                ignored,
			"-1":                              ignored,
			"+1":                              ignored,
			" 1":                              ignored,
			"1 ":                              ignored,
			"1.5":                             ignored,
			"1e3":                             ignored,
			"0x10":                            ignored,
			"1_000":                           ignored,
			"١٢":                              ignored, // digits, but not ASCII ones
			"1, 2":                            ignored,
			"1\x00":                           ignored,
			"five":                            ignored,
			"NaN":                             ignored,
			"1500ms":                          ignored,
			"\u200b1":                         ignored,
			"99999999999999999999999999999-1": ignored,
		} {
			ctx, cancel := FromHeader(t.Context(), http.Header{Header: {value}})
			left, ok := Left(ctx, nil)
			if want == ignored {
				require.False(t, ok, "%q", value)
			} else {
				require.True(t, ok, "%q", value)
				require.Equal(t, want, left, "%q", value)
			}
			require.NoError(t, ctx.Err())
			cancel()
			require.ErrorIs(t, ctx.Err(), context.Canceled)
		}
	})
}

func TestFromHeaderAbsentOrRepeatedIsIgnored(t *testing.T) {
	for _, h := range []http.Header{nil, {}, {Header: nil}, {Header: {"1", "2"}}} {
		ctx, cancel := FromHeader(t.Context(), h)
		_, ok := ctx.Deadline()
		require.False(t, ok)
		cancel()
	}
}

func TestFromHeaderZeroIsExpiredAlready(t *testing.T) {
	ctx, cancel := FromHeader(t.Context(), http.Header{Header: {"0"}})
	defer cancel()
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
}

func TestFromHeaderNeverLengthensADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, cancel := FromHeader(outer, http.Header{Header: {"5000"}})
		defer cancel()
		left, _ := Left(ctx, nil)
		require.Equal(t, time.Second, left)
	})
}

func TestHeaderRoundTripLosesLessThanAMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond+999*time.Microsecond)
		defer cancel()
		h := http.Header{}
		Inject(outer, nil, h)
		ctx, cancel := FromHeader(t.Context(), h)
		defer cancel()
		left, _ := Left(ctx, nil)
		require.Equal(t, 1500*time.Millisecond, left)
	})
}

func FuzzFromHeader(f *testing.F) {
	for _, s := range []string{"", "0", "1", "1500", "-1", "+1", "1e9", "9223372036854", "9223372036855",
		"18446744073709551616", "00000000000000000000000000001", "１２", "1, 2", "\x00", strings.Repeat("9", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		synctest.Test(t, func(t *testing.T) {
			const outerLeft = time.Hour
			outer, cancelOuter := context.WithTimeout(t.Context(), outerLeft)
			defer cancelOuter()
			ctx, cancel := FromHeader(outer, http.Header{Header: {value}})
			defer cancel()
			left, ok := Left(ctx, nil)
			require.True(t, ok)

			// The oracle: digits alone, as a number of any size; never a longer deadline.
			want := outerLeft
			ms, isNumber := new(big.Int).SetString(value, 10)
			if isNumber && strings.Trim(value, "0123456789") == "" && ms.Cmp(big.NewInt(9223372036854)) <= 0 {
				want = min(want, time.Duration(ms.Int64())*time.Millisecond)
			}
			require.Equal(t, want, left, "%q", value)
			require.Equal(t, want == 0, ctx.Err() != nil)
		})
	})
}
