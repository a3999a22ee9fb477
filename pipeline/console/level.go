package console

import (
	"fmt"
	"slices"
	"strings"
)

// level is how much a pipeline wants to be looked at. The order is that of the page: trouble first.
type level int

const (
	bad level = iota
	warn
	fine
	idle
)

func (l level) MarshalText() ([]byte, error) {
	return []byte([...]string{"bad", "warn", "ok", "idle"}[l]), nil
}

const (
	badShare   = 0.5  // of calls failed or refused in ten seconds
	warnShare  = 0.05 //
	fewestBad  = 5    // calls, before a share is trouble
	trendShare = 0.1  // that the share must have moved by
)

// finding is one thing that is wrong.
type finding struct {
	level level
	text  string
}

// judge finds what is wrong with a pipeline, the worst first, from what its row says already.
func (r *row) judge(now, before sums, by string, retryStarved uint64, quiet bool) {
	var all []finding
	for i := range r.Layers {
		all = append(all, r.Layers[i].findings()...)
	}
	if share := ratio(now.failed, now.calls); share >= warnShare {
		l := warn
		if share >= badShare && now.calls >= fewestBad {
			l = bad
		}
		all = append(all, finding{l, fmt.Sprintf("%.0f %% of %s failed in 10 s", 100*share, plural(int(now.calls), "call"))})
	}
	if now.refused > 0 {
		l := warn
		if share := ratio(now.refused, now.calls); share >= badShare && now.calls >= fewestBad {
			l = bad
		}
		all = append(all, finding{l, fmt.Sprintf("%d of %s refused in 10 s%s", now.refused, plural(int(now.calls), "call"), by)})
	}
	if retryStarved > 0 {
		all = append(all, finding{warn, "the retry budget is spent: " + unsent(retryStarved) + " in 10 s"})
	}
	slices.SortStableFunc(all, func(a, b finding) int { return int(a.level) - int(b.level) })
	r.Level, r.Why = fine, []string{}
	for _, f := range all {
		r.Why = append(r.Why, f.text)
	}
	switch {
	case len(all) > 0:
		r.Level, r.Trend = all[0].level, trend(now.bad(), before.bad(), before.calls > 0)
	case quiet:
		r.Level = idle
	}
}

// refusers names the guards that have refused something since before.
func refusers(now, before *reading) string {
	var all []string
	for kind, name := range [guardKinds]string{"cooldown", "breaker", "rate limit", "guard", "bulkhead", "another layer"} {
		if now.rejected[kind] > before.rejected[kind] {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ", by " + strings.Join(all, " and ")
}

func unsent(n uint64) string {
	if n == 1 {
		return "1 retry was not made"
	}
	return fmt.Sprintf("%d retries were not made", n)
}

// findings is what is wrong with one layer.
func (l *layer) findings() (all []finding) {
	add := func(v level, text string) { all = append(all, finding{v, text}) }
	if l.Error != "" {
		add(warn, fmt.Sprintf("%s cannot be looked at: %s", l.called(), l.Error))
	}
	if c := l.Breaker; c != nil {
		switch {
		case c.State == "open" && c.Forced:
			add(bad, l.called()+" is forced open")
		case c.State == "open" && c.Trip != "":
			add(bad, l.called()+" is open: "+c.Trip)
		case c.State == "open":
			add(bad, l.called()+" is open")
		case c.State == "half-open":
			add(warn, l.called()+" is half-open: probing")
		case c.Forced:
			add(warn, l.called()+" is forced closed")
		}
	}
	if l.Kind == "cooldown" && l.State == "cooling" {
		add(warn, l.called()+" is cooling: the other side asked for a pause")
	}
	for _, g := range l.Gauges {
		switch {
		case g.Name == "store_down" && g.Value > 0:
			add(warn, l.called()+": its store cannot be asked")
		case g.Name == "in_use" && g.Limit > 0 && g.Value >= g.Limit:
			add(warn, fmt.Sprintf("%s is full: %g of %g", l.called(), g.Value, g.Limit))
		}
	}
	return all
}

func (l *layer) called() string {
	if l.Name == "" {
		return l.Kind
	}
	return fmt.Sprintf("%s %q", l.Kind, l.Name)
}

// trend compares the share of bad calls with what it was half a minute before.
func trend(now, before float64, known bool) string {
	switch {
	case !known:
		return ""
	case now <= before-trendShare || now == 0 && before > 0:
		return "better"
	case now >= before+trendShare:
		return "worse"
	}
	return "steady"
}

func ratio(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
