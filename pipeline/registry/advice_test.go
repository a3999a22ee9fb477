package registry

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What a message says would be right must be right: a reader who does what he is told must not be told the next thing.

// followable is an entry of a section, in which one key after the other is set to what it does not take.
type followable struct {
	section string
	keys    []string
	base    string   // the other settings, as "key: value, key: value"
	silent  []string // keys whose messages name no value, but names, say
}

var followables = []followable{
	{"store", namesOf(storeKeys), "redis: 'redis://127.0.0.1:1'", []string{"prefix", "redis"}},
	{"retry", namesOf(retryKind.keys), "", []string{"budget", "retry-on", "stop-on"}},
	{"retry", []string{"max-wait"}, "wait-duration: 250ms", nil},
	{"retry", []string{"wait-duration", "jitter"}, "max-wait: 5s", nil},
	{"retry-budget", namesOf(budgetKind.keys), "", []string{"refill", "per", "hold"}},
	{"retry-budget", []string{"capacity", "refill", "per", "hold"}, "capacity: 5, refill: 1", nil},
	{"retry-budget", []string{"per"}, "capacity: 5", nil},
	{"circuit-breaker", namesOf(breakerKind.keys), "", []string{"record-on"}},
	{"circuit-breaker", []string{"failure-threshold", "consecutive", "minimum-number-of-calls"}, "window-size: 10, failure-rate-threshold: off", nil},
	{"circuit-breaker", []string{"slow-rate"}, "slow-call: 1s", nil},
	{"circuit-breaker", []string{"max-open-for", "open-growth"}, "wait-duration-in-open: 10s", nil},
	{"circuit-breaker", []string{"idle-ttl", "min-reporters", "on-outage"}, "shared: true", nil},
	{"rate-limiter", namesOf(limitKind.keys), "max-tokens: 10, refill-rate: 10", nil},
	{"rate-limiter", []string{"max-tokens", "refill-rate", "per", "timeout", "prefetch"}, "max-tokens: 10, refill-rate: 0, shared: true", []string{"refill-rate"}},
	{"bulkhead", namesOf(slotsKind.keys), "max-concurrent: 10", nil},
	{"bulkhead", []string{"max-queue", "permit-ttl", "instances"}, "max-concurrent: 10, max-wait: 1s, shared: true", nil},
	{"time-limiter", namesOf(timeoutKind.keys), "timeout: 1s", nil},
	{"cooldown", namesOf(cooldownKind.keys), "", nil},
	{"pipelines", namesOf(pipelineKeys), "", []string{"retry", "cooldown", "circuit-breaker", "rate-limiter", "bulkhead", "retry-on-bulkhead-full", "retry-on-rate-limited"}},
	{"pipelines", []string{"attempt-timeout"}, "timeout: 1s", nil},
}

// What people write. Of what cannot be read the message says how it is written, of mistakes what it should be.
var (
	unreadable = []string{"x y", "010", "-1", "P1M", "[]", "{a: 1}", "''"}
	mistakes   = []string{
		"0", "1", "3", "10", "15", "1000", "99999999999999999999", "0.5", "2.5", "1ns", "1us", "20ms", "100ms", "1s", "10m", "90000h", "-1s", "'200%'", "off", "true", "null",
	}
)

func (f followable) document(key, value string) string {
	settings := map[string]string{}
	for pair := range strings.SplitSeq(f.base, ", ") {
		if k, v, ok := strings.Cut(pair, ": "); ok {
			settings[k] = v
		}
	}
	settings[key] = value
	if value == "" {
		delete(settings, key)
	}
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		pairs = append(pairs, k+": "+settings[k])
	}
	entry := "{" + strings.Join(pairs, ", ") + "}"
	if f.section == "store" {
		return "resilience: {store: " + entry + "}"
	}
	return fmt.Sprintf("resilience: {store: {redis: 'redis://127.0.0.1:1'}, %s: {a: %s}}", f.section, entry)
}

// told is what is said of the key in that document; "" = nothing.
func (f followable) told(key, value string) string {
	path := "resilience." + f.section + ".a." + key + " is "
	if f.section == "store" {
		path = "resilience.store." + key + " is "
	}
	r, err := LoadYAML(strings.NewReader(f.document(key, value)))
	if err == nil {
		_ = r.Close()
		return ""
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if strings.HasPrefix(line, path) {
			return line
		}
	}
	return ""
}

var (
	aside    = regexp.MustCompile(`\s*\([^)]*\)`)
	value    = regexp.MustCompile(`^(-?[0-9.]+[a-zµ%]*|P[0-9T]\S*|off|null|unlimited|full|equal|none|true|false|fail-\w+|\w+-retry)$`)
	interval = regexp.MustCompile(`(\S+) to (\S+)$`)
	bound    = regexp.MustCompile(`(?:from|at least|at most|such as) (\S+)$`)
	beyond   = regexp.MustCompile(`(?:above|more than) ([0-9]+)([a-z]*)`)
	open     = regexp.MustCompile(`^(?:less than|more than|above|below) \S+$`)
)

// advice is every value that a message says would be right; "" = to leave the key out.
func advice(want string) (values []string) {
	want, _, _ = strings.Cut(aside.ReplaceAllString(want, ""), ": ")
	take := func(texts ...string) {
		for _, text := range texts {
			if value.MatchString(text) {
				values = append(values, text)
			}
		}
	}
	beside := false // the value of a key that a bound was named by: it is not within the bound
	for _, part := range regexp.MustCompile(`,? or |, | and `).Split(want, -1) {
		if m := beyond.FindStringSubmatch(part); m != nil {
			n, _ := strconv.Atoi(m[1])
			take(strconv.Itoa(n+1) + m[2])
		} else if m := interval.FindStringSubmatch(part); m != nil {
			take(m[1], m[2])
		} else if m := bound.FindStringSubmatch(part); m != nil {
			take(m[1])
		} else if first, _, more := strings.Cut(part, " "); first == "none" && more {
			values = append(values, "")
		} else if more && first == "0" {
			take("0")
		} else if !beside {
			take(part)
		}
		beside = open.MatchString(part)
	}
	return values
}

