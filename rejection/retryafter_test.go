package rejection_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/rejection"
)

// now is a minute before the instant of the RFC's examples, a Sunday.
var now = time.Date(1994, time.November, 6, 8, 48, 37, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	long := strings.Repeat("9", 100_000)
	for _, row := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		// delay-seconds
		{"0", 0, true},
		{"1", time.Second, true},
		{"120", 2 * time.Minute, true},
		{"000120", 2 * time.Minute, true},
		{" 120", 2 * time.Minute, true},
		{"120\t ", 2 * time.Minute, true},
		{"\t \t7 \t", 7 * time.Second, true},
		{"9223372036", 9223372036 * time.Second, true}, // the last that fits
		{"9223372037", most, true},
		{"9223372036854775807", most, true},
		{"9223372036854775808", most, true},
		{"18446744073709551616", most, true}, // 2^64 would wrap to 0
		{"18446744073709551617", most, true}, // and this to 1
		{long, most, true},
		{strings.Repeat("0", 100_000) + "3", 3 * time.Second, true},

		// no delay-seconds
		{"", 0, false},
		{" ", 0, false},
		{"\t\t", 0, false},
		{"-1", 0, false},
		{"-0", 0, false},
		{"+1", 0, false},
		{"1.5", 0, false},
		{"1,5", 0, false},
		{".5", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"1_000", 0, false},
		{"1 0", 0, false},
		{"1;2", 0, false},
		{"1, 2", 0, false},
		{"3s", 0, false},
		{"PT5M", 0, false},
		{"soon", 0, false},
		{"NaN", 0, false},
		{"Inf", 0, false},
		{"٣", 0, false},         // ARABIC-INDIC DIGIT THREE
		{"３", 0, false},         // FULLWIDTH DIGIT THREE
		{"1\n", 0, false},       // only blanks and tabs are ignored
		{"\r1", 0, false},       //
		{"\u00a01", 0, false},   // NO-BREAK SPACE
		{"1\x00", 0, false},     //
		{"\xff\xfe", 0, false},  // not UTF-8
		{long + "x", 0, false},  //
		{"-" + long, 0, false},  //
		{long + ".5", 0, false}, //

		// HTTP-date: IMF-fixdate
		{"Sun, 06 Nov 1994 08:49:37 GMT", time.Minute, true},
		{"\tSun, 06 Nov 1994 08:49:37 GMT ", time.Minute, true},
		{"Sun, 06 Nov 1994 08:48:38 GMT", time.Second, true},
		{"Sun, 06 Nov 1994 08:48:37 GMT", 0, true},
		{"Sun, 06 Nov 1994 08:48:36 GMT", 0, true},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0, true},
		{"Mon, 01 Jan 0001 00:00:00 GMT", 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", most, true},
		{"Mon, 06 Nov 1994 08:49:37 GMT", time.Minute, true}, // the weekday is anyone's
		{"Sat, 31 Dec 1994 23:59:60 GMT", time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC).Sub(now), true},
		{"Thu, 29 Feb 1996 00:00:00 GMT", time.Date(1996, 2, 29, 0, 0, 0, 0, time.UTC).Sub(now), true},

		// HTTP-date: RFC 850
		{"Sunday, 06-Nov-94 08:49:37 GMT", time.Minute, true},
		{"Sunday, 06-Nov-94 08:49:37 UTC", time.Minute, true}, // what Go's time.RFC850 writes
		{"Wednesday, 06-Nov-94 08:49:37 GMT", time.Minute, true},
		{"Sunday, 06-Nov-94 08:48:36 GMT", 0, true},
		{"Saturday, 31-Dec-94 23:59:60 GMT", time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC).Sub(now), true},
		{"Sunday, 06-Nov-44 08:48:37 GMT", time.Date(2044, 11, 6, 8, 48, 37, 0, time.UTC).Sub(now), true}, // 50 years ahead
		{"Sunday, 06-Nov-44 08:48:38 GMT", 0, true},                                                       // more: 1944
		{"Sunday, 06-Nov-45 08:48:37 GMT", 0, true},                                                       // 1945
		{"Tuesday, 29-Feb-00 00:00:00 GMT", time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC).Sub(now), true},

		// HTTP-date: asctime
		{"Sun Nov  6 08:49:37 1994", time.Minute, true},
		{"Sun Nov 13 08:48:37 1994", 7 * 24 * time.Hour, true},
		{"Sun Nov  6 08:48:36 1994", 0, true},
		{"Sat Dec 31 23:59:60 1994", time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC).Sub(now), true},

		// no HTTP-date
		{"Sun, 06 Nov 1994 08:49:37", 0, false},
		{"Sun, 06 Nov 1994 08:49:37 UTC", 0, false},
		{"Sun, 06 Nov 1994 08:49:37 EST", 0, false},
		{"Sun, 06 Nov 1994 08:49:37 gmt", 0, false},
		{"Sun, 06 Nov 1994 08:49:37 +0000", 0, false},
		{"Sun, 06 Nov 1994 08:49:37 GMT+1", 0, false},
		{"Sunday, 06-Nov-94 08:49:37 EST", 0, false},
		{"Sunday, 06-Nov-94 08:49:37 CEST", 0, false},
		{"Sunday, 06-Nov-94 08:49:37 GMT-5", 0, false},
		{"Sunday, 06-Nov-1994 08:49:37 GMT", 0, false},
		{"Sun Nov 6 08:49:37 1994", 0, false},
		{"Sun Nov  6 08:49:37 1994 GMT", 0, false},
		{"sun, 06 nov 1994 08:49:37 GMT", 0, false},
		{"Sun, 06  Nov 1994 08:49:37 GMT", 0, false},
		{"Sun, 6 Nov 1994 08:49:37 GMT", 0, false},
		{"Sun, 06 Nov 94 08:49:37 GMT", 0, false},
		{"Sun, 06 Nov 1994 8:49:37 GMT", 0, false},
		{"Sun, 06 Nov 1994 08:49 GMT", 0, false},
		{"Sun, 06 Nov 1994 08:49:37.5 GMT", 0, false},
		{"Sun, 06 Nov 1994 08:49:37,5 GMT", 0, false},
		{"Sun, 31 Feb 1994 08:49:37 GMT", 0, false},
		{"Wed, 29 Feb 1995 00:00:00 GMT", 0, false},
		{"Sun, 00 Nov 1994 08:49:37 GMT", 0, false},
		{"Sun, 06 Nov 1994 24:00:00 GMT", 0, false},
		{"Sun, 06 Nov 1994 08:60:00 GMT", 0, false},
		{"Sun, 06 Nov 1994 08:49:60 GMT", 0, false}, // a leap second ends a day
		{"Sun, 06 Nov 1994 23:59:61 GMT", 0, false},
		{"Xyz, 06 Nov 1994 08:49:37 GMT", 0, false},
		{"Sun, 06 Nov 19940 08:49:37 GMT", 0, false},
		{"Sun, 06 Nov -994 08:49:37 GMT", 0, false},
		{"1994-11-06T08:49:37Z", 0, false},
		{"Sun, 06 Nov 1994 08:49:37 GMT" + strings.Repeat(" x", 50_000), 0, false},
		{strings.Repeat("Sun, ", 50_000), 0, false},
	} {
		value := row.value[:min(len(row.value), 60)]
		got, ok := rejection.ParseRetryAfter(row.value, now)
		require.Equal(t, row.ok, ok, "%q", value)
		require.Equal(t, row.want, got, "%q", value)
		here, ok := rejection.ParseRetryAfter(row.value, now.In(time.FixedZone("elsewhere", -11*3600)))
		require.Equal(t, row.ok, ok, "%q", value)
		require.Equal(t, row.want, here, "now's zone does not matter: %q", value)
	}
}

