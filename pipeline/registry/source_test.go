package registry

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/leaf/bulkhead"
)

func TestJSONAndGoMapsMeanWhatYAMLMeans(t *testing.T) {
	yamlText := `
resilience:
  enabled: false
  retry: { a: { max-attempts: 5, wait-duration: 0.25, retry-on: [timeout, context], backoff-multiplier: 1.5, budget: none } }
  rate-limiter: { b: { refill-rate: 0.5, per: PT1M, timeout: null } }
  bulkhead: { c: { max-concurrent: 7 } }
  pipelines: { p: { retry: a, rate-limiter: b, bulkhead: c, timeout: 5 } }
`
	jsonText := `{"resilience": {"enabled": false,
		"retry": {"a": {"max-attempts": 5, "wait-duration": 0.25, "retry-on": ["timeout", "context"], "backoff-multiplier": 1.5, "budget": "none"}},
		"rate-limiter": {"b": {"refill-rate": 0.5, "per": "PT1M", "timeout": null}},
		"bulkhead": {"c": {"max-concurrent": 7}},
		"pipelines": {"p": {"retry": "a", "rate-limiter": "b", "bulkhead": "c", "timeout": 5}}}}`
	type M = map[string]any
	fromMap, err := LoadMap(M{"resilience": map[string]M{
		"retry":        {"a": M{"max-attempts": int8(5), "wait-duration": 250 * time.Millisecond, "retry-on": []string{"timeout", "context"}, "backoff-multiplier": 1.5, "budget": "none"}},
		"rate-limiter": {"b": map[string]string{"refill-rate": "0.5", "per": "PT1M"}},
		"bulkhead":     {"c": map[string]uint{"max-concurrent": 7}},
		"pipelines":    {"p": &M{"retry": "a", "rate-limiter": "b", "bulkhead": "c", "timeout": 5.0}},
	}})
	require.NoError(t, err)
	fromJSON, err := LoadJSON(strings.NewReader(jsonText))
	require.NoError(t, err)
	want := loaded(t, yamlText).Describe()
	assert.Equal(t, want, fromJSON.Describe())
	want.Enabled = true
	got := fromMap.Describe()
	for _, d := range []*Description{&want, &got} { // a plain call has no nesting
		for i := range d.Instances {
			d.Instances[i].Nesting = ""
		}
	}
	for i, is := range got.Instances { // a null is not set: the map leaves timeout out, which is the same
		assert.Equal(t, want.Instances[i].Settings, is.Settings, is.Section)
	}
}

func TestOnlyTheKeyResilienceOfAFileIsRead(t *testing.T) {
	r := loaded(t, "server: {port: 80, port: 81}\nresilience: {bulkhead: {db: {max-concurrent: 3}}}\nother: [1, {a: 2}]")
	assert.Equal(t, 3, r.MustBulkhead("db").(*bulkhead.Bulkhead).Config().MaxConcurrent)
	for _, empty := range []string{"", "# nothing\n", "---\n", "{}", "resilience:", "resilience: {}"} {
		assert.Empty(t, loaded(t, empty).Describe().Instances, "%q", empty)
	}
	assert.Equal(t, []string{"the document has no key resilience; it has: other, resilence"}, problems(t, "resilence: {}\nother: 1"))
	assert.Equal(t, []string{"the document is [1, 2]: want a mapping with the key resilience"}, problems(t, "[1, 2]"))
	assert.Equal(t, []string{"resilience stands there twice: want it once"}, problems(t, "resilience: {}\nresilience: {}"))
	assert.Equal(t, []string{"registry: there is a second YAML document after ---: want one"}, problems(t, "resilience: {}\n---\nresilience: {}"))
}

