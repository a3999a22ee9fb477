package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// panel is one chart.
type panel struct {
	out             *strings.Builder
	left, top, wide int
	y               func(value float64) float64
}

func (p panel) x(second float64) float64 { return float64(p.left) + second*float64(p.wide)/seconds }

// frame is the ground, and the fault's time on it.
func (p panel) frame(from, to int) {
	fmt.Fprintf(p.out, `<rect class="ground" x="%d" y="%d" width="%d" height="%d"/><rect class="fault" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n",
		p.left, p.top, p.wide, panelHigh, p.x(float64(from)), p.top, p.x(float64(to))-p.x(float64(from)), panelHigh)
}

func (p panel) level(class string, value float64) {
	fmt.Fprintf(p.out, `<path class="%s" d="M%d %.1fH%d"/>`+"\n", class, p.left, p.y(value), p.left+p.wide)
}

// curve goes through the middle of each second, and on to the edges.
func (p panel) curve(class string, values []int) {
	edge := make([]float64, len(values))
	for i, n := range values {
		edge[i] = float64(n)
	}
	fmt.Fprintf(p.out, `<path class="%s line" d="M%s"/>`+"\n", class, strings.Join(p.points(edge), "L"))
}

// stack puts the bands on each other: as they are, or as shares of whole.
func (p panel) stack(bands []band, s series, whole []int) {
	floor := make([]float64, seconds)
	for _, band := range bands {
		ceiling := make([]float64, seconds)
		for i, n := range band.values(s) {
			v := float64(n)
			if whole != nil {
				v /= math.Max(1, float64(whole[i]))
			}
			ceiling[i] = floor[i] + v
		}
		if slices.Equal(floor, ceiling) {
			continue
		}
		back := p.points(floor)
		slices.Reverse(back)
		fmt.Fprintf(p.out, `<path class="%s" d="M%sL%sZ"/>`+"\n",
			band.class, strings.Join(p.points(ceiling), "L"), strings.Join(back, "L"))
		floor = ceiling
	}
}

func (p panel) points(values []float64) []string {
	point := func(x, v float64) string { return fmt.Sprintf("%.1f %.1f", x, p.y(v)) }
	all := []string{point(p.x(0), values[0])}
	for i, v := range values {
		all = append(all, point(p.x(float64(i)+0.5), v))
	}
	return append(all, point(p.x(float64(len(values))), values[len(values)-1]))
}
