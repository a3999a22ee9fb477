package registry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaking is documents with the password hush, in each place and shape where one may land: their errors must not repeat it.
var leaking = []string{
	// The section, or its URL, in another shape than the one that is read.
	"resilience: {store: 'redis://u:hush@h:6379/0'}",
	"resilience: {store: hush}",
	"resilience: {store: [hush]}",
	"resilience: {store: ['redis://u:hush@h:6379/0']}",
	"resilience: {store: !!str hush}",
	"resilience: {store: !hush {redis: 'redis://h'}}",
	"resilience: {store: {redis://u:hush@h:6379/0}}",
	"resilience: {store: {hush@h: }}",
	"resilience: {store: {? [hush] : x}}",
	"resilience: {store: {url: 'redis://u:hush@h'}}",
	"resilience: {store: {redis: ['redis://u:hush@h1', 'redis://u:hush@h2']}}",
	"resilience: {store: {redis: [[hush]]}}",
	"resilience: {store: {redis: {url: 'redis://u:hush@h'}}}",
	"resilience: {store: {redis: !!str redis://u:hush@h}}",
	"resilience: {store: {redis: !redis://u:hush@h x}}",
	"resilience: {store: {redis: 12hush34}}",
	"resilience: {store: {redis: *hush}}",
	"resilience: {store: {password: *p'hush}}",
	"resilience: {store: {redis: 'h:6379 password=hush'}}",
	"resilience: {store: {redis: 'u:hush@h:6379'}}",
	"resilience: {store: {redis: 'h:6379,password=hu@hush'}}",
	"resilience: {store: {prefix: [hush]}}",
	"resilience: {store: {prefix: !!str hush}}",
	"resilience: {store: {timeout: [hush]}}",
	"resilience: {store: {timeout: 'redis://u:hush@h'}}",
	"resilience:\n  store:\n    redis: |\n      redis://u:hush@h\n",
	"resilience:\n  store:\n    - redis://u:hush@h\n",
	`{"resilience": {"store": "redis://u:hush@h"}}`,
	// A URL that is none.
	"resilience: {store: {redis: 'redis://u:hush@h:port'}}",
	"resilience: {store: {redis: 'redis://u:p@hush@h/0/1'}}",
	"resilience: {store: {redis: 'redis://u:1?hush@h/0'}}",
	"resilience: {store: {redis: 'redis://u:1/hush@h'}}",
	"resilience: {store: {redis: 'redis://u:%zzhush@h'}}",
	"resilience: {store: {redis: 'redis://h/0 password=hush'}}",
	"resilience: {store: {redis: 'redis://h/0?password=hush'}}",
	"resilience: {store: {redis: 'redis://h/0?hush'}}",
	"resilience: {store: {redis: 'redis://h/0?password=x@hush'}}",
	"resilience: {store: {redis: 'redis://u:hush@h/0?min_idle_conns=3'}}",
	// Elsewhere.
	"redis://u:hush@h",
	"'redis://u:hush@h': x",
	"u:hush@h: x",
	"resilience: 'redis://u:hush@h'",
	"resilience: [u:hush@h]",
	"resilience: {'redis://u:hush@h': x}",
	"resilience: {enabled: 'redis://u:hush@h'}",
	"resilience: {cooldown: {c: {shared: 'redis://u:hush@h'}}}",
	"resilience: {cooldown: {c: {shared: !redis://u:hush@h true}}}",
	"resilience: {cooldown: {c: {max: 'h:6379 Password: hush'}}}",
	"resilience: {cooldown: {c: {max: [1s, 'hush@h']}}}",
	"resilience: {cooldown: {'redis://u:hush@h': {max: 0}}}",
	"resilience: {cooldown: {'u:hush@h': {max: 0}}}",
	"resilience: {retry: {a: {retry-on: [hush@h]}}}",
	"resilience: {retry: {a: {jitter: 'hush@h%'}}}",
	"resilience: {retry: {a: {}}, pipelines: {p: {retry: 'hush@h'}}}",
	"resilience: {retry: {'u:hush@h': {}}, pipelines: {p: {retry: b}}}",
	"resilience: {bulkhead: {b: {max-concurrent: 1}}, pipelines: {p: {bulkhead: 'hush@h', 'pwd=hush': 1}}}",
	"resilience: {time-limiter: {'9 token=hush': {timeout: 1s}}}",
}

// Neither messages nor Describe show a password.
func TestNoMessageRepeatsWhatMayBeAPassword(t *testing.T) {
	for _, text := range leaking {
		_, err := LoadYAML(strings.NewReader(text))
		require.Error(t, err, text)
		assert.NotContains(t, err.Error(), "hush", text)
		r := loaded(t, "", WithOnReload(func(err error) { assert.NotContains(t, fmt.Sprintf("%v %+v", err, err), "hush", text) }))
		require.Error(t, r.Reload(strings.NewReader(text)), text)
	}
}

func TestNoPageRepeatsWhatMayBeAPassword(t *testing.T) {
	for url, shown := range map[string]string{
		"redis://u:hush@h:1/2": "redis://…@h:1/2", "redis://:hush@h": "redis://…@h", "redis://u:hu@hush@h": "redis://…", "redis://u:1#hush@h/0": "redis://…", "rediss://u:hush@h?skip_verify=true": "rediss://…@h?skip_verify=…",
		"unix://u:hush@/tmp/redis.sock?db=1": "unix://…@/tmp/redis.sock?db=…", "redis://u:hush@[::1]:1": `"redis://…@[::1]:1"`, "redis://h/1": "redis://h/1",
	} {
		r := loaded(t, "resilience: {store: {redis: '"+url+"'}, cooldown: {c: {shared: true}}}")
		page := r.Describe().String()
		assert.NotContains(t, page, "hush", url)
		assert.Contains(t, page, "  "+shown+"\n")
		err := r.Reload(strings.NewReader("resilience: {store: {redis: 'redis://u:hush2@h'}, cooldown: {c: {shared: true}}}"))
		require.ErrorContains(t, err, "resilience.store.redis is redis://…@h: want "+shown+", as it is")
		assert.NotContains(t, err.Error(), "hush", url)
	}
}

// What can hold no password is told as it was written.
func TestWhatHoldsNoPasswordIsToldAsItWasWritten(t *testing.T) {
	for text, want := range map[string]string{
		"store: {timeout: 0}":                "resilience.store.timeout is 0: want a positive duration",
		"store: {on-outage: open}":           "resilience.store.on-outage is open: want fail-local or fail-open or fail-closed",
		"store: [a]":                         "resilience.store is a list: want a mapping",
		"store: a":                           "resilience.store is a text: want a mapping",
		"store: {redis: [a]}":                "resilience.store.redis is a list: want a URL such as redis://127.0.0.1:6379/0",
		"cooldown: {c: {max: 'http://h/a'}}": "resilience.cooldown.c.max is 'http://h/a': want a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds",
		"cooldown: {c: {max: 'a@b'}}":        "resilience.cooldown.c.max is (concealed: it may hold a password): want a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds",
		"cooldown: {'team@eu': {max: 0}}":    "resilience.cooldown.team@eu.max is 0: want a positive duration",
		"cooldown: {'team@eu': }, pipelines: {p: {cooldown: x}}": "resilience.pipelines.p.cooldown: no resilience [cooldown] instance named [x]; available: team@eu",
	} {
		assert.Equal(t, []string{want}, problems(t, "resilience: {"+text+"}"), text)
	}
}
