package main

import (
	"context"
	_ "embed"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/console"
	"github.com/fairlead/fairlead/pipeline/registry"
)

//go:embed resilience.yaml
var settings string

// shop is the simulated service: four downstreams, seven pipelines from a registry, and customers.
type shop struct {
	reg         *registry.Registry
	journal     console.Journal
	live        *console.Console
	downstreams []*Downstream

	customers sync.WaitGroup
	leave     context.CancelFunc
}

func newShop() (*shop, error) {
	s := &shop{downstreams: []*Downstream{
		newDownstream("bank", 60*time.Millisecond), newDownstream("search", 30*time.Millisecond),
		newDownstream("warehouse", 20*time.Millisecond), newDownstream("mail", 80*time.Millisecond),
	}}
	reg, err := registry.LoadYAML(strings.NewReader(settings), registry.WithOnChange(s.journal.OnChange))
	if err != nil {
		return nil, err
	}
	s.reg = reg
	// On loopback, everybody who reaches the page may press its buttons. A real service asks who it is.
	s.live, err = console.Handler(reg, console.WithJournal(&s.journal), console.AllowControl(onLoopback))
	if err != nil {
		return nil, errors.Join(err, reg.Close())
	}
	return s, nil
}

func (s *shop) downstream(name string) *Downstream {
	for _, d := range s.downstreams {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// open lets the customers in. They go when ctx is done, or with Close.
func (s *shop) open(ctx context.Context) {
	ctx, s.leave = context.WithCancel(ctx)
	bank, search, warehouse, mail := s.downstream("bank"), s.downstream("search"), s.downstream("warehouse"), s.downstream("mail")
	billing, stock := s.reg.MustPipeline("billing"), s.reg.MustPipeline("stock")
	through := func(p *pipeline.Pipeline, d *Downstream) func(context.Context) error {
		return func(ctx context.Context) error { return p.Run(ctx, d.Call) }
	}
	s.arrive(ctx, 25, through(s.reg.MustPipeline("search"), search))
	s.arrive(ctx, 12, through(s.reg.MustPipeline("payouts"), bank))
	s.arrive(ctx, 9, through(stock, warehouse))
	s.arrive(ctx, 6, through(s.reg.MustPipeline("mail"), mail))
	s.arrive(ctx, 0.2, through(s.reg.MustPipeline("avatars"), search))
	checkout := s.reg.MustPipeline("checkout")
	s.arrive(ctx, 15, func(ctx context.Context) error {
		return checkout.Run(ctx, func(ctx context.Context) error { // one pipeline with two more inside: a refusal in there is no refusal here
			if err := stock.Run(ctx, warehouse.Call); err != nil {
				return err
			}
			return billing.Run(ctx, bank.Call)
		})
	})
}

// arrive has so many customers a second do something, at random times. Some have no patience.
func (s *shop) arrive(ctx context.Context, perSecond float64, do func(context.Context) error) {
	s.customers.Go(func() {
		for {
			next := time.NewTimer(time.Duration(rand.ExpFloat64() / perSecond * float64(time.Second)))
			select {
			case <-ctx.Done():
				next.Stop()
				return
			case <-next.C:
			}
			s.customers.Go(func() {
				patience := 5 * time.Second
				if rand.Float64() < 0.01 {
					patience = 30 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				_ = do(ctx) // the customer shrugs; the console shows it
			})
		}
	})
}

// Close sends the customers away, then ends the console and the registry.
func (s *shop) Close() error {
	if s.leave != nil {
		s.leave()
	}
	s.customers.Wait()
	return errors.Join(s.live.Close(), s.reg.Close())
}
