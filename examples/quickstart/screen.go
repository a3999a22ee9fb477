package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fairlead/fairlead/pipeline"
)

// screen is what a person sees. On a terminal the progress line moves; elsewhere there is one per second.
type screen struct {
	out   io.Writer
	moves bool
	day   time.Duration
	shown int // the second of the last progress line; -1 = none yet
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, shown: -1}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		s.moves = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

func (s *screen) intro(day time.Duration, workers int) {
	s.day = day
	fmt.Fprintf(s.out, "A billing server has a bad day of %v:\n\n", day)
	began := time.Duration(0)
	for i, p := range phases {
		fmt.Fprintf(s.out, "%8s  %-10s  %s\n", seconds(began), p.name, p.about)
		began = script{total: day}.ends(i)
	}
	fmt.Fprintf(s.out, `
It works on %d requests at once and queues the others; the more are inside, the longer each takes.
%d users call it, each of them 5 times per second, whatever happens. They live through this day
twice at the same time, each time with a server of its own:

  without   a plain http.Client with a time limit of %v
  with      the same client behind a pipeline, whose layers are, from the outside:
            %s

`, slots, workers, patience, nesting(newBilling(nil)))
}

// progress is called from one goroutine.
func (s *screen) progress(m moment) {
	m.at = min(m.at, s.day)
	second := int(m.at / time.Second)
	if !s.moves && second == s.shown {
		return
	}
	s.shown = second
	const cells = 20
	full := int(cells * m.at / s.day)
	line := fmt.Sprintf("%5.1f s  %s%s  %-10s  in the server: %3d without, %2d with  circuit %-9s", m.at.Seconds(),
		strings.Repeat("█", full), strings.Repeat("░", cells-full), phases[m.phase].name, m.without, m.with, m.circuit)
	if s.moves {
		fmt.Fprint(s.out, "\r", line)
	} else {
		fmt.Fprintln(s.out, strings.TrimRight(line, " "))
	}
}

// done ends the line that moves.
func (s *screen) done() {
	if s.moves && s.shown >= 0 {
		fmt.Fprintln(s.out)
	}
}

// nesting is the pipeline's layers, outermost first.
func nesting(p *pipeline.Pipeline) string {
	var all []string
	for _, layer := range p.Describe().Layers {
		all = append(all, layer.Kind)
	}
	return strings.Join(append(all, "call"), " ► ")
}
