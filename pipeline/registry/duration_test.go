package registry

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limitOf loads a time limiter whose timeout is the text.
func limitOf(t *testing.T, parse string, text string) (time.Duration, error) {
	t.Helper()
	var r *Registry
	var err error
	switch parse {
	case "yaml":
		r, err = LoadYAML(strings.NewReader("resilience: {time-limiter: {a: {timeout: " + text + "}}}"))
	case "json":
		r, err = LoadJSON(strings.NewReader(`{"resilience": {"time-limiter": {"a": {"timeout": ` + text + `}}}}`))
	}
	if err != nil {
		return 0, err
	}
	return r.MustTimeout("a").Config().Limit, nil
}

// Config case C43, as section 8 settles it: a bare number is seconds (the case would refuse 30 and "30"), and d is a unit (the
// case would refuse 1d). Never is a field 30ns, 90ns or silently the default.
func TestC43DurationsOfYAMLAndJSON(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{`"30s"`, 30 * time.Second},
		{`"1.5h"`, 90 * time.Minute},
		{`"250ms"`, 250 * time.Millisecond},
		{`".5s"`, 500 * time.Millisecond},
		{`30`, 30 * time.Second},
		{`"30"`, 30 * time.Second},
		{`0.5`, 500 * time.Millisecond},
		{`"1d"`, 24 * time.Hour},
		{`"5d"`, 120 * time.Hour},
		{`"PT5M"`, 5 * time.Minute},
		{`"P1DT2H3M4.5S"`, 26*time.Hour + 3*time.Minute + 4500*time.Millisecond},
		{`"2562047h47m16.854775807s"`, math.MaxInt64},
	} {
		for _, format := range []string{"yaml", "json"} {
			got, err := limitOf(t, format, c.text)
			require.NoError(t, err, "%s %s", format, c.text)
			assert.Equal(t, c.want, got, "%s %s", format, c.text)
		}
	}
	for _, c := range []struct{ text, want string }{
		{`"-5s"`, "no negative duration"},
		{`-5`, "no negative duration"},
		{`"0s"`, "a positive duration"},
		{`0`, "a positive duration"},
		{`"5 s"`, "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds"},
		{`"1M"`, "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds"},
		{`"1e3s"`, "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds"},
		{`1e3`, "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds"},
		{`""`, "a duration, not nothing"},
		{`"2562047h47m16.854775808s"`, "at most 2562047h47m16.854775807s"},
		{`true`, "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds"},
		{`"P1Y"`, "days, hours, minutes and seconds: years have no fixed length"},
		{`"P2M"`, "days, hours, minutes and seconds: months have no fixed length"},
		{`"P3W"`, "days, hours, minutes and seconds: weeks have no fixed length"},
		{`[1]`, "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds"},
	} {
		for _, format := range []string{"yaml", "json"} {
			_, err := limitOf(t, format, c.text)
			assert.EqualError(t, err, fmt.Sprintf("resilience.time-limiter.a.timeout is %s: want %s", c.text, c.want), format)
		}
	}
	_, err := limitOf(t, "yaml", "1:30")
	assert.EqualError(t, err, "resilience.time-limiter.a.timeout is 1:30: want a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds")
	_, err = limitOf(t, "yaml", ".inf")
	assert.ErrorContains(t, err, "resilience.time-limiter.a.timeout is .inf")
	_, err = limitOf(t, "yaml", "!!str 5s")
	assert.ErrorContains(t, err, "resilience.time-limiter.a.timeout is !!str 5s")
}

func TestC43NullIsUnsetAndMeansTheDefault(t *testing.T) {
	r := loaded(t, "resilience: {retry: {a: {max-wait: null, wait-duration: }}}")
	assert.Equal(t, 20*time.Second, r.MustRetry("a").Config().MaxDelay)
	assert.Equal(t, 100*time.Millisecond, r.MustRetry("a").Config().Backoff(1))
}

func TestParseDurationIsExact(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1ns": 1, "0.000000001": 1, "1.5us": 1500, "1.5µs": 1500, "1h1ns": time.Hour + 1, "P0DT1S": time.Second, "P1D": day,
		"0": 0, "PT0S": 0, "106751d": 106751 * day, "9223372036854775807ns": math.MaxInt64, "1.5h30m": 2 * time.Hour,
	} {
		got, err := parseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"0.5ns", "0.0000000001", "PT0.0000000001S", "106752d", "9223372036854775808ns", "P106751DT23H47M16.854775808S", "1s1h", "1s1s", "1us1µs", "1.",
		".", "1..5s", "s", "P", "PT", "P1DT", "P1H", "PT1D", "PT1.5H30M", "P1.5DT1H", "pt5m", "+5s", " 5s", "5s ", "5S", "0x10", "1_000",
		"٣s", "1h-30m", strings.Repeat("1", 65), "NaN", "1m s",
	} {
		d, err := parseDuration(text)
		assert.Error(t, err, text)
		assert.Zero(t, d, text)
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"30", "1.5h", "P1DT2H3M4.5S", "250ms", "-1s", "2562047h47m16.854775808s", "1µs", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDuration(text)
		if err != nil {
			if d != 0 {
				t.Fatalf("%q: %v beside the error %v", text, d, err)
			}
			return
		}
		if d < 0 {
			t.Fatalf("%q: negative: %v", text, d)
		}
		if again, err := parseDuration(nanoseconds(int64(d))); err != nil || again != d {
			t.Fatalf("%q is %v: read back as %v, %v", text, d, again, err)
		}
		// What the standard library takes as well means the same to it, down to its own rounding.
		if std, err := time.ParseDuration(text); err == nil && (std-d).Abs() > 1 && text != "0" {
			t.Fatalf("%q is %v, and %v to package time", text, d, std)
		}
	})
}
