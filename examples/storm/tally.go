package main

import (
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
)

// What is counted per second of virtual time.
const (
	begun    = iota // calls, by their beginning
	ok              // those that succeeded
	refused         // those that a guard turned away before anything was sent
	attempts        // requests, by their arrival at the downstream
	served          // those that it answers with success, by the end of its work
	wasted          // those of them whose caller had gone by then
	kinds
)

// tally is what is observed. All of it commutes, so that the order within an instant does not show.
type tally struct {
	storm    *storm
	mu       sync.Mutex
	counts   [kinds][]int
	totals   [kinds]int      // with what happened after the last of those seconds
	took     []time.Duration // of the calls that began in the fault or later, to an answer of either kind
	circuits [3]int          // now, by breaker.State
	states   [3][]int        // at the end of each second
	upTo     int             // seconds of states that are filled
}

func newTally(s *storm) *tally {
	t := &tally{storm: s}
	for i := range t.counts {
		t.counts[i] = make([]int, seconds)
	}
	for i := range t.states {
		t.states[i] = make([]int, seconds)
	}
	return t
}

func (t *tally) add(kind int, at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.totals[kind]++
	if second := int(at / time.Second); second < seconds {
		t.counts[kind][second]++
	}
}

func (t *tally) call(began, took time.Duration) {
	if began < t.storm.sc.from {
		return
	}
	t.mu.Lock()
	t.took = append(t.took, took)
	t.mu.Unlock()
}

// circuit is one more that is closed.
func (t *tally) circuit() { t.circuits[breaker.Closed]++ }

// change is every circuit's OnChange.
func (t *tally) change(c breaker.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fill(int(t.storm.now() / time.Second))
	t.circuits[c.From]--
	t.circuits[c.To]++
}

// fill writes down what was the case at the end of the seconds before this one.
func (t *tally) fill(second int) {
	for ; t.upTo < min(second, seconds); t.upTo++ {
		for state, n := range t.circuits {
			t.states[state][t.upTo] = n
		}
	}
}

// series is the run second by second.
type series struct {
	Begun    []int `json:"calls"`
	OK       []int `json:"succeeded"`
	Refused  []int `json:"refused"`
	Attempts []int `json:"downstream_requests"`
	Served   []int `json:"downstream_served"`
	Wasted   []int `json:"downstream_wasted"`
	Closed   []int `json:"circuits_closed"`
	Open     []int `json:"circuits_open"`
	HalfOpen []int `json:"circuits_half_open"`
}

// summary is the run in a line.
type summary struct {
	Worst     float64 `json:"worst_amplification"` // requests per call in the worst second of the run
	Mean      float64 `json:"mean_amplification"`  // requests per call over the fault
	During    float64 `json:"goodput_during"`      // share of calls that succeeded, of those that began in the fault
	After     float64 `json:"goodput_after"`       // … after it
	P99       millis  `json:"p99_ms"`              // from the fault's beginning on, to an answer of either kind
	Recovered int     `json:"recovered_s"`         // after the fault's end; -1 = not within the run
	Calls     int     `json:"calls"`
	Requests  int     `json:"requests"`
	Refused   int     `json:"refused"`
	Wasted    int     `json:"wasted"`
}

// millis is a time that reads as milliseconds in JSON.
type millis int64

func (t *tally) series() series {
	t.fill(seconds)
	c, s := t.counts, t.states
	return series{
		Begun: c[begun], OK: c[ok], Refused: c[refused], Attempts: c[attempts], Served: c[served], Wasted: c[wasted],
		Closed: s[breaker.Closed], Open: s[breaker.Open], HalfOpen: s[breaker.HalfOpen],
	}
}

// recoveredAt is the share of calls that have to succeed in each second from when on a fleet has recovered.
const recoveredAt = 0.95

func (t *tally) summary() summary {
	s, from, to := t.series(), int(t.storm.sc.from/time.Second), int(t.storm.sc.to/time.Second)
	sum := summary{
		Mean:   ratio(total(s.Attempts[from:to]), total(s.Begun[from:to])),
		During: ratio(total(s.OK[from:to]), total(s.Begun[from:to])),
		After:  ratio(total(s.OK[to:]), total(s.Begun[to:])),
		Calls:  t.totals[begun], Requests: t.totals[attempts], Refused: t.totals[refused], Wasted: t.totals[wasted],
	}
	for i := range seconds {
		sum.Worst = max(sum.Worst, ratio(s.Attempts[i], s.Begun[i]))
	}
	bad := to // the first second from which on all are good
	for i := to; i < seconds; i++ {
		if ratio(s.OK[i], s.Begun[i]) < recoveredAt {
			bad = i + 1
		}
	}
	if sum.Recovered = bad - to; bad == seconds {
		sum.Recovered = -1
	}
	slices.Sort(t.took)
	if n := len(t.took); n > 0 {
		sum.P99 = millis(t.took[n*99/100].Milliseconds())
	}
	return sum
}

func total(s []int) (sum int) {
	for _, n := range s {
		sum += n
	}
	return sum
}

// ratio is 0 of nothing.
func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
