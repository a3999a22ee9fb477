package rejection

import (
	"math"
	"strings"
	"time"
)

// ParseRetryAfter reads the value of a Retry-After header; blanks and tabs around it are ignored. It understands
// delay-seconds (ASCII digits only, any number of them, saturating at the largest Duration) and the three HTTP-date
// forms, taken as GMT, relative to now. A date in the past is (0, true); anything else is (0, false).
// Never negative, never a panic.
//
// Source: RFC 9110, sections 10.2.3 and 5.6.7. A two-digit year that would be more than 50 years ahead of now is of the
// century before. Of the grammar two things are taken loosely: the weekday need not be the date's, and the form with the
// two-digit year may say UTC for GMT. Any other zone is refused, not guessed: a wait that is hours off is worse than none.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	if wait, ok := delaySeconds(value); ok {
		return wait, true
	}
	at, ok := httpDate(value, now)
	if !ok {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

func delaySeconds(value string) (time.Duration, bool) {
	const most = math.MaxInt64 / int64(time.Second)
	var s int64
	for _, c := range []byte(value) {
		if c < '0' || c > '9' {
			return 0, false
		}
		if s <= most { // beyond, it only matters that the rest are digits
			s = s*10 + int64(c-'0')
		}
	}
	if s > most {
		return math.MaxInt64, true
	}
	return time.Duration(s) * time.Second, value != ""
}

// The forms of an HTTP-date. GMT is a literal here: where a layout has a zone, package time takes any abbreviation for it,
// and those that it does not know as GMT.
const (
	imfFixdate = "Mon, 02 Jan 2006 15:04:05 GMT"
	rfc850     = "Monday, 02-Jan-06 15:04:05 GMT"
	asctime    = "Mon Jan _2 15:04:05 2006"

	longest = len("Wednesday, 02-Jan-06 15:04:05 GMT")
)

func httpDate(value string, now time.Time) (time.Time, bool) {
	if len(value) > longest {
		return time.Time{}, false
	}
	value, leap := leapSecond(value)
	if t, ok := parseExactly(imfFixdate, value); ok {
		return t.Add(leap), true
	}
	if t, ok := parseExactly(asctime, value); ok {
		return t.Add(leap), true
	}
	if head, ok := strings.CutSuffix(value, " UTC"); ok {
		value = head + " GMT"
	}
	if t, ok := parseExactly(rfc850, value); ok {
		t, ok = nearestCentury(t, now.UTC())
		return t.Add(leap), ok
	}
	return time.Time{}, false
}

// leapSecond makes the one second that HTTP knows and package time does not the second before, and leap what is missing.
func leapSecond(value string) (same string, leap time.Duration) {
	before, after, ok := strings.Cut(value, " 23:59:60 ")
	if !ok {
		return value, 0
	}
	return before + " 23:59:59 " + after, time.Second
}

// parseExactly is time.Parse without what that takes besides: other case, more blanks, fractions of a second.
func parseExactly(layout, value string) (time.Time, bool) {
	t, err := time.Parse(layout, value)
	if err != nil {
		return time.Time{}, false
	}
	_, date, _ := strings.Cut(value, " ") // behind the weekday, which is anyone's
	_, want, _ := strings.Cut(t.Format(layout), " ")
	return t, date == want
}

// nearestCentury gives t's two-digit year the latest century in which t is not more than 50 years after now.
func nearestCentury(t, now time.Time) (time.Time, bool) {
	in := func(year int) time.Time {
		return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	horizon := now.AddDate(50, 0, 0)
	year := horizon.Year() - mod100(horizon.Year()-t.Year())
	if in(year).After(horizon) {
		year -= 100
	}
	at := in(year)
	return at, at.Day() == t.Day() // 29 February exists in 2000, and in neither 1900 nor 2100
}

func mod100(n int) int { return (n%100 + 100) % 100 }
