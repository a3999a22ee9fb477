package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/leaf"
)

// Description is what a registry holds, as data; String is the same for a person. It holds no password.
type Description struct {
	Enabled   bool // what every pipeline goes by
	Store     []Setting
	Instances []Instance // by section, then by name; the pipelines last
}

// Instance is one name of one section.
type Instance struct {
	Section  string // as in a document: retry, circuit-breaker, …
	Name     string
	Settings []Setting     // in force; what has no effect is left out
	State    leaf.Snapshot // of this process, now; zero where there is nothing to show
	Nesting  string        // of a pipeline
}

// Setting is one key of an instance.
type Setting struct {
	Key     string
	Value   string // as a document could say it; of a default that follows something else, or is many, in words
	Default bool   // the document does not set it
}

// Describe is every instance with its settings, whether they are defaults, and its state; it asks no store.
func (r *Registry) Describe() Description {
	r.mu.RLock()
	defer r.mu.RUnlock()
	d := Description{Enabled: r.on.On(), Store: settings(storeKeys, r.store, &r.store.entry)}
	d.Instances = slices.Concat(
		describe(r.retries), describe(r.budgets), describe(r.breakers), describe(r.limits), describe(r.bulkheads), describe(r.timeouts), describe(r.cooldowns),
	)
	for _, name := range slices.Sorted(maps.Keys(r.pipelines)) {
		h := r.pipelines[name]
		d.Instances = append(d.Instances, Instance{
			Section: "pipelines", Name: name, Settings: settings(pipelineKeys, &h.spec, &h.spec.entry), Nesting: h.pipeline.String(),
		})
	}
	return d
}

func describe[S, T any](s *shelf[S, T]) []Instance {
	var all []Instance
	for _, name := range slices.Sorted(maps.Keys(s.now)) {
		here := s.now[name]
		inForce := s.inForce(here.item, &here.spec)
		i := Instance{Section: s.section, Name: name, Settings: settings(s.keys, &inForce, s.entry(&inForce))}
		i.State, _ = s.inspect(here.item)
		all = append(all, i)
	}
	return all
}

func settings[S any](keys []key[S], s *S, e *entry) []Setting {
	var all []Setting
	for _, k := range keys {
		if value := k.show(s); value != "" {
			all = append(all, Setting{Key: k.name, Value: value, Default: !e.has(k.name)})
		}
	}
	return all
}

// String is a page: an instance and its state in a line, its settings below it, those that are defaults marked.
func (d Description) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "resilience: %s\n", map[bool]string{true: "enabled", false: "disabled: every pipeline is a plain call"}[d.Enabled])
	b.WriteString("\nstore\n")
	writeSettings(&b, d.Store)
	for _, i := range d.Instances {
		fmt.Fprintf(&b, "\n%s %s", i.Section, shown(i.Name))
		if state := stateText(i.State); state != "" {
			fmt.Fprintf(&b, "  (%s)", state)
		}
		b.WriteString("\n")
		if i.Nesting != "" {
			fmt.Fprintf(&b, "  %s\n", i.Nesting)
		}
		writeSettings(&b, i.Settings)
	}
	return b.String()
}

func writeSettings(b *strings.Builder, all []Setting) {
	width := 0
	for _, s := range all {
		width = max(width, len(s.Key))
	}
	for _, s := range all {
		mark := ""
		if s.Default {
			mark = "  (default)"
		}
		fmt.Fprintf(b, "  %-*s  %s%s\n", width, s.Key, s.Value, mark)
	}
}

// stateText is the state's word and the gauges that say something.
func stateText(s leaf.Snapshot) string {
	var parts []string
	if s.State != "" {
		parts = append(parts, s.State)
	}
	for _, g := range s.Gauges {
		if cmp.Or(g.Value, g.Limit) == 0 && g.Name != balanceGauge {
			continue
		}
		text := g.Name + " " + rounded(g.Value)
		if g.Limit != 0 {
			text += "/" + rounded(g.Limit)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// rounded keeps three digits behind the point.
func rounded(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", f), "0"), ".")
}
