package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
)

type word string

// under puts v under resilience.<section>.a.<key>.
func under(section, key string, v any) map[string]any {
	return map[string]any{"resilience": map[string]any{section: map[string]any{"a": map[string]any{key: v}}}}
}

func TestGoValuesOfEveryKind(t *testing.T) {
	five := 5
	pointer := &five
	for _, v := range []any{5, int8(5), int16(5), int32(5), int64(5), uint(5), uint8(5), uint16(5), uint32(5), uint64(5), float32(5), 5.0, json.Number("5"), "5", word("5"), &five, &pointer, any(&pointer)} {
		r, err := LoadMap(under("retry", "max-attempts", v))
		require.NoError(t, err, "%T", v)
		assert.Equal(t, 5, r.MustRetry("a").Config().MaxAttempts, "%T", v)
		require.NoError(t, r.Close())
	}
	for _, v := range []any{time.Duration(math.MaxInt64), "2562047h47m16.854775807s", json.Number("9223372036.854775807")} {
		r, err := LoadMap(under("time-limiter", "timeout", v))
		require.NoError(t, err, "%T", v)
		assert.Equal(t, time.Duration(math.MaxInt64), r.MustTimeout("a").Config().Limit)
		require.NoError(t, r.Close())
	}
	r, err := LoadMap(under("time-limiter", "timeout", float32(0.1)))
	require.NoError(t, err)
	assert.Equal(t, 100*time.Millisecond, r.MustTimeout("a").Config().Limit, "as it would be written, not as it is stored")
	require.NoError(t, r.Close())
	var none *int
	for _, v := range []any{nil, none, &none, map[string]int(nil)} {
		r, err := LoadMap(under("retry", "max-attempts", v))
		if v != nil && fmt.Sprintf("%T", v) == "map[string]int" {
			assert.EqualError(t, err, "resilience.retry.a.max-attempts is a mapping: want a whole number from 1 to 64")
			continue
		}
		require.NoError(t, err, "%T", v)
		assert.Equal(t, 3, r.MustRetry("a").Config().MaxAttempts, "a nil is not set")
		require.NoError(t, r.Close())
	}
	for _, m := range []map[string]any{nil, {}, {"resilience": nil}, {"resilience": map[string]any(nil)}} {
		r, err := LoadMap(m)
		require.NoError(t, err)
		assert.Empty(t, r.Describe().Instances)
		require.NoError(t, r.Close())
	}
}

func TestGoValuesThatMeanNothingAreErrors(t *testing.T) {
	const duration = "want a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds"
	for _, c := range []struct {
		v    any
		want string
	}{
		{time.Duration(-5), "resilience.time-limiter.a.timeout is -5ns: want no negative duration"},
		{time.Duration(math.MinInt64), "resilience.time-limiter.a.timeout is -9223372036854775808ns: want no negative duration"},
		{time.Duration(0), "resilience.time-limiter.a.timeout is 0ns: want a positive duration"},
		{math.NaN(), "resilience.time-limiter.a.timeout is NaN: " + duration},
		{math.Inf(1), "resilience.time-limiter.a.timeout is +Inf: " + duration},
		{math.Inf(-1), "resilience.time-limiter.a.timeout is -Inf: want no negative duration"},
		{math.Copysign(0, -1), "resilience.time-limiter.a.timeout is -0: want no negative duration"},
		{math.MaxFloat64, "resilience.time-limiter.a.timeout is 17976931348623157" + strings.Repeat("0", 63) + "…: want a duration of at most 64 characters"},
		{uint64(math.MaxUint64), "resilience.time-limiter.a.timeout is 18446744073709551615: want at most 2562047h47m16.854775807s"},
		{json.Number("1e9"), "resilience.time-limiter.a.timeout is 1e9: " + duration},
		{true, "resilience.time-limiter.a.timeout is true: " + duration},
		{[]byte("5s"), "resilience.time-limiter.a.timeout is [53, 115]: " + duration},
		{[]string{}, "resilience.time-limiter.a.timeout is []: " + duration},
		{struct{}{}, "registry: resilience.time-limiter.a.timeout is a struct {}: want a map with string keys, a slice, a string, a boolean, a number or a time.Duration"},
		{map[any]any{"x": 1}, "registry: resilience.time-limiter.a.timeout is a map[interface {}]interface {}: want a map with string keys, a slice, a string, a boolean, a number or a time.Duration"},
		{complex(1, 2), "registry: resilience.time-limiter.a.timeout is a complex128: want a map with string keys, a slice, a string, a boolean, a number or a time.Duration"},
		{func() {}, "registry: resilience.time-limiter.a.timeout is a func(): want a map with string keys, a slice, a string, a boolean, a number or a time.Duration"},
	} {
		_, err := LoadMap(under("time-limiter", "timeout", c.v))
		assert.EqualError(t, err, c.want, "%T", c.v)
	}
	type loop *loop
	var self loop
	self = &self
	list := make([]any, 1)
	list[0] = list
	for _, v := range []any{self, list} {
		_, err := LoadMap(under("retry", "retry-on", v))
		assert.EqualError(t, err, "registry: the document nests deeper than 32")
	}
	_, err := LoadMap(under("retry", "retry-on", make([]int, mostNodes)))
	assert.EqualError(t, err, "registry: the document has more than 50000 values, aliases followed")
}

