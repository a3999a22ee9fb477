package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// version is the server's.
var version string

// report is everything that was measured.
type report struct {
	options
	machine []string
	rows    []*row
	longest []silence
}

// row is one contender's rounds.
type row struct {
	contender
	rounds []figures
}

func (r *report) add(c contender, f figures) {
	i := slices.IndexFunc(r.rows, func(row *row) bool { return row.group == c.group && row.name == c.name })
	if i < 0 {
		i = len(r.rows)
		r.rows = append(r.rows, &row{contender: c})
	}
	r.rows[i].rounds = append(r.rows[i].rounds, f)
}

// median is the round with the median throughput; what was exceeded counts from all of them.
func (r *row) median() figures {
	sorted := slices.SortedFunc(slices.Values(r.rounds), func(a, b figures) int { return int(a.perSecond - b.perSecond) })
	f := sorted[len(sorted)/2]
	for _, other := range sorted {
		f.over = max(f.over, other.over)
	}
	return f
}

func (r *report) of(group, prefix string) figures {
	i := slices.IndexFunc(r.rows, func(row *row) bool { return row.group == group && strings.HasPrefix(row.name, prefix) })
	return r.rows[i].median()
}

func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Shared guards: one run of `make bench-redis`\n\n")
	for _, line := range r.machine {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- %d goroutines on one key, in one process, with one client of default settings; the median of %d rounds of %v each, in turn\n\n", callers, r.rounds, r.each)
	b.WriteString("| guard | variant | per second | p50 | p99 | scripts at Redis per operation | Redis's share of a core | over the limit |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, row := range r.rows {
		f := row.median()
		over := fmt.Sprintf("%.0f", f.over)
		if row.group == breakers {
			over = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %.0f %% | %s |\n", row.group, row.name, thousands(f.perSecond), short(f.p50), short(f.p99), perOp(f.trips), 100*f.busy, over)
	}
	fmt.Fprintf(&b, "\nA limiter's operation is a decision, either way (%s per second, burst %s). A bulkhead's is a pair of taking one of %d slots and\n"+
		"giving it back; who finds none waits (held for 1 ms, no more than %s pairs per second are possible).\n"+
		"A breaker's is a call's Acquire and Settle, or its refusal; its scripts are the batches of results, in the background.\n", thousands(rate), thousands(burst), slots, thousands(slots*1000))
	fmt.Fprintf(&b, "\nRedis stopped (SIGSTOP) for %v, %d callers:\n\n", r.stop, callers)
	b.WriteString("| guard | calls | p99 | longest | promised | a timer was late by up to |\n|---|---:|---:|---:|---:|---:|\n")
	for _, s := range r.longest {
		promised := ""
		if s.budget > 0 {
			promised = fmt.Sprintf("%v + %v", s.budget, grace)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", s.name, thousands(float64(s.calls)), short(s.p99), short(s.longest), promised, short(s.stall))
	}
	b.WriteString("\n| goal | measured | |\n|---|---:|---|\n")
	for _, g := range r.goals() {
		met := "met"
		if !g.met {
			met = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", g.what, g.measured, met)
	}
	return b.String()
}

type goal struct {
	what, measured string
	met            bool
}

// goals are issue 3's.
func (r *report) goals() []goal {
	times := func(group, ours, theirs string) goal {
		ratio := r.of(group, ours).perSecond / r.of(group, theirs).perSecond
		return goal{fmt.Sprintf("%s ≥ 8 × %s", ours, theirs), fmt.Sprintf("%.1f ×", ratio), ratio >= 8}
	}
	limit := r.of(limiters, "redislimit")
	closed, open := r.of(breakers, "redisbreaker, closed"), r.of(breakers, "redisbreaker, open")
	goals := []goal{
		times(limiters, "redislimit", "redis_rate v10"),
		{"redislimit exact", fmt.Sprintf("%.0f over", limit.over), limit.over == 0},
		times(bulkheads, "redisbulkhead, 1 instance", "a lease of two calls, polled"),
		times(bulkheads, "redisbulkhead, 2 instances", "a lease of two calls, polled"),
		{"breaker closed: no round trip", perOp(closed.trips) + " per call", closed.trips < 0.001},
		{"breaker open: no round trip", perOp(open.trips) + " per call", open.trips < 0.001},
	}
	for _, s := range r.longest {
		if s.budget > 0 {
			goals = append(goals, goal{"Redis stopped: " + s.name + " ≤ " + (s.budget + grace).String(), short(s.longest), s.longest <= s.budget+grace})
		}
	}
	return goals
}

// machine says where the figures are from; they mean nothing elsewhere.
func machine(load string) []string {
	lines := []string{
		time.Now().UTC().Format("2006-01-02 15:04 MST"),
		fmt.Sprintf("%s, %d CPUs (%s/%s)", cpu(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		fmt.Sprintf("%s; Redis %s on the same machine", runtime.Version(), version),
	}
	if load != "" {
		lines = append(lines, "load average at the start: "+load)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		var deps []string
		for _, d := range info.Deps {
			if strings.Contains(d.Path, "redis") {
				deps = append(deps, d.Path+" "+d.Version)
			}
		}
		lines = append(lines, strings.Join(deps, ", "))
	}
	return lines
}

func cpu() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	_, rest, _ := strings.Cut(string(text), "model name")
	model, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(model, " \t:")
}

// load is what else the machine had to do.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// short is a duration in three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// perOp has one digit that is not 0, or three decimals.
func perOp(trips float64) string {
	if trips >= 0.0005 || trips <= 0 {
		return strconv.FormatFloat(trips, 'f', 3, 64)
	}
	return strconv.FormatFloat(trips, 'f', 1-int(math.Ceil(math.Log10(trips))), 64)
}
