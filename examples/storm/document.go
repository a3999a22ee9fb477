package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// document is everything that was found out.
type document struct {
	Seed      uint64    `json:"seed"`
	Scenarios []outcome `json:"scenarios"`
}

// outcome is one scenario under each policy.
type outcome struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Text  string `json:"text"`
	From  int    `json:"fault_begins_s"`
	To    int    `json:"fault_ends_s"`
	Fleet struct {
		Clients  int `json:"clients"`
		Calls    int `json:"calls_per_second"`
		Capacity int `json:"downstream_requests_per_second"`
	} `json:"fleet"`
	Runs []run `json:"runs"`
}

// storms runs every policy in every scenario.
func storms(in bubbles, scenarios []scenario, policies []policy, seed uint64) (document, error) {
	d := document{Seed: seed}
	var jobs []func()
	failed := make([]error, len(scenarios)*len(policies))
	for i, sc := range scenarios {
		o := outcome{Name: sc.name, Title: sc.title, Text: sc.text, From: int(sc.from.Seconds()), To: int(sc.to.Seconds())}
		o.Fleet.Clients, o.Fleet.Calls, o.Fleet.Capacity = sc.fleet.clients, sc.fleet.calls, sc.fleet.capacity()
		o.Runs = make([]run, len(policies))
		d.Scenarios = append(d.Scenarios, o)
		for k, p := range policies {
			jobs = append(jobs, func() {
				o.Runs[k], failed[i*len(policies)+k] = simulate(sc, p, seed)
			})
		}
	}
	in(jobs)
	if i := slices.IndexFunc(failed, func(err error) bool { return err != nil }); i >= 0 {
		return d, failed[i] // one policy's, which says the same in every scenario
	}
	return d, nil
}

func (d document) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(d)
}

// table is for a terminal.
func (d document) table(w io.Writer) error {
	for _, o := range d.Scenarios {
		fmt.Fprintf(w, "%s\n%s\n%d clients, %d calls/s; the downstream can serve %d/s; the fault lasts from %d s to %d s.\n\n",
			o.Title, o.Text, o.Fleet.Clients, o.Fleet.Calls, o.Fleet.Capacity, o.From, o.To)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "requests per call\t\tgoodput\t\tp99 until\tback to\t\twork\t")
		fmt.Fprintln(t, "worst second\tfault\tin the fault\tafter it\tan answer\t95 % after\trefused\twasted\t  policy")
		for _, r := range o.Runs {
			s := r.Summary
			fmt.Fprintf(t, "%.2f\t%.2f\t%.1f %%\t%.1f %%\t%d ms\t%s\t%d\t%d\t  %s\n",
				s.Worst, s.Mean, 100*s.During, 100*s.After, s.P99, s.Back(), s.Refused, s.Wasted, r.Title)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

// Back says how long after the fault the fleet was well again.
func (s summary) Back() string {
	switch s.Recovered {
	case -1:
		return "never"
	case 0:
		return "at once"
	}
	return fmt.Sprintf("%d s", s.Recovered)
}