func TestStrictKeysAndShapes(t *testing.T) {
	for text, want := range map[string]string{
		"resilience: {retrys: {}}":                                                      "resilience.retrys is no key of the registry; available: bulkhead, circuit-breaker, cooldown, enabled, pipelines, rate-limiter, retry, retry-budget, store, time-limiter",
		"resilience: {retry: [a]}":                                                      "resilience.retry is [a]: want a mapping",
		"resilience: {retry: {a: 3}}":                                                   "resilience.retry.a is 3: want a mapping",
		"resilience: {retry: {a: {}, a: {}}}":                                           "resilience.retry.a stands there twice: want it once",
		"resilience: {retry: {'': {}}}":                                                 "resilience.retry has the key '': want a name",
		"resilience: {retry: {~: {}}}":                                                  "resilience.retry has the key ~: want a name",
		"resilience: {retry: {[a]: {}}}":                                                "resilience.retry has the key [a]: want a name",
		"resilience: {retry: {a.b: {x: 1}}}":                                            `resilience.retry["a.b"].x is no key of the registry; available: `,
		"resilience: {enabled: yes}":                                                    "resilience.enabled is yes: want true or false",
		"resilience: {enabled: 'true'}":                                                 "resilience.enabled is 'true': want true or false",
		"resilience: {enabled: 1}":                                                      "resilience.enabled is 1: want true or false",
		"resilience: {retry: {a: {<<: {}}}}":                                            "resilience.retry.a has a merge key (<<): want its keys written out, or an alias for the whole",
		"resilience: {store: {redis: ftp://x}}":                                         "resilience.store.redis is ftp://x: want a URL such as redis://127.0.0.1:6379/0",
		"resilience: {time-limiter: {5s: {timeout: 1s}}}":                               "resilience.time-limiter.5s has a name that reads as a duration: want another",
		"resilience: {retry-budget: {none: {}}}":                                        "resilience.retry-budget.none is named none: want another name",
		"resilience: {retry-budget: {a: {ratio: 0.1, capacity: 3}}}":                    "resilience.retry-budget.a.ratio is 0.1: want either a ratio budget",
		"resilience: {retry: {a: {budget: b}}}":                                         "resilience.retry.a.budget: no resilience [retry-budget] instance named [b]; available: (none)",
		"resilience: {retry: {a: {jitter: lots}}}":                                      "resilience.retry.a.jitter is lots: want full, equal, none, a share such as 25%, or a duration",
		"resilience: {retry: {a: {jitter: 150%}}}":                                      "resilience.retry.a.jitter is 150%: want a share from 0% to 100%",
		"resilience: {retry: {a: {strict: true}}}":                                      "resilience.retry.a.budget is absent: want a budget, as strict asks for, unless max-attempts is 1",
		"resilience: {retry: {a: {retry-on: []}}}":                                      "resilience.retry.a.retry-on is []: want at least one matcher (all is every error)",
		"resilience: {pipelines: {p: {bulkhead: x}}}":                                   "resilience.pipelines.p.bulkhead: no resilience [bulkhead] instance named [x]; available: (none)",
		"resilience: {pipelines: {p: {breaker: outside-retry}}}":                        "resilience.pipelines.p.breaker is outside-retry: want both a circuit-breaker and a retry",
		"resilience: {pipelines: {p: {timeout: 5 s}}}":                                  "resilience.pipelines.p.timeout is 5 s: want a duration such as",
		"resilience: {rate-limiter: {a: {max-tokens: 3, refill-rate: 0, timeout: 1s}}}": "resilience.rate-limiter.a.timeout is 1s: want none where refill-rate is 0",
		"resilience: [":          "registry: yaml: ",
		"resilience: {a: *gone}": "registry: yaml: a value begins with *, as an alias, and there is no anchor of that name: want it quoted, or the anchor",
		"resilience: \"\xff\"":   "registry: the document is not UTF-8",
	} {
		assert.Contains(t, strings.Join(problems(t, text), "\n"), want, "%s", text)
	}
}

