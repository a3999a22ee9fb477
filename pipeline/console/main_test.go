package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bg      = context.Background()
	errDown = errors.New("bank: 503")
)

// bank is a pipeline with most of what there is to see.
func bank(onChange func(breaker.Change)) (*pipeline.Pipeline, *breaker.Breaker) {
	b := breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 5, OpenFor: 30 * time.Second, OnChange: onChange})
	return pipeline.For("billing").
		Timeout(timeout.MustNew(timeout.Config{Name: "billing", Limit: 2 * time.Second})).
		Retry(retry.MustNew(retry.Config{Name: "patient", MaxAttempts: 2, Backoff: retry.Immediate})).
		Breaker(b).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "bank", MaxConcurrent: 2})).
		AttemptTimeout(timeout.MustNew(timeout.Config{Name: "attempt", Limit: time.Second})).MustBuild(), b
}

func down(context.Context) error    { return errDown }
func succeed(context.Context) error { return nil }

// started is a console that ends with the test, or in the bubble: the caller closes it there.
func started(t *testing.T, source Source, opts ...Option) *Console {
	t.Helper()
	c, err := Handler(source, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// get is one request to the handler itself.
func get(c http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

// told is the state as a page would read it.
type told struct {
	Boot    string
	Seq     uint64
	From    uint64
	Error   string
	Rows    []toldRow
	Journal []entry
}

type toldRow struct {
	ID       int
	Name     string
	Level    string
	Why      []string
	Trend    string
	InFlight uint64 `json:"in_flight"`
	Totals   totals
	Last     totals
	Recent   totals
	Latency  []*float64
	Layers   []layer
	Stops    map[string]uint64
	Errors   []failure
	Spark    *spark
}

func state(t *testing.T, c http.Handler) told {
	t.Helper()
	w := get(c, "/state.json")
	require.Equal(t, http.StatusOK, w.Code)
	return parse(t, w.Body.Bytes())
}

func parse(t *testing.T, b []byte) (out told) {
	t.Helper()
	require.NoError(t, json.NewDecoder(bytes.NewReader(b)).Decode(&out), "%s", b)
	return out
}

func (s told) row(t *testing.T, name string) toldRow {
	t.Helper()
	for _, r := range s.Rows {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no row %q in %+v", name, s.Rows)
	return toldRow{}
}

func (r toldRow) layer(t *testing.T, kind string) layer {
	t.Helper()
	for _, l := range r.Layers {
		if l.Kind == kind {
			return l
		}
	}
	t.Fatalf("no layer %q in %+v", kind, r.Layers)
	return layer{}
}
