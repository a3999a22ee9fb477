package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// results is everything that was measured.
type results struct {
	options options
	machine []string
	groups  []group
	cells   []*cell
	heap    map[string]float64 // bytes per instance
}

func (r *results) cell(group, name string, width int) *cell {
	i := slices.IndexFunc(r.cells, func(c *cell) bool { return c.group == group && c.name == name && c.width == width })
	if i < 0 {
		return nil
	}
	return r.cells[i]
}

func (r *results) markdown() string {
	var b strings.Builder
	b.WriteString("# Beside the peers: one run of `make bench`\n\n")
	for _, line := range r.machine {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- %d rounds of about %v each, in which the contenders take turns; ns per call are medians, ratios the median of the rounds' ratios to fairlead "+
		"(3.0 × is three times fairlead's time). Rounds are short so that most of them fit between two turns of whatever else runs; those of HTTP are five times as long, so that the collector's work is in each of them "+
		"as it is in a program's time, and those of events an eighth, and 300 times as many, since it takes quiet ones to see few nanoseconds\n"+
		"- with several goroutines, ns per call is the elapsed time by the calls of all\n", r.options.rounds, r.options.each)
	r.goals(&b)
	for _, g := range r.groups {
		r.table(&b, g)
	}
	r.heapTable(&b)
	r.setups(&b)
	return b.String()
}

func (r *results) goals(b *strings.Builder) {
	b.WriteString("\n## Goals\n\nThe design's words, and the issues' on HTTP and on events; ratios are fairlead's time to the other's.\n\n| | goal | measured | |\n|---:|---|---:|---|\n")
	missed := map[int]string{} // notes, by the goal's number
	for i, g := range goals() {
		measured, met, ok := g.check(r)
		verdict := "**missed**"
		switch {
		case !ok:
			measured, verdict = "", "not measured in this run"
		case met:
			verdict = "met"
		default:
			missed[i+1] = cmp.Or(g.note, noteUnknown)
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s |\n", i+1, g.words, measured, verdict)
	}
	explain(b, missed)
}

// explain says of each missed goal where the time goes and what is left, once where several share the reason.
func explain(b *strings.Builder, missed map[int]string) {
	if len(missed) == 0 {
		return
	}
	b.WriteString("\nWhere a goal is missed, this is where the time goes and what is left to do. The figures are of a quiet machine and of -profile; on\n" +
		"another they grow and shrink together, and a goal whose ratio is near its bound may be met in one run and missed in the next.\n\n")
	numbers := map[string][]string{}
	for _, n := range slices.Sorted(maps.Keys(missed)) {
		numbers[missed[n]] = append(numbers[missed[n]], fmt.Sprint(n))
	}
	for _, n := range slices.Sorted(maps.Keys(missed)) {
		if note := missed[n]; numbers[note][0] == fmt.Sprint(n) {
			fmt.Fprintf(b, "- %s: %s\n", strings.Join(numbers[note], ", "), note)
		}
	}
}

func (r *results) table(b *strings.Builder, g group) {
	fmt.Fprintf(b, "\n## %s\n\n|", upper(g.name))
	for _, w := range g.widths {
		fmt.Fprintf(b, " | %s | ratio", goroutines(w))
	}
	b.WriteString(" | allocs | bytes |\n|---|")
	b.WriteString(strings.Repeat("---:|---:|", len(g.widths)) + "---:|---:|\n")
	for _, c := range g.by {
		fmt.Fprintf(b, "| %s", c.name)
		for _, w := range g.widths {
			us, it := r.cell(g.name, g.by[0].name, w), r.cell(g.name, c.name, w)
			fmt.Fprintf(b, " | %s | %.2f ×", nanoseconds(it.median()), ratio(it, us))
		}
		one := r.cell(g.name, c.name, g.widths[0])
		fmt.Fprintf(b, " | %s | %.0f |\n", perCall(one.allocs), one.bytes)
	}
}

func (r *results) heapTable(b *strings.Builder) {
	if len(r.heap) == 0 {
		return
	}
	b.WriteString("\n## Heap bytes per instance\n\n| | bytes |\n|---|---:|\n")
	for _, i := range instances {
		fmt.Fprintf(b, "| %s | %.0f |\n", i.name, r.heap[i.name])
	}
}

// setups says how each is configured, once.
func (r *results) setups(b *strings.Builder) {
	b.WriteString("\n## Set-ups\n\nEach callback is a closure made for its call, and counts its runs; every round is checked: that fn ran as often as it has to, " +
		"and that the results are fn's. Where a breaker, a limiter or a bulkhead refuses, nobody retries.\n\n| work | contender | set-up |\n|---|---|---|\n")
	seen := map[string]bool{}
	for _, g := range r.groups {
		for _, c := range g.by {
			if key := c.name + c.setup; !seen[key] {
				seen[key] = true
				fmt.Fprintf(b, "| %s | %s | %s |\n", g.name, c.name, c.setup)
			}
		}
	}
}

func goroutines(n int) string {
	if n == 1 {
		return "ns"
	}
	return fmt.Sprintf("%d goroutines", n)
}

func nanoseconds(ns float64) string {
	if ns < 100 {
		return fmt.Sprintf("%.1f", ns)
	}
	return thousands(ns)
}

// perCall shows what is no whole number as such.
func perCall(allocs float64) string {
	rounded := hundredths(allocs)
	if rounded == math.Trunc(rounded) {
		return fmt.Sprintf("%.0f", rounded)
	}
	return fmt.Sprintf("%.2f", rounded)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
