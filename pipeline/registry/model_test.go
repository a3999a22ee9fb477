package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// What a registry remembers, as one would tell it: pure, and in tenths of a second and of a token. The names of the instances
// are those of their documents; an instance that was once made stays, whatever its document becomes.

// refDoc is a document: the settings that the model knows, by name.
type refDoc struct {
	enabled  bool
	retries  map[string]int // max-attempts
	breakers map[string]refBreaker
	limits   map[string]refLimit
	quotas   map[string]int // of the section rate-limiter, too
	slots    map[string]int
	pools    map[string]int
	cools    map[string]int // tenths of a second
	pipes    map[string]refPipe
}

type refPipe struct{ timeout, breaker, limit, slots bool } // each layer of the name "a"

type refLimit struct{ rate, burst, tenths int }

func (l *refLimit) pass(steps int) { l.tenths = min(l.tenths+steps*l.rate, l.burst*10) }
func (l *refLimit) take(n int) bool {
	if l.tenths < 10*n {
		return false
	}
	l.tenths -= 10 * n
	return true
}

type refQuota struct{ n, spent int }

func (q *refQuota) left() int { return max(0, q.n-q.spent) }

type refBreaker struct {
	consecutive, openFor int
	fails, until         int
	open                 bool
}

// refuses says whether a call may not go.
func (b *refBreaker) refuses(now int) bool { return b.open && now < b.until }

func (b *refBreaker) result(now int, failed bool) {
	if !failed {
		b.open, b.fails = false, 0
		return
	}
	if b.fails++; b.open || b.fails >= b.consecutive {
		b.open, b.fails, b.until = true, 0, now+b.openFor
	}
}

type refSlots struct {
	max, inside int
	line        []int // of those who wait, in order
}

func (s *refSlots) serve() (granted []int) {
	for s.inside < s.max && len(s.line) > 0 {
		granted, s.line = append(granted, s.line[0]), s.line[1:]
		s.inside++
	}
	return granted
}

type refPool struct{ capacity, left int }

type refCool struct{ max, until int }

func (c *refCool) hint(now, wait int) { c.until = max(c.until, now+min(wait, c.max)) }

// refRegistry is all of it.
type refRegistry struct {
	now      int
	doc      refDoc // in force
	attempts map[string]int
	breakers map[string]*refBreaker
	limits   map[string]*refLimit
	quotas   map[string]*refQuota
	slots    map[string]*refSlots
	pools    map[string]*refPool
	cools    map[string]*refCool
	pipes    map[string]refPipe
}

func newRef() *refRegistry {
	return &refRegistry{
		attempts: map[string]int{}, breakers: map[string]*refBreaker{}, limits: map[string]*refLimit{}, quotas: map[string]*refQuota{},
		slots: map[string]*refSlots{}, pools: map[string]*refPool{}, cools: map[string]*refCool{}, pipes: map[string]refPipe{},
	}
}

// put is a reload of a valid document: parameters change, history stays. It says whom a larger limit lets in.
func (r *refRegistry) put(d refDoc) (granted []int) {
	r.doc = d
	maps.Copy(r.attempts, d.retries)
	maps.Copy(r.pipes, d.pipes)
	for name, want := range d.breakers {
		b := made(r.breakers, name)
		b.consecutive, b.openFor = want.consecutive, want.openFor
	}
	for name, want := range d.limits {
		l, had := r.limits[name]
		if !had {
			l = made(r.limits, name)
			l.tenths = want.burst * 10
		}
		l.rate, l.burst, l.tenths = want.rate, want.burst, min(l.tenths, want.burst*10)
	}
	for name, n := range d.quotas {
		made(r.quotas, name).n = n
	}
	for name, n := range d.slots {
		s := made(r.slots, name)
		s.max = n
		granted = append(granted, s.serve()...)
	}
	for name, n := range d.pools {
		p, had := r.pools[name]
		if !had {
			p = made(r.pools, name)
			p.left = n
		}
		p.capacity, p.left = n, min(p.left, n)
	}
	for name, longest := range d.cools {
		c := made(r.cools, name)
		c.max, c.until = longest, min(c.until, r.now+longest)
	}
	return granted
}

func made[T any](all map[string]*T, name string) *T {
	if all[name] == nil {
		all[name] = new(T)
	}
	return all[name]
}

func (r *refRegistry) pass(steps int) {
	r.now += steps
	for _, l := range r.limits {
		l.pass(steps)
	}
}

// nesting is what a pipeline prints.
func (r *refRegistry) nesting(name string) string {
	p, text := r.pipes[name], name+": "
	if r.doc.enabled {
		for _, layer := range []struct {
			on   bool
			text string
		}{{p.timeout, fmt.Sprintf("timeout %q 1h0m0s > ", name)}, {p.breaker, `breaker "a" > `}, {p.limit, `ratelimit "a" > `}, {p.slots, `bulkhead "a" > `}} {
			if layer.on {
				text += layer.text
			}
		}
	}
	return text + "fn"
}

