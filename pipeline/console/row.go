package console

import (
	"encoding/json"
	"math"

	"github.com/fairlead/fairlead/leaf/retry"
)

const (
	longestName = 200 // bytes
	mostGauges  = 12  // of a layer
	mostSharers = 8   // names of other pipelines on a layer
)

// row is a pipeline as the page gets it.
type row struct {
	ID         int               `json:"id"` // for the console's life; names need not be unique
	Name       string            `json:"name"`
	Level      level             `json:"level"`
	LevelSince int64             `json:"level_since"` // Unix milliseconds
	Why        []string          `json:"why"`         // the worst first
	Trend      string            `json:"trend"`       // better, worse, steady; "" where nothing is wrong
	InFlight   uint64            `json:"in_flight"`
	Totals     totals            `json:"totals"`
	Last       totals            `json:"last"`    // of the last second
	Recent     totals            `json:"recent"`  // of the last ten
	Latency    []number          `json:"latency"` // p50, p95, p99 of the last ten seconds, in seconds; null without calls
	Layers     []layer           `json:"layers"`  // outermost first
	Stops      map[string]uint64 `json:"stops"`   // why retry loops ended
	Errors     []failure         `json:"errors"`
}

// totals counts calls, and what became of them. Calls are counted when they end.
type totals struct {
	Calls    uint64 `json:"calls"`
	Failed   uint64 `json:"failed"`
	Refused  uint64 `json:"refused"`   // fn never ran
	Left     uint64 `json:"cancelled"` // the caller went away
	Attempts uint64 `json:"attempts"`
	Broken   uint64 `json:"attempt_failures"`
	Retries  uint64 `json:"retries"` // runs of fn beyond a call's first
}

// layer is one layer of the nesting.
type layer struct {
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Per      string   `json:"per"`      // call or attempt: what is counted
	Admitted uint64   `json:"admitted"` // that went through
	Refused  uint64   `json:"refused"`
	Together bool     `json:"together,omitempty"` // refused is that of all layers of this kind
	Fired    uint64   `json:"fired"`              // of a timeout
	Waiting  *number  `json:"waiting"`            // null where nobody waits here
	Limit    number   `json:"limit"`              // of a timeout, in seconds
	Gauges   []gauge  `json:"gauges"`
	Sharers  []string `json:"sharers,omitempty"` // other pipelines with the same instance
	Breaker  *circuit `json:"breaker,omitempty"`
	Retry    *budgets `json:"retry,omitempty"`
	Error    string   `json:"error,omitempty"` // Inspect panicked
}

type gauge struct {
	Name  string `json:"name"`
	Value number `json:"value"`
	Limit number `json:"limit"` // 0 = none
}

// circuit is what a breaker is up to.
type circuit struct {
	ID        int    `json:"id"` // of the instance, for as long as the console sees it
	State     string `json:"state"`
	Forced    bool   `json:"forced"`
	Reason    string `json:"reason"`   // of the last change
	Since     int64  `json:"since"`    // Unix milliseconds
	AtLeast   bool   `json:"at_least"` // it has been so for longer than the console looks
	Trip      string `json:"trip"`     // why it last left closed, also after it has closed again; "" = unknown
	TripAt    int64  `json:"trip_at"`  // 0 = unknown
	Wait      number `json:"wait"`     // seconds until a probe may go; 0 = now, or nobody knows
	OpenFor   number `json:"open_for"` // what Wait began with, as far as was seen
	Calls     int    `json:"calls"`
	Failures  int    `json:"failures"`
	Slow      int    `json:"slow"`
	Rate      number `json:"rate"`
	Probes    int    `json:"probes"`
	MaxProbes int    `json:"max_probes"` // 0 = unknown, or no limit
	Successes int    `json:"successes"`
	Needed    int    `json:"needed"` // probes that close it; 0 = unknown
	Rules     string `json:"rules"`  // what opens it; "" = unknown
}

// budgets is what a retry goes by.
type budgets struct {
	Attempts int     `json:"attempts"` // at most; -1 = unlimited
	Budget   string  `json:"budget"`   // balance, none, unknown
	Balance  int     `json:"balance"`
	Capacity *number `json:"capacity"` // null where there is none
}

// number is a float64 that JSON can say: what is not finite is null, not an error of everything around it.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (r *reading) totals() totals {
	return totals{
		Calls: r.finished, Failed: r.failed, Refused: r.refused, Left: r.left,
		Attempts: r.attempts, Broken: r.attemptFailures, Retries: r.retries,
	}
}

func (t totals) minus(o totals) totals {
	return totals{
		t.Calls - o.Calls, t.Failed - o.Failed, t.Refused - o.Refused, t.Left - o.Left,
		t.Attempts - o.Attempts, t.Broken - o.Broken, t.Retries - o.Retries,
	}
}

func (r *reading) stops() map[string]uint64 {
	all := map[string]uint64{}
	for i, n := range r.stopped {
		if n > 0 {
			all[retry.Reason(i).String()] = n
		}
	}
	return all
}
