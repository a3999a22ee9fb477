package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// A run: ten seconds of peace, the fault, and twice as long as most people wait before they restart things.
const (
	seconds = 70
	horizon = seconds * time.Second
)

// fleet is the size of everything. Calls begin at random, whatever became of the earlier ones.
type fleet struct {
	clients int
	calls   int // per second, by all clients together
	workers int // per instance of the downstream
}

func (f fleet) capacity() int { return f.workers * instances * int(time.Second/service) }

// storm is one run: one policy in one scenario. It lives in a bubble.
type storm struct {
	seed  uint64
	sc    scenario
	pol   policy
	epoch time.Time
	tally *tally
	down  *downstream
	ends  []func() // of what the policy has started
}

// run is a storm that is over.
type run struct {
	Policy  string  `json:"policy"`
	Label   string  `json:"-"`
	Title   string  `json:"title"`
	Summary summary `json:"summary"`
	Series  series  `json:"series"`
}

// simulate has to be called in a bubble.
func simulate(sc scenario, pol policy, seed uint64) (run, error) {
	s := &storm{seed: seed, sc: sc, pol: pol, epoch: time.Now()}
	s.tally = newTally(s)
	s.down = newDownstream(s)
	defer func() {
		for _, end := range s.ends {
			end()
		}
	}()
	next, err := s.tiers()
	if err != nil {
		return run{}, err
	}
	var all sync.WaitGroup
	for i := range sc.fleet.clients {
		p, err := s.pipeline("client", i, sc.limits)
		if err != nil {
			return run{}, err
		}
		all.Go(func() { s.client(i, &tier{storm: s, pipelines: []*pipeline.Pipeline{p}, next: next}) })
	}
	all.Wait()
	return run{Policy: pol.name, Label: pol.label, Title: pol.title, Summary: s.tally.summary(), Series: s.tally.series()}, nil
}

func (s *storm) now() time.Duration { return time.Since(s.epoch) }

// pipeline makes the policy's for the i-th process of a kind. Its randomness is a function of the process and the instant: two of its calls
// that draw at the same instant get the same, whoever is first.
func (s *storm) pipeline(kind string, i int, l limits) (*pipeline.Pipeline, error) {
	process := mix(mix(s.seed, uint64(len(kind))), uint64(i))
	return s.pol.build(site{storm: s, name: kind + " " + strconv.Itoa(i), limits: l, rand: func() float64 {
		return float64(mix(process, uint64(s.now()))>>11) / (1 << 53)
	}})
}

// client is a process whose users keep coming. When they come depends on the seed alone, so that all policies meet the same.
func (s *storm) client(i int, t *tier) {
	r := rand.New(rand.NewPCG(s.seed, uint64(i)))
	each := float64(s.sc.fleet.clients) * float64(time.Second) / float64(s.sc.fleet.calls)
	var calls sync.WaitGroup
	for n := uint64(0); ; n++ {
		time.Sleep(time.Duration(r.ExpFloat64() * each))
		if s.now() >= horizon {
			break
		}
		calls.Go(func() { s.user(t, mix(mix(s.seed, uint64(i)), n)) })
	}
	calls.Wait()
}

// user makes one call, and waits as long as he has patience.
func (s *storm) user(t *tier, id uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), s.sc.patience(id))
	defer cancel()
	began := s.now()
	err := t.run(ctx, id)
	s.tally.add(begun, began)
	switch {
	case err == nil:
		s.tally.add(ok, began)
	case rejection.Is(err):
		s.tally.add(refused, began)
	}
	s.tally.call(began, s.now()-began)
}

// tier is a service: some processes, each with its own pipeline around its calls of the next one.
type tier struct {
	storm     *storm
	pipelines []*pipeline.Pipeline
	next      *tier // nil = the downstream
}

// tiers makes the services between the clients and the downstream, and returns the first.
func (s *storm) tiers() (next *tier, err error) {
	for i := len(s.sc.between) - 1; i >= 0; i-- {
		b := s.sc.between[i]
		t := &tier{storm: s, pipelines: make([]*pipeline.Pipeline, b.processes), next: next}
		for k := range t.pipelines {
			if t.pipelines[k], err = s.pipeline(b.name, k, b.limits); err != nil {
				return nil, err
			}
		}
		next = t
	}
	return next, nil
}

// run calls the next tier through one process's pipeline. Every attempt has an id of its own, from which the balancers draw.
func (t *tier) run(ctx context.Context, id uint64) error {
	attempt := uint64(0)
	return t.pipelines[mix(id, 'b')%uint64(len(t.pipelines))].Run(ctx, func(ctx context.Context) error {
		attempt++
		if t.next == nil {
			return t.storm.down.call(ctx, mix(id, attempt))
		}
		return t.next.serve(ctx, mix(id, attempt))
	})
}

// serve is the other end of a connection, in another process: it hears when the caller hangs up, but of his deadline only if
// it is sent along, and he hears of its errors only what HTTP carries.
func (t *tier) serve(ctx context.Context, id uint64) error {
	header := http.Header{}
	if t.storm.pol.sendsBudget {
		budget.Inject(ctx, nil, header)
	}
	if err := budget.Sleep(ctx, nil, network); err != nil {
		return ctx.Err()
	}
	request, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	defer context.AfterFunc(ctx, hangUp)()
	request, cancel := budget.FromHeader(request, header)
	defer cancel()
	err := overTheWire(t.run(request, id))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
