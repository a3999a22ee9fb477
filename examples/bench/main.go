// Bench measures Fairlead beside its peers and beside the composition by hand, in one run on one machine: full pipelines,
// each part alone, and HTTP clients, each with the same work for all; and says which goals of the design are met. It takes
// one to two minutes.
//
//	make bench
//	go run . [-short] [-run regexp] [-for 1ms] [-rounds 51] [-profile FILE] [-write RESULTS.md]       in this directory
//
// It is a module of its own, so that the peers stay out of the root's go.mod. How each is set up stands in the last table. The
// peers' behaviour, as far as it differs, is compared by the program in the directory behaviour.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/pprof"
	"time"
)

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is main, for the test too. It returns the exit code.
func start(args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(problems)
	o := options{calls: 2000}
	short := flags.Bool("short", false, "quick and rough: 11 rounds of 500µs")
	run := flags.String("run", "", "only the groups whose name this `regexp` matches")
	flags.DurationVar(&o.each, "for", time.Millisecond, "how long a round of each takes, 100µs to 10s; three times that with several goroutines")
	flags.IntVar(&o.rounds, "rounds", 51, "how often each is measured, in turn, 1 to 1000")
	profile := flags.String("profile", "", "`FILE` for a CPU profile of all contenders; go tool pprof -top -focus fairleadFull shows one's share")
	flags.StringVar(&o.write, "write", "", "`FILE` for the tables, as Markdown")
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	}
	if *short {
		o.each, o.rounds = 500*time.Microsecond, 11
	}
	only, err := regexp.Compile(*run)
	if err == nil && (o.each < 100*time.Microsecond || o.each > 10*time.Second || o.rounds < 1 || o.rounds > 1000 || flags.NArg() > 0) {
		err = fmt.Errorf("-for %v -rounds %d %q: out of range, or left over", o.each, o.rounds, flags.Args())
	}
	if err != nil {
		fmt.Fprintln(problems, "bench:", err)
		flags.Usage()
		return 2
	}
	o.only = only.MatchString
	r, err := profiled(*profile, func() (*results, error) { return o.everything(groups(), problems) })
	if err == nil {
		text := r.markdown()
		fmt.Fprint(out, text)
		if o.write != "" {
			err = os.WriteFile(o.write, []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(problems, "bench:", err)
		return 1
	}
	return 0
}

// profiled writes a profile of what f does, where somebody wants one.
func profiled(file string, f func() (*results, error)) (*results, error) {
	if file == "" {
		return f()
	}
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	r, err := f()
	pprof.StopCPUProfile()
	return r, errors.Join(err, out.Close())
}

// everything measures what the options ask for; progress is a line per table.
func (o options) everything(all []group, progress io.Writer) (*results, error) {
	r := &results{options: o, machine: machine(load()), heap: map[string]float64{}}
	if o.only(pipelineBytes) {
		for _, i := range instances {
			r.heap[i.name] = heapBytes(i.build)
		}
	}
	for _, g := range all {
		if !o.only(g.name) {
			continue
		}
		r.groups = append(r.groups, g)
		for _, width := range g.widths {
			fmt.Fprintf(progress, "%s, %d at once\n", g.name, width)
			cells, err := o.measure(g, width)
			if err != nil {
				return nil, err
			}
			r.cells = append(r.cells, cells...)
		}
	}
	return r, nil
}
