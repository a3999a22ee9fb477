package main

import (
	_ "embed"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
)

//go:embed chart.css
var chartStyle string

// Sizes of a grid of charts, in the picture's own units.
const (
	gutter    = 44 // the axes' labels
	space     = 16 // between columns
	panelHigh = 92 // one row
	caption   = 32 // above a row: its title, and what its colours mean
	head      = 42 // the policies' names
	foot      = 26 // the seconds
)

// band is one layer of a stack of areas, or a line.
type band struct {
	class, means string
	values       func(series) []int
}

// row is one chart per policy, all on the same scale.
type row struct {
	title string
	bands []band             // from the bottom up
	line  *band              // over them
	whole func(series) []int // what the bands are shares of; nil = absolute numbers
}

var (
	loadRow = row{
		title: "requests per second at the downstream",
		line:  &band{"attempts", "that arrive", func(s series) []int { return s.Attempts }},
		bands: []band{
			{"served", "answered in time", func(s series) []int { return less(s.Served, s.Wasted) }},
			{"wasted", "for callers who had left", func(s series) []int { return s.Wasted }},
		},
	}
	outcomeRow = row{
		title: "the users' calls",
		whole: func(s series) []int { return s.Begun },
		bands: []band{
			{"ok", "succeeded", func(s series) []int { return s.OK }},
			{"refused", "refused before anything was sent", func(s series) []int { return s.Refused }},
			{"failed", "failed", func(s series) []int { return less(less(s.Begun, s.OK), s.Refused) }},
		},
	}
	circuitRow = row{
		title: "circuits",
		whole: func(s series) []int { return plus(plus(s.Closed, s.Open), s.HalfOpen) },
		bands: []band{
			{"closed", "closed", func(s series) []int { return s.Closed }},
			{"half", "half-open", func(s series) []int { return s.HalfOpen }},
			{"open", "open", func(s series) []int { return s.Open }},
		},
	}
)

func less(a, b []int) []int { return zip(a, b, func(x, y int) int { return max(0, x-y) }) }
func plus(a, b []int) []int { return zip(a, b, func(x, y int) int { return x + y }) }

func zip(a, b []int, f func(x, y int) int) []int {
	c := make([]int, len(a))
	for i := range a {
		c[i] = f(a[i], b[i])
	}
	return c
}

// grid draws an outcome: a column per policy, a row per question. Its colours are chart.css's.
func grid(o outcome, rows []row) string {
	wide := max(176, 720/len(o.Runs)-space) // few columns are wider: the keys need room
	width := gutter + len(o.Runs)*(wide+space)
	height := head + len(rows)*(caption+panelHigh) + foot
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="storm" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(o.Title+", second by second, for each policy; the figures are in the table"))
	for i, r := range o.Runs {
		x := gutter + i*(wide+space)
		fmt.Fprintf(&b, `<text class="name" x="%d" y="20">%s</text><text x="%d" y="36">worst %.1f × · back %s</text>`+"\n",
			x, html.EscapeString(r.Label), x, r.Summary.Worst, after(r.Summary))
	}
	for k, q := range rows {
		q.draw(&b, o, wide, head+k*(caption+panelHigh)+caption)
	}
	for i := range o.Runs {
		p := panel{left: gutter + i*(wide+space), wide: wide}
		for _, s := range []int{0, o.From, o.To, seconds} {
			anchor := "middle"
			switch s {
			case 0:
				anchor = "start"
			case seconds:
				anchor = "end"
			}
			fmt.Fprintf(&b, `<text class="%s" x="%.1f" y="%d">%d</text>`, anchor, p.x(float64(s)), height-foot+15, s)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, `<text class="end" x="%d" y="%d">s</text>`+"\n</svg>\n", gutter-8, height-foot+15)
	return b.String()
}

func after(s summary) string {
	if s.Recovered > 0 {
		return "after " + s.Back()
	}
	return s.Back()
}

// key is the row's title, and its colours with what they mean.
func (q row) key(b *strings.Builder, y int) {
	fmt.Fprintf(b, `<text class="title" x="%d" y="%d">%s`, gutter, y, q.title)
	bands := q.bands
	if q.line != nil {
		bands = append([]band{*q.line}, bands...)
	}
	for _, band := range bands {
		fmt.Fprintf(b, `<tspan class="%s key" dx="12">■</tspan><tspan class="means" dx="4">%s</tspan>`, band.class, band.means)
	}
	b.WriteString("</text>\n")
}

// scale is the row's largest value, and what is written beside its axis.
func (q row) scale(o outcome) (most float64, marks map[float64]string) {
	if q.whole != nil {
		return 1, map[float64]string{0: "0", 0.5: "50 %", 1: "100 %"}
	}
	capacity := float64(o.Fleet.Capacity)
	most = capacity
	for _, r := range o.Runs {
		most = max(most, float64(slices.Max(q.line.values(r.Series))))
	}
	marks = map[float64]string{0: "0", capacity: fmt.Sprint(capacity)}
	if round := leading(most); round > 1.3*capacity {
		marks[round] = fmt.Sprint(round)
		if most > 5*capacity {
			delete(marks, capacity) // too near the ground
		}
	}
	return 1.05 * most, marks
}

func (q row) draw(b *strings.Builder, o outcome, wide, top int) {
	q.key(b, top-9)
	most, marks := q.scale(o)
	y := func(v float64) float64 { return float64(top) + panelHigh*(1-v/most) }
	for _, v := range slices.Sorted(maps.Keys(marks)) {
		fmt.Fprintf(b, `<text class="end" x="%d" y="%.1f">%s</text>`, gutter-6, y(v)+3.5, marks[v])
	}
	b.WriteByte('\n')
	for i, r := range o.Runs {
		p := panel{out: b, left: gutter + i*(wide+space), top: top, wide: wide, y: y}
		p.frame(o.From, o.To)
		var whole []int
		if q.whole != nil {
			if whole = q.whole(r.Series); total(whole) == 0 {
				fmt.Fprintf(b, `<text class="middle" x="%d" y="%d">none</text>`+"\n", p.left+wide/2, top+panelHigh/2+4)
				continue
			}
		}
		p.stack(q.bands, r.Series, whole)
		if q.line != nil {
			p.level("capacity", float64(o.Fleet.Capacity))
			p.curve(q.line.class, q.line.values(r.Series))
		}
	}
}

// leading is v with all digits but the first made zero.
func leading(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	return math.Floor(v/power) * power
}
