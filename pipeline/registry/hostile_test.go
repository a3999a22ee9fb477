package registry

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a tag or a merge key means depends on the reader: none is understood, and none is passed over in silence.
func TestTagsAndMergeKeysAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"!!map {resilience: {}}":                                            "the document has the tag !!map: want none",
		"!!str resilience: {}":                                              "the document has no key resilience; it has: !!str resilience",
		"<<: {resilience: {}}":                                              "the document has no key resilience; it has: <<",
		"resilience: !foo {retry: {}}":                                      "resilience has the tag !foo: want none",
		"resilience: !!null {}":                                             "resilience has the tag !!null: want none",
		"resilience: !!null foo":                                            "resilience is !!null foo: want a mapping",
		"resilience: {enabled: !!bool true}":                                "resilience.enabled is !!bool true: want true or false",
		"resilience: {retry: !!set {a, b}}":                                 "resilience.retry has the tag !!set: want none",
		"resilience: {retry: {!!str a: {}}}":                                "resilience.retry has the key !!str a: want a name",
		"resilience: {retry: {!!binary YQ==: {}}}":                          "resilience.retry has the key !!binary YQ==: want a name",
		"resilience: {retry: {a: !foo {}}}":                                 "resilience.retry.a has the tag !foo: want none",
		"resilience: {retry: {a: {max-attempts: !!int 5}}}":                 "resilience.retry.a.max-attempts is !!int 5: want a whole number from 1 to 64",
		"resilience: {retry: {a: {max-attempts: !!null 99}}}":               "resilience.retry.a.max-attempts is !!null 99: want a whole number from 1 to 64",
		"resilience: {retry: {a: {retry-on: !!seq [all]}}}":                 "resilience.retry.a.retry-on has the tag !!seq: want none",
		"resilience: {retry: {a: {retry-on: [!!str all]}}}":                 "resilience.retry.a.retry-on[0] is !!str all: want the name of a matcher",
		"resilience: {retry: {a: {budget: !!binary YQ==}}}":                 "resilience.retry.a.budget is !!binary YQ==: want the name of an instance",
		"resilience: {retry: {a: &x {max-attempts: 3}, <<: *x}}":            "resilience.retry has a merge key (<<): want its keys written out, or an alias for the whole",
		"resilience: {retry: {a: &x {max-attempts: 3}, b: {<<: *x}}}":       "resilience.retry.b has a merge key (<<): want its keys written out, or an alias for the whole",
		"resilience: {retry: {a: &x {max-attempts: 3}, b: {<<: [*x, *x]}}}": "resilience.retry.b has a merge key (<<): want its keys written out, or an alias for the whole",
	} {
		assert.Equal(t, []string{want}, problems(t, text), text)
	}
	r := loaded(t, "base: &x {max-attempts: 9}\nresilience: {retry: {a: *x, b: *x, '<<': {}}}")
	assert.Equal(t, 9, r.MustRetry("b").Config().MaxAttempts, "an alias for the whole works, and a quoted << is a name")
	assert.NoError(t, second(r.Retry("<<")))
}