// Config case C45: zero and contradictory settings are errors that name the key; none panics, hangs or is silently replaced.
func TestC45ZeroAndContradictorySettingsAreErrors(t *testing.T) {
	for _, c := range []struct{ section, settings, key string }{
		{"retry", "max-attempts: 0", "max-attempts"},
		{"retry", "max-attempts: -1", "max-attempts"},
		{"retry", "backoff-multiplier: 0.5", "backoff-multiplier"},
		{"retry", "wait-duration: 2s, max-wait: 1s", "max-wait"},
		{"retry", "wait-duration: 30s, max-wait: 20s", "max-wait"},
		{"rate-limiter", "refill-rate: 0", "max-tokens"},
		{"rate-limiter", "refill-rate: 10, per: 0", "per"},
		{"rate-limiter", "refill-rate: 10, max-tokens: 0", "max-tokens"},
		{"rate-limiter", "refill-rate: -1", "refill-rate"},
		{"rate-limiter", "refill-rate: .nan", "refill-rate"},
		{"rate-limiter", "refill-rate: .inf", "refill-rate"},
		{"rate-limiter", "refill-rate: 1000001", "refill-rate"},
		{"circuit-breaker", "minimum-number-of-calls: 0", "minimum-number-of-calls"},
		{"circuit-breaker", "failure-rate-threshold: 0", "failure-rate-threshold"},
		{"circuit-breaker", "failure-rate-threshold: 1.5", "failure-rate-threshold"},
		{"circuit-breaker", "failure-rate-threshold: .nan", "failure-rate-threshold"},
		{"circuit-breaker", "half-open-max-calls: 0", "half-open-max-calls"},
		{"circuit-breaker", "probe-successes: 0", "probe-successes"},
		{"circuit-breaker", "wait-duration-in-open: 0", "wait-duration-in-open"},
		{"circuit-breaker", "wait-duration-in-open: 10s, max-open-for: 5s", "max-open-for"},
		{"circuit-breaker", "failure-rate-threshold: off, consecutive: off", "failure-rate-threshold"},
		{"circuit-breaker", "slow-rate: 0.5", "slow-rate"},
		{"bulkhead", "max-concurrent: 0", "max-concurrent"},
		{"bulkhead", "max-concurrent: 1, max-wait: 1s, max-queue: -1", "max-queue"},
		{"bulkhead", "max-concurrent: 1, max-wait: 1s, max-queue: 0", "max-queue"},
		{"bulkhead", "max-concurrent: 1, max-queue: 5", "max-queue"},
		{"bulkhead", "max-concurrent: 1.5", "max-concurrent"},
		{"bulkhead", "max-concurrent: 99999999999999999999", "max-concurrent"},
		{"time-limiter", "timeout: 0", "timeout"},
		{"cooldown", "max: 0", "max"},
		{"retry-budget", "ratio: 0", "ratio"},
		{"retry-budget", "ratio: off, min-per-second: off", "min-per-second"},
		{"retry-budget", "capacity: 0", "capacity"},
		{"retry-budget", "capacity: 5, hold: 1s", "hold"},
	} {
		text := fmt.Sprintf("resilience: {%s: {a: {%s}}}", c.section, c.settings)
		got := problems(t, text)
		assert.Len(t, got, 1, text)
		assert.True(t, strings.HasPrefix(got[0], "resilience."+c.section+".a."+c.key+" is "), "%s: %s", text, got[0])
	}
	// A minimum above a count window is clamped, by contract: still protected.
	r := loaded(t, "resilience: {circuit-breaker: {a: {window-size: 5, minimum-number-of-calls: 10}}}")
	assert.Contains(t, r.Describe().String(), "minimum-number-of-calls  5\n")
	assert.Zero(t, r.MustBreaker("a").Snapshot().FailureRate)
}

func TestMatchersAndOptionsAreChecked(t *testing.T) {
	nothing := func(error) bool { return false }
	assert.Equal(t, []string{
		`registry: the matcher "all": want a name that is not taken yet`,
		`registry: the matcher "": want a name and a function`,
		`registry: the matcher "x": want a name and a function`,
		`registry: an option is nil: want one made by a With function`,
		`registry: the client is nil: want a redis client`,
	}, problems(t, "", WithMatcher("all", nothing), WithMatcher("", nothing), WithMatcher("x", nil), nil, WithClient(nil)))
}