// wants is what is said of those mistakes: the advice, and a message that gives it.
func (f followable) wants(key string, mistakes []string) map[string]string {
	found := map[string]string{}
	for _, mistake := range mistakes {
		if message := f.told(key, mistake); message != "" {
			_, want, _ := strings.Cut(message, ": want ")
			found[want] = message
		}
	}
	return found
}

func TestWhatAMessageAdvisesIsTaken(t *testing.T) {
	for _, f := range followables {
		for _, key := range f.keys {
			forms, followed := f.wants(key, unreadable), 0
			follow := func(want, message string, form bool) {
				for _, v := range advice(want) {
					followed++
					told := f.told(key, v)
					_, next, _ := strings.Cut(told, ": want ")
					if _, again := forms[next]; form && !again {
						continue // now that it can be read: what it means beside the other keys
					}
					assert.Empty(t, told, "%s\nadvises %q", message, v)
				}
			}
			for want, message := range forms {
				follow(want, message, true)
			}
			for want, message := range f.wants(key, mistakes) {
				if forms[want] == "" {
					follow(want, message, false)
				}
			}
			if !slices.Contains(f.silent, key) {
				assert.Positive(t, followed, "%s %s", f.section, key)
			}
		}
	}
}

// Advice to set another key as well, or to leave one out.
func TestWhatAMessageAdvisesBesideTheKeyIsTaken(t *testing.T) {
	for wrong, right := range map[string][]string{
		"circuit-breaker: {a: {slow-rate: 0.5}}":                             {"circuit-breaker: {a: {}}", "circuit-breaker: {a: {slow-rate: 0.5, slow-call: 1s}}"},
		"circuit-breaker: {a: {slow-rate: 0.5, slow-call: off}}":             {"circuit-breaker: {a: {slow-call: off}}"},
		"circuit-breaker: {a: {open-growth: 2, wait-duration-in-open: 10m}}": {"circuit-breaker: {a: {open-growth: 2, wait-duration-in-open: 10m, max-open-for: 11m}}"},
		"circuit-breaker: {a: {failure-rate-threshold: off, consecutive: off}}": {
			"circuit-breaker: {a: {consecutive: off}}", "circuit-breaker: {a: {failure-rate-threshold: off}}",
			"circuit-breaker: {a: {failure-rate-threshold: off, consecutive: off, failure-threshold: 1}}", "circuit-breaker: {a: {failure-rate-threshold: off, consecutive: off, slow-call: 1s}}",
		},
		"bulkhead: {a: {max-concurrent: 1, max-queue: 1}}":                   {"bulkhead: {a: {max-concurrent: 1}}", "bulkhead: {a: {max-concurrent: 1, max-queue: 1, max-wait: 1s}}"},
		"retry: {a: {wait-duration: 30s}}":                                   {"retry: {a: {wait-duration: 20s}}", "retry: {a: {wait-duration: 30s, max-wait: 30s}}"},
		"retry: {a: {strict: true}}":                                         {"retry: {a: {strict: true, max-attempts: 1}}", "retry: {a: {strict: true, retry-on: all, budget: b}}, retry-budget: {b: {}}"},
		"retry-budget: {a: {ratio: off, min-per-second: off}}":               {"retry-budget: {a: {ratio: off}}", "retry-budget: {a: {min-per-second: off}}"},
		"retry-budget: {a: {capacity: 1, per: 1s}}":                          {"retry-budget: {a: {capacity: 1, per: 1s, refill: 1}}"},
		"retry-budget: {a: {capacity: 1, ttl: 1s}}":                          {"retry-budget: {a: {capacity: 1}}", "retry-budget: {a: {ttl: 1s}}"},
		"pipelines: {a: {retry-on-bulkhead-full: true}}":                     {"pipelines: {a: {retry-on-bulkhead-full: true, retry: a, bulkhead: a}}, bulkhead: {a: {max-concurrent: 1}}"},
		"pipelines: {a: {breaker: outside-retry}}":                           {"pipelines: {a: {breaker: outside-retry, retry: a, circuit-breaker: a}}"},
		"store: {redis: 'redis://h?min_idle_conns=1'}":                       {"store: {redis: 'redis://127.0.0.1:1'}"},
		"rate-limiter: {a: {refill-rate: 0, max-tokens: 1, idle-ttl: 720h}}": {"rate-limiter: {a: {refill-rate: 0, max-tokens: 1, idle-ttl: 0}}", "rate-limiter: {a: {refill-rate: 0, max-tokens: 1, idle-ttl: null}}"},
		"time-limiter: {1s: {timeout: 1s}}":                                  {"time-limiter: {one: {timeout: 1s}}"},
		"retry-budget: {none: {}}":                                           {"retry-budget: {another: {}}", "retry: {a: {budget: none}}"},
		"rate-limiter: {a: {refill-rate: 5, per: 1us, max-tokens: 1}}":       {"rate-limiter: {a: {refill-rate: 1, per: 1us, max-tokens: 1}}"},
	} {
		problems(t, "resilience: {"+wrong+"}")
		for _, text := range right {
			loaded(t, "resilience: {"+text+"}")
		}
	}
}