// A number means the same to every reader, or is refused.
func TestNumbersOfManyNotations(t *testing.T) {
	const whole = "want a whole number from 1 to 64"
	for text, want := range map[string]string{
		"010": whole + ", without leading zeros, which some readers take for octal", "'010'": whole + ", without leading zeros, which some readers take for octal",
		"00": whole, "0x10": whole, "0o10": whole, "0b11": whole, "1_000": whole, "1e1": whole, "+5": whole, "-0": whole, "-5": whole, "5.0": whole, "60:00": whole,
		".inf": whole, "-.inf": whole, ".nan": whole, "true": whole, "yes": whole, "on": whole, "''": whole, "' 5'": whole, "５": whole, "[5]": whole, "{}": whole,
		"18446744073709551616": whole, "9223372036854775808": whole, "1e400": whole, "2026-01-01": whole, "=": whole,
	} {
		got := problems(t, "resilience: {retry: {a: {max-attempts: "+text+"}}}")
		require.Len(t, got, 1, text)
		assert.True(t, strings.HasPrefix(got[0], "resilience.retry.a.max-attempts is "), got[0])
		assert.True(t, strings.HasSuffix(got[0], ": "+want), got[0])
	}
	const rate = "want a number of tokens per period, such as 10 or 0.5, or 0 for a quota that is never refilled"
	for text, want := range map[string]string{"010": rate + ", without leading zeros, which some readers take for octal", "00.5": rate + ", without leading zeros, which some readers take for octal", "-0": rate, "1e3": rate, "5.": rate, ".inf": rate, "0x1p4": rate, "1/2": rate} {
		assert.Equal(t, []string{"resilience.rate-limiter.a.refill-rate is " + text + ": " + want}, problems(t, "resilience: {rate-limiter: {a: {refill-rate: "+text+"}}}"))
	}
	for text, want := range map[string]string{
		"010": "a number of seconds without leading zeros, which some readers take for octal", "-0": "no negative duration", "00": "a number of seconds without leading zeros, which some readers take for octal",
		"9223372037": "at most 2562047h47m16.854775807s", "9223372036.854775808": "at most 2562047h47m16.854775807s", "0.0000000001": "whole nanoseconds", "P1Y2M": "days, hours, minutes and seconds: years have no fixed length",
		"PRIMARY": "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds", "P1DT": "an ISO 8601 duration with a number, such as PT5M", "PT1.5H30M": "a fraction in the last number alone",
		strings.Repeat("1", 65): "a duration of at most 64 characters",
	} {
		_, err := limitOf(t, "yaml", text)
		assert.EqualError(t, err, "resilience.time-limiter.a.timeout is "+text+": want "+want)
	}
	for text, want := range map[string]time.Duration{"9223372036.854775807": math.MaxInt64, "PT2562047H47M16.854775807S": math.MaxInt64, "PT05M": 5 * time.Minute, "05m": 5 * time.Minute, "P.5D": 12 * time.Hour} {
		got, err := limitOf(t, "yaml", text)
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
}

// A pipeline's timeout is a duration or a name, and a wrong duration is not taken for a name.
func TestAPipelinesTimeoutIsADurationOrAName(t *testing.T) {
	const duration = "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds"
	for text, want := range map[string]string{
		"P1Y":  " is P1Y: want days, hours, minutes and seconds: years have no fixed length",
		"5 s":  " is 5 s: want " + duration,
		"-1s":  " is -1s: want no negative duration",
		"true": " is true: want " + duration,
		"''":   " is '': want a duration, not nothing",
		"0":    " is 0: want a positive duration",
		"P95":  ": no resilience [time-limiter] instance named [P95]; available: (none)",
		"' '":  `: no resilience [time-limiter] instance named [" "]; available: (none)`,
	} {
		assert.Equal(t, []string{"resilience.pipelines.p.timeout" + want}, problems(t, "resilience: {pipelines: {p: {timeout: "+text+"}}}"))
	}
	for _, name := range []string{"5s", "3rd-party", "-x", "PT5M", "P2W"} {
		assert.Equal(t, []string{"resilience.time-limiter." + name + " has a name that reads as a duration: want another, since a pipeline's timeout may be either"},
			problems(t, "resilience: {time-limiter: {"+name+": {timeout: 1s}}}"))
	}
	assert.Equal(t, `p: timeout "P95" 1s > fn`, loaded(t, "resilience: {time-limiter: {P95: {timeout: 1s}}, pipelines: {p: {timeout: P95}}}").MustPipeline("p").String())
}

// utf16Text is text as editors of another age save it.
func utf16Text(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range append([]uint16{0xFEFF}, utf16.Encode([]rune(text))...) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func TestEncodingsAndLineEnds(t *testing.T) {
	const text = "resilience:\n  retry:\n    a: # with a comment\n      max-attempts: 4\n"
	for name, same := range map[string]string{
		"CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "CR": strings.ReplaceAll(text, "\n", "\r"), "a BOM": "\ufeff" + text, "an end": text + "...\n", "a beginning": "--- \n" + text,
		"UTF-16LE": utf16Text(binary.LittleEndian, text), "UTF-16BE": utf16Text(binary.BigEndian, text), "tabs between": strings.Replace(text, ": 4", ":\t4\t", 1),
	} {
		assert.Equal(t, 4, loaded(t, same).MustRetry("a").Config().MaxAttempts, name)
		r := loaded(t, "")
		reload(t, r, same)
		assert.Equal(t, 4, r.MustRetry("a").Config().MaxAttempts, name)
	}
	r, err := LoadJSON(strings.NewReader("\ufeff{\"resilience\": {\"retry\": {\"a\": {\"max-attempts\": 4}}}}\r\n"))
	require.NoError(t, err)
	assert.Equal(t, 4, r.MustRetry("a").Config().MaxAttempts, "a BOM before JSON")
	require.NoError(t, r.Close())
	for text, want := range map[string]string{
		"resilience:\n\tretry: {}":            "registry: yaml: line 2: found character that cannot start any token",
		"resilience: \x00":                    "registry: yaml: control characters are not allowed",
		"resilience: \x00\xff":                "registry: yaml: ",
		"resilience: \"\xff\"":                "registry: the document is not UTF-8",
		"resilience: {}\n---\n":               "registry: there is a second YAML document after ---: want one",
		"resilience: {}\n...\nmore: 1":        "registry: yaml: ",
		"resilience: {retry: {a: {}, 'a': }}": "resilience.retry.a stands there twice: want it once",
		"resilience: {}\n\"resilience\": {}":  "resilience stands there twice: want it once",
	} {
		assert.Contains(t, problems(t, text)[0], want, "%q", text)
	}
}

// Nesting, in whatever encoding and line ends it hides from a look at the text alone, is refused all the same.
func TestNestingThatHidesIsRefused(t *testing.T) {
	dashes := strings.Repeat("- ", 9_000) + "x"
	for name, text := range map[string]string{
		"UTF-16": utf16Text(binary.LittleEndian, dashes), "behind CR": "\r" + dashes, "behind NEL": "#\u0085" + dashes, "behind LS": "#\u2028" + dashes, "behind a BOM": "\ufeff" + dashes,
		"many lines": "\r" + strings.Repeat(dashes+"\r", 50), "CR indentation": strings.ReplaceAll(indented(1400), "\n", "\r"),
	} {
		assert.Equal(t, []string{"registry: the document nests deeper than 32"}, problems(t, text), name)
	}
}

func TestADocumentOfOneMiBIsRead(t *testing.T) {
	text := "resilience: {retry: {a: {max-attempts: 4}}}\n#"
	assert.Equal(t, 4, loaded(t, text+strings.Repeat("x", mostBytes-len(text))).MustRetry("a").Config().MaxAttempts)
	assert.Equal(t, []string{"registry: the document is longer than 1048576 bytes"}, problems(t, text+strings.Repeat("x", mostBytes+1-len(text))))
	var names strings.Builder
	for i := range mostNames {
		fmt.Fprintf(&names, "n%d: {max-concurrent: 1}, ", i)
	}
	assert.Len(t, loaded(t, "resilience: {bulkhead: {"+names.String()+"}}").Describe().Instances, mostNames)
	assert.Equal(t, []string{"resilience.bulkhead has 1001 names: want at most 1000"}, problems(t, "resilience: {bulkhead: {"+names.String()+"more: {max-concurrent: 1}}}"))
}
