package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// width is what the widest line may have.
const width = 100

// column is one column: its heading, and whether it is text (left) or a number (right).
type column struct {
	head string
	wide int
	text bool
}

// row writes cells under their columns. Too few cells leave the rest empty.
func row(out io.Writer, columns []column, cells ...string) {
	var line strings.Builder
	for i, c := range columns {
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		if c.text {
			fmt.Fprintf(&line, "%-*s", c.wide, cell)
		} else {
			fmt.Fprintf(&line, "%*s", c.wide, cell)
		}
	}
	fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
}

func heads(columns []column) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = c.head
	}
	return all
}

// rule is a heading over a line.
func rule(out io.Writer, title string) {
	fmt.Fprintf(out, "\n%s\n%s\n", title, strings.Repeat("─", width))
}

func count[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// some is count, with a dot for nothing: where most cells are 0 the others should be seen.
func some[N int | int64](n N) string {
	if n == 0 {
		return "·"
	}
	return count(n)
}

func percent(part, all int) string {
	if all == 0 {
		return "·"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(all))
}

// millis is a percentile in milliseconds, with as many digits as one can mean.
func millis(sorted []time.Duration, p int) string {
	d, ok := percentile(sorted, p)
	if !ok {
		return "·"
	}
	ms := float64(d) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
