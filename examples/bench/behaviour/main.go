// Behaviour asks Fairlead, its peers and the composition by hand the same questions, each by running something: does a panic
// lose a slot, does a probe that hangs wedge the circuit, is a doomed backoff slept. Answers are found, never asserted. It takes
// about two minutes, in real time.
//
//	go run ./behaviour [-run regexp] [-write BEHAVIOUR.md]       in examples/bench
//
// What may end the program runs in a program of its own: this one, with -ask.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fairlead/fairlead/examples/bench/peers"
)

const ours = "fairlead"

func subjects() []subject {
	return []subject{fairlead(), detached(), failsafeGo(), composed(), gobreakerAlone(), eapache(), hystrixGo(), cenkalti(), avastRetry(),
		xTimeRate(), xSyncSemaphore(), retryableHTTP()}
}

func probes() []probe {
	return slices.Concat(slotProbes(), breakerProbes(), retryProbes(), limitProbes(), timeoutProbes(), httpProbes(), featureProbes())
}

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is main, for the test too. It returns the exit code.
func start(args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("behaviour", flag.ContinueOnError)
	flags.SetOutput(problems)
	run := flags.String("run", "", "only the questions that this `regexp` matches")
	write := flags.String("write", "", "`FILE` for the tables, as Markdown")
	ask := flags.String("ask", "", "one `subject=question`, for a program of its own")
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	}
	only, err := regexp.Compile(*run)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is left over", flags.Args())
	}
	if err != nil {
		fmt.Fprintln(problems, "behaviour:", err)
		flags.Usage()
		return 2
	}
	if *ask != "" {
		return one(*ask, out, problems)
	}
	text := table(only.MatchString, inOwnProgram, problems)
	fmt.Fprint(out, text)
	if *write != "" {
		if err := os.WriteFile(*write, []byte(text), 0o644); err != nil {
			fmt.Fprintln(problems, "behaviour:", err)
			return 1
		}
	}
	return 0
}

// one answers a single question.
func one(ask string, out, problems io.Writer) int {
	name, question, _ := strings.Cut(ask, "=")
	for _, s := range subjects() {
		for _, p := range probes() {
			if s.name == name && p.section+": "+p.asks == question {
				fmt.Fprintln(out, p.answered(s))
				return 0
			}
		}
	}
	fmt.Fprintf(problems, "behaviour: no %q\n", ask)
	return 2
}

// inOwnProgram answers a question that may end the program.
func inOwnProgram(p probe, s subject) answer {
	ctx, cancel := context.WithTimeout(background, 2*bound)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return answer(err.Error())
	}
	said, err := exec.CommandContext(ctx, self, "-ask", s.name+"="+p.section+": "+p.asks).Output()
	switch {
	case ctx.Err() != nil:
		return hangs
	case err != nil:
		return crashes
	}
	return answer(strings.TrimSpace(string(said)))
}

// table asks everybody everything; a subject that a section does not concern has no column there.
func table(only func(string) bool, risk func(probe, subject) answer, progress io.Writer) string {
	var b strings.Builder
	b.WriteString("# Behaviour: what happens, by running it\n\n")
	fmt.Fprintf(&b, "- %s\n- %s\n", time.Now().UTC().Format("2006-01-02 15:04 MST"),
		strings.Join(append([]string{runtime.Version()}, peers.Versions()...), ", "))
	b.WriteString("- in the sections of faults a yes is a fault; n.a.: it has nothing of the kind; hangs: no answer within " + bound.String() + "\n" +
		"- each as its documentation uses it, with defaults where nothing is said; by hand is examples/bench/byhand. What takes no context is not asked\n" +
		"  how it treats one: gobreaker, eapache's breaker, semaphore and deadline, and uber ratelimit, whose Take sleeps and which has no column\n" +
		"- told the time: by the argument of x/time/rate's AllowN, by an injected clock of fairlead's. Times from time.Now never step back\n" +
		"- 3 attempts without a pause are failsafe-go's default; the others are told so. Fairlead's default budget lets 10 retries per second go in\n" +
		"  any case, and up to 100 of them at once: so a process of few calls may triple them, and one of many adds a fifth\n")
	all := probes()
	for len(all) > 0 {
		section := all[0].section
		n := slices.IndexFunc(all, func(p probe) bool { return p.section != section })
		if n < 0 {
			n = len(all)
		}
		asked := slices.DeleteFunc(slices.Clone(all[:n]), func(p probe) bool { return !only(p.section + ": " + p.asks) })
		all = all[n:]
		concerned := slices.DeleteFunc(subjects(), func(s subject) bool {
			return !slices.ContainsFunc(asked, func(p probe) bool { return p.asked(s) })
		})
		if len(asked) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n|", section)
		for _, s := range concerned {
			fmt.Fprintf(&b, " | %s", s.name)
		}
		b.WriteString(" |\n|---|" + strings.Repeat("---|", len(concerned)) + "\n")
		for _, p := range asked {
			fmt.Fprintf(progress, "%s: %s\n", p.section, p.asks)
			fmt.Fprintf(&b, "| %s", p.asks)
			for _, s := range concerned {
				a := na
				switch {
				case !p.asked(s):
				case p.risky:
					a = risk(p, s)
				default:
					a = p.answered(s)
				}
				fmt.Fprintf(&b, " | %s", a)
			}
			b.WriteString(" |\n")
		}
	}
	b.WriteString(unasked)
	return b.String()
}