// Dates are whole seconds; the wait to one is exact.
func TestParseRetryAfterBetweenSeconds(t *testing.T) {
	got, ok := rejection.ParseRetryAfter("Sun, 06 Nov 1994 08:48:38 GMT", now.Add(400*time.Millisecond))
	require.True(t, ok)
	require.Equal(t, 600*time.Millisecond, got)
}

// RFC 9110, section 5.6.7: whatever now is, a two-digit year lands at most 50 years ahead and less than 50 behind.
func TestTwoDigitYears(t *testing.T) {
	for year := 1900; year <= 2200; year++ {
		at := time.Date(year, time.June, 15, 12, 0, 0, 0, time.UTC)
		for ahead := -49; ahead <= 50; ahead++ {
			date := time.Date(year+ahead, time.June, 15, 12, 0, 0, 0, time.UTC)
			got, ok := rejection.ParseRetryAfter(date.Format("Monday, 02-Jan-06 15:04:05 GMT"), at)
			require.True(t, ok)
			require.Equal(t, max(0, date.Sub(at)), got, "%v from %v", date, at)
		}
	}
	// 29 February of a year 00 exists in 2000 alone.
	for year, want := range map[int]bool{1960: true, 2040: true, 2060: false, 2090: false, 1920: false} {
		_, ok := rejection.ParseRetryAfter("Tuesday, 29-Feb-00 00:00:00 GMT", time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		require.Equal(t, want, ok, "%d", year)
	}
}

// What net/http and package time write is read, at any now: also the zero Time and the far end.
func TestParseRetryAfterAtExtremes(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(math.MaxInt32, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Unix(1<<60, 0), time.Unix(-1<<60, 0)} {
		for _, value := range []string{"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "5"} {
			got, ok := rejection.ParseRetryAfter(value, at)
			require.True(t, ok, "%q at %v", value, at)
			require.GreaterOrEqual(t, got, time.Duration(0))
		}
	}
	date := now.Add(90 * time.Second)
	for _, layout := range []string{http.TimeFormat, time.RFC850, time.ANSIC} {
		got, ok := rejection.ParseRetryAfter(date.Format(layout), now)
		require.True(t, ok, layout)
		require.Equal(t, 90*time.Second, got, layout)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, value := range []string{
		"", "0", "120", "-1", "1.5", "9223372036854775808", "٣", " 7\t", "Sun, 06 Nov 1994 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT", "Tuesday, 29-Feb-00 00:00:00 UTC", "Sun Nov  6 08:49:37 1994", "Sat, 31 Dec 1994 23:59:60 GMT",
	} {
		for _, at := range []int64{0, 784_111_717, math.MaxInt64, math.MinInt64} {
			f.Add(value, at, int64(1))
		}
	}
	f.Fuzz(func(t *testing.T, value string, sec, nsec int64) {
		at := time.Unix(sec, nsec)
		got, ok := rejection.ParseRetryAfter(value, at)
		if got < 0 || !ok && got != 0 {
			t.Fatalf("%q: %v, %v", value, got, ok)
		}
		if padded, same := rejection.ParseRetryAfter("\t "+value+" \t", at); padded != got || same != ok {
			t.Fatalf("%q: blanks around change it", value)
		}
		trimmed := strings.Trim(value, " \t")
		digits := trimmed != "" && strings.Trim(trimmed, "0123456789") == ""
		switch {
		case digits && !ok:
			t.Fatalf("%q: digits refused", value)
		case digits:
			if later, _ := rejection.ParseRetryAfter(trimmed+"0", at); later < got {
				t.Fatalf("%q: ten times as long is shorter", value)
			}
		case ok && !strings.Contains(trimmed, "23:59:60"):
			date, err := http.ParseTime(trimmed) // net/http takes more, never less
			if err != nil {
				t.Fatalf("%q: net/http refuses it: %v", value, err)
			}
			if wait := max(0, date.Sub(at)); !strings.Contains(trimmed, "-") && wait != got {
				t.Fatalf("%q: %v, net/http says %v", value, got, wait)
			}
		}
	})
}