func TestATypedNilReaderIsAnError(t *testing.T) {
	for _, err := range []error{second(LoadYAML((*bytes.Reader)(nil))), second(LoadJSON((*os.File)(nil))), loaded(t, "").Reload((*strings.Reader)(nil))} {
		assert.EqualError(t, err, "registry: the reader is nil: want one with a document")
	}
}

// A name is whatever the program says. Messages and the page show it so that it cannot be taken for anything else.
func TestNamesWithOddCharacters(t *testing.T) {
	for name, shown := range map[string]string{
		"a.b": "a.b", "größe/v2": "größe/v2", "a b": "a b", " a": `" a"`, "a\nb": `"a\nb"`, "\x1b[31m": `"\x1b[31m"`, "a, b": `"a, b"`, "[x]": `"[x]"`, `"`: `"\""`, "\u202e": `"\u202e"`, "\x00": `"\x00"`,
	} {
		r, err := LoadMap(map[string]any{"resilience": map[string]any{
			"circuit-breaker": map[string]any{name: nil}, "pipelines": map[string]any{name: map[string]any{"circuit-breaker": name}}}})
		require.NoError(t, err, "%q", name)
		assert.Equal(t, breaker.Closed, r.MustBreaker(name).State())
		assert.NotNil(t, r.MustPipeline(name))
		assert.EqualError(t, second(r.Breaker("x"+name)), "no resilience [circuit-breaker] instance named ["+quotedMore(shown)+"]; available: "+shown)
		assert.Contains(t, r.Describe().String(), "\ncircuit-breaker "+shown+"  (closed")
		require.NoError(t, r.Close())
	}
}

// quotedMore is how a name with an x before it is shown.
func quotedMore(shown string) string {
	if inner, ok := strings.CutPrefix(shown, `"`); ok && inner != ` a"` {
		return `"x` + inner
	}
	return "x" + strings.Trim(shown, `"`)
}

// However long the names are, what is said of a document stays readable: 50 names of 20 KB, and 100 references to none of them.
func TestMessagesStaySmallWhereNamesAreLong(t *testing.T) {
	bulkheads, pipelines := map[string]any{}, map[string]any{}
	for i := range 50 {
		bulkheads[strings.Repeat("n", 20_000)+fmt.Sprint(i)] = map[string]any{"max-concurrent": 1, "max-queue": 3, strings.Repeat("k", 20_000): 1}
	}
	for i := range 200 {
		pipelines[fmt.Sprint("p", i)] = map[string]any{"bulkhead": strings.Repeat("m", 20_000), "timeout": strings.Repeat("9", 20_000)}
	}
	_, err := LoadMap(map[string]any{"resilience": map[string]any{"bulkhead": bulkheads, "pipelines": pipelines}})
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 1<<20)
	for line := range strings.Lines(err.Error()) {
		assert.Less(t, len(line), 8_000, line[:min(len(line), 200)])
	}
}

func TestEveryProblemOfAnEntryComesAtOnce(t *testing.T) {
	assert.Equal(t, []string{
		"resilience.rate-limiter.b.timeout is -1s: want no negative duration",
		"resilience.rate-limiter.b.refill-rate is missing: want a number of tokens per period, such as 10 or 0.5, or 0 for a quota that is never refilled",
		"resilience.bulkhead.a.max-wiat is no key of the registry; available: instances, max-concurrent, max-queue, max-wait, on-outage, permit-ttl, shared",
		"resilience.bulkhead.a.max-concurrent is missing: want the number of calls at once, from 1",
		"resilience.bulkhead.c.oops is no key of the registry; available: instances, max-concurrent, max-queue, max-wait, on-outage, permit-ttl, shared",
		"resilience.bulkhead.c.max-queue is 5: want none without max-wait, or a max-wait: nobody would ever be in the queue",
		"resilience.time-limiter.c.x is no key of the registry; available: timeout",
		"resilience.time-limiter.c.timeout is missing: want a positive duration",
	}, problems(t, "resilience: {bulkhead: {a: {max-wiat: 3s}, c: {oops: 1, max-concurrent: 1, max-queue: 5}}, rate-limiter: {b: {timeout: -1s}}, time-limiter: {c: {x: 1}}}"))
}
