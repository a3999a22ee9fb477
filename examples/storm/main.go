package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	debug.SetGCPercent(400) // a run lives on little memory, and makes much garbage
	inProgram(func(in bubbles) int {
		switch err := command(in, os.Args[1:], os.Stdout, os.Stderr); {
		case errors.Is(err, flag.ErrHelp):
			return 0
		case err != nil:
			fmt.Fprintln(os.Stderr, "storm:", err)
			return 1
		}
		return 0
	})
}

// settings is the command line.
type settings struct {
	seed                uint64
	clients             int
	scenarios, policies string
	config, pipeline    string
	html, pictures      string
	json                bool
}

func command(in bubbles, args []string, stdout, stderr io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("storm", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Uint64Var(&s.seed, "seed", 1, "of everything random: the same seed gives the same bytes")
	flags.IntVar(&s.clients, "clients", 0, "send the same calls from so many processes; 0 = as the scenario says; 1 to 10000")
	flags.StringVar(&s.scenarios, "scenarios", "", "some of "+names(scenarios, scenario.id)+", with commas; empty = all")
	flags.StringVar(&s.policies, "policies", "", "some of "+names(policies, policy.id)+", with commas; empty = all")
	flags.StringVar(&s.config, "config", "", "a registry file, YAML or JSON, whose pipeline is compared too, such as examples/storm/policy.yaml")
	flags.StringVar(&s.pipeline, "pipeline", "", "its name in that file; empty = the only one")
	flags.StringVar(&s.html, "html", filepath.Join(os.TempDir(), "fairlead-storm.html"), "where the report goes; empty = nowhere")
	flags.BoolVar(&s.json, "json", false, "everything to stdout as JSON, instead of the tables; no report unless -html is given")
	flags.StringVar(&s.pictures, "pictures", "", "write the pictures of README.md into this folder, and nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: there are no arguments, only flags", flags.Arg(0))
	}
	if s.pictures != "" {
		return s.paint(in)
	}
	if s.json && !given(flags, "html") {
		s.html = ""
	}
	d, err := s.storms(in)
	if err != nil {
		return err
	}
	if s.html != "" {
		if err := os.WriteFile(s.html, []byte(d.html()), 0o644); err != nil {
			return err
		}
	}
	if s.json {
		return d.json(stdout)
	}
	if err := d.table(stdout); err != nil {
		return err
	}
	if s.html != "" {
		fmt.Fprintln(stdout, "The curves are in", s.html)
	}
	return nil
}

func (s settings) storms(in bubbles) (document, error) {
	scs, badScenario := pick("-scenarios", s.scenarios, scenarios, scenario.id)
	pols, badPolicy := pick("-policies", s.policies, policies, policy.id)
	var badClients, badConfig error
	if s.clients < 0 || s.clients > 10_000 {
		badClients = fmt.Errorf("-clients %d: has to be from 1 to 10000, or 0", s.clients)
	}
	switch {
	case s.config != "":
		var p policy
		if p, badConfig = yours(s.config, s.pipeline); badConfig == nil {
			pols = append(pols, p)
		}
	case s.pipeline != "":
		badConfig = fmt.Errorf("-pipeline %q: needs -config", s.pipeline)
	}
	if err := errors.Join(badScenario, badPolicy, badClients, badConfig); err != nil {
		return document{}, err
	}
	for i := range scs {
		if s.clients > 0 {
			scs[i].fleet.clients = s.clients
		}
	}
	return storms(in, scs, pols, s.seed)
}

func (s scenario) id() string { return s.name }
func (p policy) id() string   { return p.name }

func names[T any](of []T, id func(T) string) string {
	var all []string
	for _, x := range of {
		all = append(all, id(x))
	}
	return strings.Join(all, ", ")
}

// pick is the members of a comma-separated list, in the order of all; an empty list is all.
func pick[T any](field, list string, all []T, id func(T) string) (picked []T, err error) {
	if list == "" {
		return slices.Clone(all), nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); !slices.ContainsFunc(all, func(x T) bool { return id(x) == name }) {
			return nil, fmt.Errorf("%s %q: has to be some of %s", field, name, names(all, id))
		}
		wanted[name] = true
	}
	for _, x := range all {
		if wanted[id(x)] {
			picked = append(picked, x)
		}
	}
	return picked, nil
}

func given(flags *flag.FlagSet, name string) (is bool) {
	flags.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}
