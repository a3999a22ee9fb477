package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// event is one line of the timeline.
type event struct {
	At      float64  `json:"at"`   // seconds since the start
	What    string   `json:"what"` // chapter, sample, circuit, store, note, summary
	Who     string   `json:"who,omitempty"`
	Text    string   `json:"text,omitempty"`
	Sample  *sample  `json:"sample,omitempty"`
	Summary *summary `json:"summary,omitempty"`
}

// sample is who holds what.
type sample struct {
	Inside    map[string]int    `json:"inside"` // the bank, by process
	Total     int               `json:"total"`
	Redis     int               `json:"redis"` // slots taken, as Redis counts them; -1 = no answer
	PerSecond float64           `json:"per_second"`
	Circuits  map[string]string `json:"circuits"`
}

// timeline prints events, for a person or for a program. It is safe for concurrent use.
type timeline struct {
	mu    sync.Mutex
	out   io.Writer
	json  bool
	began time.Time
}

func (t *timeline) tell(e event) { t.at(time.Now(), e) }

func (t *timeline) at(when time.Time, e event) {
	e.At = when.Sub(t.began).Seconds()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.json {
		fmt.Fprint(t.out, e.forPeople())
		return
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // an event is plain data
	}
	fmt.Fprintf(t.out, "%s\n", line)
}

func (e event) forPeople() string {
	at := fmt.Sprintf("%6.2f s  ", e.At)
	switch {
	case e.What == "chapter":
		return "\n" + e.Text + "\n\n"
	case e.Sample != nil:
		return at + e.Sample.forPeople() + "\n"
	case e.Summary != nil:
		return "\n" + e.Summary.forPeople()
	case e.Who != "":
		return at + "  " + e.Who + ": " + e.Text + "\n"
	}
	return at + "  " + e.Text + "\n"
}

func (s *sample) forPeople() string {
	var b strings.Builder
	for _, who := range names {
		fmt.Fprintf(&b, "%s %-6s ", who, strings.Repeat("#", s.Inside[who]))
	}
	redis := fmt.Sprint(s.Redis)
	if s.Redis < 0 {
		redis = "?"
	}
	fmt.Fprintf(&b, " inside %2d, by Redis %2s   %3.0f calls/s   circuits", s.Total, redis, s.PerSecond)
	for _, who := range names {
		b.WriteString(" " + s.Circuits[who])
	}
	return b.String()
}
