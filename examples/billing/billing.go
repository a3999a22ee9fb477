package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
	"github.com/fairlead/fairlead/rejection"
)

// billing charges orders at a bank. Its whole resilience is in newBilling.
type billing struct {
	bank *http.Client
	url  string
}

func newBilling(bankURL string, base http.RoundTripper) http.Handler {
	out := pipeline.For("bank").
		Retry(retry.MustNew(retry.Config{Backoff: retry.Exponential(5 * time.Millisecond)})).
		Breaker(breaker.MustNew(breaker.Config{Name: "bank", Window: breaker.Count(10), OpenFor: time.Second})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "bank", MaxConcurrent: 32})).
		AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 200 * time.Millisecond})).
		OnRejected(func(_ context.Context, err error) error { return &bankUnavailable{err} }).
		MustBuild()
	in := pipeline.For("billing").
		Timeout(timeout.MustNew(timeout.Config{Limit: 2 * time.Second})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "billing", MaxConcurrent: 64})).
		MustBuild()
	b := &billing{bank: &http.Client{Transport: httpx.NewTransport(out, base)}, url: bankURL}
	return httpx.Middleware(in)(b)
}

// bankUnavailable is billing's own word for it: nothing was charged, whatever the guard was that said so.
type bankUnavailable struct{ cause error }

func (e *bankUnavailable) Error() string { return "the bank is unavailable: " + e.cause.Error() }
func (e *bankUnavailable) Unwrap() error { return e.cause }

func (b *billing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	order := r.FormValue("order")
	if order == "" { // it would be no key, and every order without a name the same one
		http.Error(w, "want the order's name in order=", http.StatusBadRequest)
		return
	}
	receipt, err := b.charge(r.Context(), order)
	if err == nil {
		_, _ = io.WriteString(w, receipt)
		return
	}
	rejection.SetHeader(w.Header(), err) // Retry-After, where a guard or the bank named a wait
	if _, refused := errors.AsType[*bankUnavailable](err); refused {
		http.Error(w, "not charged", http.StatusServiceUnavailable)
		return
	}
	if answer, ok := errors.AsType[*bankError](err); ok && answer.status == http.StatusPaymentRequired {
		http.Error(w, "declined", http.StatusPaymentRequired)
		return
	}
	status := http.StatusBadGateway
	if rejection.Status(err) == http.StatusGatewayTimeout {
		status = http.StatusGatewayTimeout
	}
	http.Error(w, "charged or not: send the same order again", status)
}

// charge may be repeated, since the bank knows an order by its key.
func (b *billing) charge(ctx context.Context, order string) (receipt string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Idempotency-Key", order)
	resp, err := b.bank.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = newBankError(resp)
	}
	return string(text), err
}

// bankError is an answer of the bank that is no receipt, with the wait that it asks for.
type bankError struct {
	status int
	wait   time.Duration
	asked  bool
}

func newBankError(resp *http.Response) *bankError {
	wait, asked := rejection.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	return &bankError{resp.StatusCode, wait, asked}
}

func (e *bankError) Error() string                     { return fmt.Sprintf("the bank says %d", e.status) }
func (e *bankError) Timeout() bool                     { return e.status == http.StatusGatewayTimeout }
func (e *bankError) RetryAfter() (time.Duration, bool) { return e.wait, e.asked }