func TestABrokenReaderIsAnError(t *testing.T) {
	_, err := LoadYAML(nil)
	assert.ErrorContains(t, err, "the reader is nil")
	_, err = LoadMap(map[string]any{"resilience": map[string]any{"retry": make(chan int)}})
	assert.EqualError(t, err, "registry: resilience.retry is a chan int: want a map with string keys, a slice, a string, a boolean, a number or a time.Duration")
	for _, text := range []string{`{"a": 1} {`, `{"a": }`, `{"a": 1`, `nope`, `{"a": 01}`, `{"a": 1}}`, "\f"} {
		_, err := LoadJSON(strings.NewReader(text))
		assert.ErrorContains(t, err, "registry: JSON at byte", text)
	}
}

// Documents that would cost more than they are long are refused, quickly and in little memory.
func TestDocumentBombsAreRefused(t *testing.T) {
	lol := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 20; i++ {
		lol += fmt.Sprintf("a%d: &a%d [*a%d%s]\n", i, i, i-1, strings.Repeat(fmt.Sprintf(", *a%d", i-1), 9))
	}
	var names strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&names, "    n%d: {}\n", i)
	}
	cyclic := map[string]any{}
	cyclic["resilience"] = cyclic
	for name, c := range map[string]struct{ text, want string }{
		"a long document":  {strings.Repeat("#", 1<<20+1), "longer than 1048576 bytes"},
		"an alias bomb":    {lol + "resilience: {retry: *a19}", "more than 50000 values"},
		"an alias cycle":   {"resilience: &a {retry: *a}", "nests deeper than 32"},
		"10,000 names":     {"resilience:\n  retry:\n" + names.String(), "resilience.retry has 10000 names: want at most 1000"},
		"10,000 pipelines": {"resilience:\n  pipelines:\n" + names.String(), "resilience.pipelines has 10000 names: want at most 1000"},
		"nested lists":     {"resilience: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "nests deeper than 32"},
		"open brackets":    {strings.Repeat("[", 1<<20), "nests deeper than 32"},
		"open braces":      {strings.Repeat("{a: ", 1<<18), "nests deeper than 32"},
		"dashes":           {strings.Repeat("- ", 1<<19), "nests deeper than 32"},
		"questions":        {strings.Repeat("? ", 1<<19), "nests deeper than 32"},
		"indentation":      {indented(1400), "nests deeper than 32"},
		"a wide list":      {"resilience: [" + strings.Repeat("1,", 1<<19-10) + "]", "more than 50000 values"},
		"many anchors":     {"resilience: [" + strings.Repeat("&a 1,", 200_000) + "]", "more than 50000 values"},
		"json depth":       {strings.Repeat(`{"a":`, 1<<17), ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		_, err := LoadYAML(strings.NewReader(c.text))
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		assert.ErrorContains(t, err, c.want, name)
		t.Logf("%-18s %8v %6d KiB", name, took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>10)
		assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(512), "%s: MiB", name)
		_, err = LoadJSON(strings.NewReader(c.text))
		assert.Error(t, err, name)
		assert.Less(t, len(err.Error()), 20_000, name)
	}
	_, err := LoadMap(cyclic)
	assert.ErrorContains(t, err, "nests deeper than 32")
	_, err = LoadJSON(strings.NewReader(`{"resilience": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`))
	assert.ErrorContains(t, err, "nests deeper than 32")
	_, err = LoadJSON(strings.NewReader(`{"resilience": [` + strings.Repeat("1,", 100_000) + `1]}`))
	assert.ErrorContains(t, err, "more than 50000 values")
}

