package main

import (
	"net/http"
	"time"
)

// limits are the times that whoever calls a service gives it, under every policy that has limits. Each covers what the callee
// itself may need: three attempts and two backoffs.
type limits struct{ attempt, total time.Duration }

// scenario is what goes wrong. Everything is a pure function of time.
type scenario struct {
	name, title, text string
	from, to          time.Duration // the fault
	fleet             fleet
	limits            limits // of the clients
	patience          func(id uint64) time.Duration
	between           []between // services between the clients and the downstream, outermost first
	weather           func(instance int, at time.Duration) weather
	crashes           func(instance int) []time.Duration // when its connections break
}

type between struct {
	name      string
	processes int
	limits    limits
}

const (
	faultBegins = 10 * time.Second
	faultEnds   = 40 * time.Second
)

// At rest the downstream has about half of what it can bear to do.
var (
	whole = fleet{clients: 200, calls: 240, workers: 4}
	small = fleet{clients: 50, calls: 40, workers: 1} // where one call is 27
)

var (
	usual   = limits{attempt: 500 * time.Millisecond, total: 1900 * time.Millisecond}
	patient = func(uint64) time.Duration { return 2 * time.Second }
)

// during is w in the fault, and fair weather else.
func during(w weather) func(int, time.Duration) weather {
	return func(_ int, at time.Duration) weather {
		if at >= faultBegins && at < faultEnds {
			return w
		}
		return weather{}
	}
}

func allAt(at time.Duration) func(int) []time.Duration {
	return func(int) []time.Duration { return []time.Duration{at} }
}

var scenarios = []scenario{
	{
		name: "outage", title: "Total outage, 30 s",
		text:     "All five instances crash, and the balancer answers 503 at once. After 30 s they are back, with nothing in them.",
		weather:  during(weather{status: http.StatusServiceUnavailable}),
		crashes:  allAt(faultBegins),
		limits:   usual,
		patience: patient,
	},
	{
		name: "brownout", title: "Brown-out: half the capacity for 30 s",
		text:     "Every request costs the downstream twice its work: it can serve 200 a second where 240 are asked for. Then it is well again.",
		weather:  during(weather{slower: 2000}),
		limits:   usual,
		patience: patient,
	},
	{
		name: "slowdown", title: "Ten times slower for 30 s",
		text:     "A request takes 500 ms instead of 50. Nothing fails: everything waits.",
		weather:  during(weather{slower: 10_000}),
		limits:   usual,
		patience: patient,
	},
	{
		name: "sick", title: "One sick instance of five, for 30 s",
		text: "One instance answers 500 at once, and the balancer goes on sending it a fifth of all requests. This is what retries are for.",
		weather: func(instance int, at time.Duration) weather {
			if instance == 2 {
				return during(weather{status: http.StatusInternalServerError})(instance, at)
			}
			return weather{}
		},
		limits:   usual,
		patience: patient,
	},
	{
		name: "throttle", title: "429 for everyone, ten times",
		text:     "A quota is used up: for 1 s out of every 3 s everybody is answered 429 with Retry-After: 1.",
		weather:  throttled,
		limits:   usual,
		patience: patient,
	},
	{
		name: "deploy", title: "A rolling deploy that drops connections",
		text:     "Every 6 s another instance is replaced: its connections break, it refuses new ones for 1 s, and starts cold: three times slower, until it has warmed up 5 s later.",
		weather:  deployed,
		crashes:  func(instance int) []time.Duration { return []time.Duration{deployAt(instance)} },
		limits:   usual,
		patience: patient,
	},
	{
		name: "layers", title: "Three layers that each retry, in a total outage",
		text:  "The clients call a gateway, the gateway calls orders, orders calls the downstream, each through the same policy. The outage is the first one, the fleet a small one.",
		fleet: small,
		between: []between{
			{name: "gateway", processes: 4, limits: limits{attempt: 1200 * time.Millisecond, total: 3900 * time.Millisecond}},
			{name: "orders", processes: 2, limits: limits{attempt: 300 * time.Millisecond, total: 1150 * time.Millisecond}},
		},
		weather:  during(weather{status: http.StatusServiceUnavailable}),
		crashes:  allAt(faultBegins),
		limits:   limits{attempt: 3900 * time.Millisecond, total: 11900 * time.Millisecond},
		patience: func(uint64) time.Duration { return 12 * time.Second },
	},
}

func init() {
	for i := range scenarios {
		scenarios[i].from, scenarios[i].to = faultBegins, faultEnds
		if scenarios[i].fleet == (fleet{}) {
			scenarios[i].fleet = whole
		}
	}
}

func throttled(_ int, at time.Duration) weather {
	if at < faultBegins || at >= faultEnds || (at-faultBegins)%(3*time.Second) >= time.Second {
		return weather{}
	}
	return weather{status: http.StatusTooManyRequests, retryAfter: time.Second}
}

func deployAt(instance int) time.Duration { return faultBegins + time.Duration(instance)*6*time.Second }

func deployed(instance int, at time.Duration) weather {
	const restart, warm = time.Second, 5 * time.Second
	switch since := at - deployAt(instance); {
	case since < 0 || since >= restart+warm:
		return weather{}
	case since < restart:
		return weather{refuses: true}
	default:
		return weather{slower: 3000 - int(2000*(since-restart)/warm)}
	}
}
