package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/budget"
)

// service is one of those behind the gateway. It needs so long, if it is given so much.
type service struct {
	Name  string
	Needs time.Duration
}

// spare is what a service keeps of its budget to say in time that it did not get ready.
const spare = 20 * time.Millisecond

// seen is a service's answer: what it was given, and what it made of it.
type seen struct {
	Header string        // as it arrived
	Had    time.Duration // what that meant here
	Took   time.Duration
	Ready  bool
}

func (s service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := budget.FromHeader(r.Context(), r.Header) // no header: as long as the connection lives
	defer cancel()
	work, cancel := budget.WithReserve(ctx, spare)
	defer cancel()

	began := time.Now()
	had, _ := budget.Left(ctx, nil)
	answer := seen{Header: r.Header.Get(budget.Header), Had: had}
	answer.Ready = budget.Sleep(work, nil, s.Needs) == nil // the work
	answer.Took = time.Since(began)
	if !answer.Ready {
		w.WriteHeader(http.StatusGatewayTimeout)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// gateway answers one request with what three services say.
type gateway struct {
	client *http.Client
	behind []target
}

type target struct {
	service
	URL string
}

// reserve is what the gateway keeps for itself: time to put an answer together, whatever became of the services.
const reserve = 50 * time.Millisecond

// hop is how one of the calls went.
type hop struct {
	Name   string
	Needs  time.Duration
	Left   time.Duration // of what the gateway spends on services, before this call
	Status int           // 0 = not asked
	Err    string        // "" = there was an answer
	Seen   seen
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := budget.FromHeader(r.Context(), r.Header)
	defer cancel()
	spend, cancel := budget.WithReserve(ctx, reserve)
	defer cancel()

	hops := make([]hop, len(g.behind))
	for i, t := range g.behind {
		hops[i] = g.ask(spend, t)
	}
	_ = json.NewEncoder(w).Encode(hops)
}

// ask calls one service with whatever is left.
func (g *gateway) ask(ctx context.Context, t target) hop {
	left, _ := budget.Left(ctx, nil)
	h := hop{Name: t.Name, Needs: t.Needs, Left: left}
	if !budget.Fits(ctx, nil, 0, 2*spare) {
		h.Err = "not asked: it could only be late"
		return h
	}
	resp, err := get(ctx, g.client, t.URL)
	if err != nil {
		h.Err = err.Error()
		return h
	}
	defer resp.Body.Close()
	h.Status = resp.StatusCode
	if err := json.NewDecoder(resp.Body).Decode(&h.Seen); err != nil {
		h.Err = fmt.Sprintf("its answer is no JSON: %v", err)
	}
	return h
}

// get tells the other side how much time there is.
func get(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	budget.Inject(ctx, nil, req.Header)
	return client.Do(req)
}
