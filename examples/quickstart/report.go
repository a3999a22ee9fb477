package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/fairlead/fairlead/rejection"
)

// result prints what happened.
func (s *screen) result(r *result) {
	s.done()
	sideBySide(s.out, r)
	inside(s.out, r)
	circuit(s.out, r)
	exampleOf(s.out, r)
	guide(s.out, r)
}

// tooLate is when the machine, and not the server, decides how long an attempt takes.
const tooLate = 100 * time.Millisecond

// sideBySide is two lines per phase: the same calls without and with the pipeline.
func sideBySide(out io.Writer, r *result) {
	rule(out, "THE SAME CALLS, WITHOUT AND WITH THE PIPELINE")
	columns := []column{
		{"", 12, true}, {"", 8, true}, {"calls", 6, false}, {"ok", 7, false}, {"", 8, false},
		{"p50", 8, false}, {"p99", 7, false}, {"p50", 9, false}, {"p99", 7, false},
		{"requests", 11, false}, {"in vain", 9, false}, {"peak", 6, false},
	}
	fmt.Fprintf(out, "%41s%15s%16s%26s\n", "", "┌ ms to success", "┌── ms to error", "┌──── the server's count")
	row(out, columns, heads(columns)...)
	for i := range r.with {
		name := "all"
		if i < len(phases) {
			name = phases[i].name
		} else {
			fmt.Fprintln(out)
		}
		line(out, columns, name, "without", r.without[i])
		line(out, columns, "", "with", r.with[i])
	}
	fmt.Fprintln(out, "\nin vain: requests that brought nobody a success.  peak: the most that were inside at once.")
	if r.late > tooLate {
		fmt.Fprintf(out, "This machine was busy with something else: it was late by up to %d ms. The numbers may be off.\n",
			r.late.Milliseconds())
	}
}

func line(out io.Writer, columns []column, phase, side string, s summary) {
	row(out, columns, phase, side, count(s.calls), count(s.ok), percent(s.ok, s.calls),
		millis(s.yes, 50), millis(s.yes, 99), millis(s.no, 50), millis(s.no, 99),
		count(s.served.requests), some(s.served.inVain()), count(s.served.peak))
}

// inside is what the layers did.
func inside(out io.Writer, r *result) {
	rule(out, "INSIDE THE PIPELINE")
	columns := []column{
		{"", 12, true}, {"calls", 14, false}, {"attempts", 10, false}, {"retries", 9, false}, {"timeouts", 10, false},
		{"cooldown", 12, false}, {"breaker", 9, false}, {"ratelimit", 11, false}, {"bulkhead", 10, false},
	}
	row(out, []column{{"", 57, true}, {"", 42, true}}, "", "refused by")
	row(out, columns, heads(columns)...)
	for i, s := range r.with {
		name := "all"
		if i < len(phases) {
			name = phases[i].name
		}
		row(out, columns, name, count(s.calls), count(s.attempts), some(s.retries), some(s.cut),
			some(s.layers["cooldown"]), some(s.layers["breaker"]), some(s.layers["ratelimit"]), some(s.layers["bulkhead"]))
	}
}

// circuit is when the breaker changed its mind, and why.
func circuit(out io.Writer, r *result) {
	rule(out, "THE CIRCUIT")
	if len(r.changes) == 0 {
		fmt.Fprintln(out, "closed all the time")
	}
	columns := []column{{"", 8, false}, {"", 2, true}, {"", 12, true}, {"", 10, true}, {"", 3, true}, {"", 12, true}, {"", 50, true}}
	for _, c := range r.changes {
		row(out, columns, seconds(c.at), "", phases[r.script.at(c.at)].name, c.From.String(), "►", c.To.String(), c.Reason)
	}
}

// exampleOf is one refusal, as the program around the pipeline sees it.
func exampleOf(out io.Writer, r *result) {
	rule(out, "ONE USER'S ERROR")
	if r.example == nil {
		fmt.Fprintln(out, "nobody was refused")
		return
	}
	err := r.example.err
	fmt.Fprintf(out, "at %v, %v after the call began:\n\n", seconds(r.example.began), r.example.took.Round(time.Microsecond))
	const indent = 32
	paragraph(out, indent, "  err", err.Error())
	if unavailable, ok := errors.AsType[*BillingUnavailable](err); ok {
		paragraph(out, indent, "  errors.AsType", fmt.Sprintf("%T, made by OnRejected", unavailable))
	}
	paragraph(out, indent, "  rejection.Is(err)", fmt.Sprintf("%v: nothing was sent, nothing was charged", rejection.Is(err)))
	if wait, ok := rejection.RetryAfter(err); ok {
		header := http.Header{}
		rejection.SetHeader(header, err)
		paragraph(out, indent, "  rejection.RetryAfter(err)", wait.Round(time.Millisecond).String())
		paragraph(out, indent, "  to the outside", fmt.Sprintf("%d, Retry-After: %s", rejection.Status(err), header.Get("Retry-After")))
	}
}

// guide says where to look. It quotes numbers; the judgement is the reader's.
func guide(out io.Writer, r *result) {
	rule(out, "HOW TO READ IT")
	a, b := r.without, r.with
	p99 := func(s summary) string { return millis(s.yes, 99) }
	for i, text := range []string{
		fmt.Sprintf("What fails by chance is repeated: %d calls went wrong without, %d with. What was lost is given up after 300 ms "+
			"and sent again; without, its user waits for a second.", a[0].calls-a[0].ok, b[0].calls-b[0].ok),
		fmt.Sprintf("If more come than it can serve, they queue, and in the end most wait in vain: %d ok, 99%% of them within %s ms. "+
			"With, the bulkhead lets 12 in and sends the others away at once: %d ok, 99%% within %s ms.", a[1].ok, p99(a[1]), b[1].ok, p99(b[1])),
		fmt.Sprintf("The breaker opens when 20 of 40 calls have failed, and lets one probe pass every 400 ms: %d requests "+
			"in vain without, %d with, and nobody waits for an answer that cannot come.", a[2].served.inVain(), b[2].served.inVain()),
		fmt.Sprintf("A 429 opens no circuit. Its Retry-After closes the cooldown, for everybody: %d requests in vain without, %d "+
			"with. The server's wait is in full seconds, so some of its quota stays unused: %d ok without, %d with.",
			a[3].served.inVain(), b[3].served.inVain(), a[3].ok, b[3].ok),
		fmt.Sprintf("All come back at once. The rate limit lets 225 per second in and no more, so the server stays on its feet: %d ok "+
			"without, %d with, 99%% within %s and %s ms.", a[4].ok, b[4].ok, p99(a[4]), p99(b[4])),
	} {
		paragraph(out, 12, phases[i].name, text)
	}
	all := b[len(phases)]
	paragraph(out, 12, "the price", fmt.Sprintf("%d of %d calls were never sent. Their users were told so at once, or after 20 ms in the bulkhead's "+
		"queue; nothing was charged, and all layers but the bulkhead say when to come back. Some of these calls would have "+
		"been lucky: a circuit stays open, and a cooldown "+
		"closed, for a little longer than the server needs.", all.refused, all.calls))
	paragraph(out, 12, "next", "pipeline.go is the nesting, to copy; client.go is the call. Try -workers 10: then nothing is overloaded, and the two differ little.")
}

// paragraph is text beside its heading.
func paragraph(out io.Writer, indent int, head, text string) {
	line := fmt.Sprintf("%-*s", indent, head)
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > width {
			fmt.Fprintln(out, line)
			line = strings.Repeat(" ", indent) + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(out, line)
}