// indented is a mapping so many levels deep, in block style.
func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestManyProblemsAreCutShort(t *testing.T) {
	var text strings.Builder
	text.WriteString("resilience:\n  retry:\n    a:\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "      k%d: 1\n", i)
	}
	got := problems(t, text.String())
	assert.Len(t, got, 101)
	assert.Equal(t, "and 4900 problems more", got[100])
}

// fuzzedBytes bounds what is fuzzed: a document says what it can say in less, the limits have tests of their own, and the fuzzer
// makes each input that it keeps shorter in a time that grows with the square of its length (a minute for 1 KiB, during which
// nothing else is tried).
const fuzzedBytes = 300

// fuzzLoad: whatever a document is, it is refused or loaded: no panic, and what was loaded describes itself.
func fuzzLoad(t *testing.T, text []byte, load func() (*Registry, error)) {
	if len(text) > fuzzedBytes {
		return
	}
	r, err := load()
	if err != nil {
		if len(err.Error()) > 1<<20 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
		return
	}
	defer r.Close()
	page := r.Describe().String()
	if err := r.Reload(bytes.NewReader(text)); errors.Is(err, errSilent) {
		text = []byte("resilience: {}") // which is what it said to LoadYAML
		if err := r.Reload(bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	} else if err != nil {
		t.Fatalf("loaded, and not reloaded: %v", err)
	}
	if again := r.Describe().String(); again != page {
		t.Fatalf("a reload of the same changed\n%s\nto\n%s", page, again)
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte("resilience:\n  enabled: true # comment\n  store: { redis: \"redis://127.0.0.1:1/0\", timeout: 50ms }\n"))
	f.Add([]byte("resilience: {retry: {a: {wait-duration: 250ms, backoff-multiplier: 2.0, max-wait: 5s, jitter: 25%, retry-on: [timeout, unavailable]}}}"))
	f.Add([]byte("resilience: {circuit-breaker: {a: {failure-rate-threshold: 0.5, window-size: 9, half-open-probe-timeout: 0, record-on: [all], idle-ttl: 720h}}}"))
	f.Add([]byte("resilience: {bulkhead: {a: {max-concurrent: 10, max-wait: 1}}, cooldown: {a: {max: PT5M}}, retry-budget: {a: {capacity: 5}, b: {ratio: off}}}"))
	f.Add([]byte("resilience: {time-limiter: {t: {timeout: 2s}}, pipelines: {p: {timeout: t, breaker: outside-retry, circuit-breaker: a, retry: b}}}"))
	f.Add([]byte("resilience: {retry: {a: &x {max-attempts: 2}, <<: *x, !!str b: !t {}, 010: {max-attempts: 010}}}\n---\n"))
	f.Add([]byte("resilience: {retry: {a: &x {max-attempts: 2}, b: *x}}"))
	f.Add([]byte("resilience: {rate-limiter: {a: {refill-rate: 0.3, per: 1d}}, pipelines: {p: {rate-limiter: a, timeout: 5}}}"))
	f.Add([]byte("resilience: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzLoad(t, text, func() (*Registry, error) { return LoadYAML(bytes.NewReader(text), unavailable()) })
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"resilience": {"retry": {"a": {"max-attempts": 2}}, "pipelines": {"p": {"retry": "a", "timeout": 0.5}}}}`))
	f.Add([]byte(`{"resilience": {"bulkhead": {"a": {"max-concurrent": 1e3}}}}`))
	f.Add([]byte(`{"resilience": [[[[`))
	f.Add([]byte("\f")) // a space to package bytes, not to JSON
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzzLoad(t, text, func() (*Registry, error) { return LoadJSON(bytes.NewReader(text), unavailable()) })
		// The same document as a Go map, where it is one to package yaml, must not panic either.
		var m map[string]any
		if len(text) <= fuzzedBytes && yaml.Unmarshal(text, &m) == nil {
			if r, err := LoadMap(m, unavailable()); err == nil {
				_ = r.Close()
			}
		}
	})
}
