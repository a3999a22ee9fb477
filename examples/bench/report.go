package main

import (
	"fmt"
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
		"(3.0 × is three times fairlead's time). Rounds are short so that most of them fit between two turns of whatever else runs\n"+
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
	b.WriteString("\n## Goals\n\nThe design's words; ratios are fairlead's time to the other's.\n\n| goal | measured | |\n|---|---:|---|\n")
	for _, g := range goals {
		measured, met, ok := g.check(r)
		verdict := "**missed**"
		switch {
		case !ok:
			measured, verdict = "", "not measured in this run"
		case met:
			verdict = "met"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", g.words, measured, verdict)
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
	rounded := math.Round(allocs*100) / 100
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
