package registry

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// longestText is how much of a duration, a number or a word is looked at: nothing that means something is longer.
const longestText = 64

// unit is what a number in a duration counts.
type unit struct {
	name string
	size time.Duration
}

const day = 24 * time.Hour

// The units of both notations, from the largest: within one duration they stand in this order, each at most once.
var (
	units    = []unit{{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}, {"µs", time.Microsecond}, {"μs", time.Microsecond}, {"ns", time.Nanosecond}}
	isoTimes = []unit{{"H", time.Hour}, {"M", time.Minute}, {"S", time.Second}}
	isoDays  = []unit{{"D", day}}
)

// unfixed is what ISO 8601 knows and no duration can be: its length depends on the calendar.
var unfixed = map[byte]string{'Y': "years", 'M': "months", 'W': "weeks"}

// unfixedError is a duration whose length is not fixed.
type unfixedError struct{ unit string }

func (e unfixedError) Error() string {
	return "days, hours, minutes and seconds: " + e.unit + " have no fixed length"
}

// padded says that a number begins with a zero that means nothing: YAML 1.1 reads 010 as 8.
func padded(number string) bool {
	return len(number) > 1 && number[0] == '0' && number[1] >= '0' && number[1] <= '9'
}

var (
	errPadded  = errors.New("without leading zeros, which some readers take for octal")
	errTooLong = errors.New("at most 2562047h47m16.854775807s")
	errTooFine = errors.New("whole nanoseconds")
)

// parseDuration reads 30 and 1.5 (seconds), 250ms, 1h30m, 5d, and ISO 8601 from days to seconds: P1DT2H3M4.5S. It is exact to
// the nanosecond, or an error that says what was wanted. There are no signs and no spaces.
func parseDuration(text string) (time.Duration, error) {
	switch {
	case text == "":
		return 0, errors.New("a duration, not nothing")
	case len(text) > longestText:
		return 0, fmt.Errorf("a duration of at most %d characters", longestText)
	case text[0] == '-':
		return 0, errors.New("no negative duration")
	case text[0] == 'P':
		return parseISO(text[1:])
	}
	if number, rest := cutNumber(text); number != "" && rest == "" {
		if padded(number) {
			return 0, fmt.Errorf("a number of seconds %w", errPadded)
		}
		return total(number, time.Second)
	}
	return parseUnits(text, units)
}

// parseISO reads what follows the P.
func parseISO(text string) (time.Duration, error) {
	days, times, timed := strings.Cut(text, "T")
	if i := strings.IndexAny(days, "YMW"); i > 0 && days[i-1] >= '0' && days[i-1] <= '9' {
		return 0, unfixedError{unfixed[days[i]]}
	}
	if days == "" && times == "" || timed && times == "" {
		return 0, errors.New("an ISO 8601 duration with a number, such as PT5M")
	}
	if _, fraction, ok := strings.Cut(text, "."); ok && len(strings.TrimLeft(fraction, "0123456789")) > 1 {
		return 0, errors.New("a fraction in the last number alone")
	}
	var sum time.Duration
	for _, part := range []struct {
		text  string
		units []unit
	}{{days, isoDays}, {times, isoTimes}} {
		if part.text == "" {
			continue
		}
		d, err := parseUnits(part.text, part.units)
		if err != nil {
			return 0, err
		}
		if sum += d; sum < 0 {
			return 0, errTooLong
		}
	}
	return sum, nil
}

// parseUnits reads numbers that are followed by their units.
func parseUnits(text string, known []unit) (time.Duration, error) {
	var sum time.Duration
	for text != "" {
		number, rest := cutNumber(text)
		u, name := cutUnit(rest, known)
		if number == "" || name == "" {
			return 0, errors.New("a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds")
		}
		rest = rest[len(name):]
		d, err := total(number, known[u].size)
		if err != nil {
			return 0, err
		}
		if sum += d; sum < 0 {
			return 0, errTooLong
		}
		for next := u; u < len(known) && known[u].size == known[next].size; {
			u++
		}
		text, known = rest, known[u:]
	}
	return sum, nil
}

// cutNumber takes digits with at most one point among or before them: 30, 1.5, .5.
func cutNumber(text string) (number, rest string) {
	i, digits, points := 0, 0, 0
	for ; i < len(text); i++ {
		if c := text[i]; c >= '0' && c <= '9' {
			digits++
		} else if c == '.' && points == 0 {
			points++
		} else {
			break
		}
	}
	if digits == 0 || text[i-1] == '.' {
		return "", text
	}
	return text[:i], text[i:]
}

// cutUnit is the index of the unit that text begins with, and its name; "" = none.
func cutUnit(text string, known []unit) (i int, name string) {
	letters := text
	if end := strings.IndexAny(text, "0123456789."); end >= 0 {
		letters = text[:end]
	}
	for i, u := range known {
		if u.name == letters {
			return i, letters
		}
	}
	return 0, ""
}

// total is number × size, exactly.
func total(number string, size time.Duration) (time.Duration, error) {
	r, ok := new(big.Rat).SetString(number)
	if !ok { // cutNumber made it
		return 0, errors.New("a number")
	}
	r.Mul(r, new(big.Rat).SetInt64(int64(size)))
	switch {
	case !r.IsInt():
		return 0, errTooFine
	case !r.Num().IsInt64():
		return 0, errTooLong
	}
	return time.Duration(r.Num().Int64()), nil
}