// randomDoc is a valid document: each name is there four times in five, and pipelines name what is there.
func randomDoc(rnd *rand.Rand) refDoc {
	d := refDoc{
		enabled: rnd.IntN(5) > 0, retries: map[string]int{}, breakers: map[string]refBreaker{"keep": {consecutive: 3, openFor: 10}}, limits: map[string]refLimit{},
		quotas: map[string]int{}, slots: map[string]int{}, pools: map[string]int{}, cools: map[string]int{}, pipes: map[string]refPipe{},
	}
	there := func() bool { return rnd.IntN(5) > 0 }
	for _, name := range []string{"a", "b"} {
		if there() {
			d.retries[name] = 1 + rnd.IntN(9)
		}
		if there() {
			d.breakers[name] = refBreaker{consecutive: 1 + rnd.IntN(4), openFor: 1 + rnd.IntN(80)}
		}
		if there() {
			d.limits[name] = refLimit{rate: []int{1, 2, 5, 10}[rnd.IntN(4)], burst: 1 + rnd.IntN(20)}
		}
		if there() {
			d.quotas["q"+name] = 1 + rnd.IntN(500)
		}
		if there() {
			d.slots[name] = 1 + rnd.IntN(6)
		}
		if there() {
			d.pools[name] = 1 + rnd.IntN(300)
		}
		if there() {
			d.cools[name] = 1 + rnd.IntN(100)
		}
	}
	for _, name := range []string{"p", "q"} {
		if there() {
			_, breaker := d.breakers["a"]
			_, limit := d.limits["a"]
			_, slots := d.slots["a"]
			d.pipes[name] = refPipe{there(), breaker && there(), limit && there(), slots && there()}
		}
	}
	return d
}

// text is the document as YAML or JSON, with what else is to stand in it, by section.
func (d refDoc) text(rnd *rand.Rand, more map[string]string) string {
	sections := map[string][]string{}
	add := func(section, name, format string, args ...any) {
		sections[section] = append(sections[section], fmt.Sprintf("%q: {", name)+fmt.Sprintf(format, args...)+"}")
	}
	for name, n := range d.retries {
		add("retry", name, `"max-attempts": %d`, n)
	}
	for name, b := range d.breakers {
		add("circuit-breaker", name, `"failure-rate-threshold": "off", "window-size": 1000, "minimum-number-of-calls": 1000, "consecutive": %d, "wait-duration-in-open": "%dms"`, b.consecutive, b.openFor*100)
	}
	for name, l := range d.limits {
		add("rate-limiter", name, `"refill-rate": %d, "max-tokens": %d`, l.rate, l.burst)
	}
	for name, n := range d.quotas {
		add("rate-limiter", name, `"refill-rate": 0, "max-tokens": %d`, n)
	}
	for name, n := range d.slots {
		add("bulkhead", name, `"max-concurrent": %d, "max-wait": "100000d"`, n)
	}
	for name, n := range d.pools {
		add("retry-budget", name, `"capacity": %d`, n)
	}
	for name, n := range d.cools {
		add("cooldown", name, `"max": "%dms"`, n*100)
	}
	for name, p := range d.pipes {
		var layers []string
		for layer, on := range map[string]bool{`"timeout": "1h"`: p.timeout, `"circuit-breaker": "a"`: p.breaker, `"rate-limiter": "a"`: p.limit, `"bulkhead": "a"`: p.slots} {
			if on {
				layers = append(layers, layer)
			}
		}
		add("pipelines", name, "%s", strings.Join(layers, ", "))
	}
	for section, entry := range more {
		sections[section] = append(sections[section], entry)
	}
	parts := []string{fmt.Sprintf(`"enabled": %v`, d.enabled)}
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		parts = append(parts, fmt.Sprintf("%q: {%s}", section, strings.Join(sections[section], ", ")))
	}
	text := `{"resilience": {` + strings.Join(parts, ", ") + "}}"
	if rnd.IntN(2) == 0 || !json.Valid([]byte(text)) {
		return text
	}
	return "# YAML\n" + text
}

// faults make any document invalid, each in another section.
var faults = []map[string]string{
	{"retry": `"z": {"max-attempts": 0}`}, {"circuit-breaker": `"z": {"consecutive": "off", "failure-rate-threshold": "off"}`}, {"rate-limiter": `"z": {"max-tokens": 5}`},
	{"bulkhead": `"z": {"max-concurrent": 1.5}`}, {"retry-budget": `"z": {"capacity": 1, "ratio": 1}`}, {"cooldown": `"z": {"max": 0}`}, {"time-limiter": `"z": {}`},
	{"pipelines": `"z": {"retry": "nobody", "bulkhead": "nobody"}`}, {"pipelines": `"z": {"timeout": 5, "attempt-timeout": 5}`}, {"oops": ""}, {"retry": `"a": {}, "a": {}`},
	{"rate-limiter": `"qa": {"refill-rate": 1}, "qa": {"refill-rate": 1}`}, {"pipelines": `"z": {]`}, {"store": `"redis": "none"`},
}
