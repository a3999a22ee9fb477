package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// BillingUnavailable is the shop's word for it: there is no billing just now, and nothing was charged. Its handlers know
// this type, and none of the layers.
type BillingUnavailable struct {
	Cause error // the layer's refusal, for the log
}

func (e *BillingUnavailable) Error() string { return "billing is unavailable, nothing was charged" }

// Unwrap keeps the refusal reachable, and with it the wait. Without it the pipeline would see to that, too.
func (e *BillingUnavailable) Unwrap() error { return e.Cause }

// shop sells things for which a bank has to be asked.
type shop struct {
	billing *pipeline.Pipeline
	charge  func(ctx context.Context, order string) (receipt string, err error)
}

func newShop(charge func(ctx context.Context, order string) (string, error)) http.Handler {
	s := &shop{
		charge: charge,
		billing: pipeline.For("billing").
			Breaker(breaker.MustNew(breaker.Config{Name: "billing", Consecutive: 2, OpenFor: 1500 * time.Millisecond})).
			Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "billing", MaxConcurrent: 8})).
			AttemptTimeout(timeout.MustNew(timeout.Config{Name: "billing", Limit: 200 * time.Millisecond})).
			// Called for a refusal alone, of whichever layer. A charge that ran is never mapped: who knows what it did.
			OnRejected(func(_ context.Context, err error) error { return &BillingUnavailable{Cause: err} }).
			MustBuild(),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /checkout/{order}", s.checkout)
	return mux
}

func (s *shop) checkout(w http.ResponseWriter, r *http.Request) {
	order := r.PathValue("order")
	receipt, err := pipeline.Do(r.Context(), s.billing, func(ctx context.Context) (string, error) {
		return s.charge(ctx, order)
	})
	if err == nil {
		fmt.Fprintln(w, receipt)
		return
	}
	if unavailable, ok := errors.AsType[*BillingUnavailable](err); ok {
		rejection.SetHeader(w.Header(), err) // only where the layer knows when: a full bulkhead does not
		http.Error(w, unavailable.Error(), http.StatusServiceUnavailable)
		return
	}
	if rejection.Status(err) == http.StatusGatewayTimeout {
		http.Error(w, "no answer in time: it may have been charged", http.StatusGatewayTimeout)
		return
	}
	http.Error(w, "the bank said no", http.StatusBadGateway)
}
