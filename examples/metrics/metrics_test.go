package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape reads the page with Prometheus' own parser: each sample as name{labels} and its value.
func scrape(t *testing.T, url string) (map[string]*dto.MetricFamily, map[string]float64) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	require.NoError(t, err, "%s", text)
	samples := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			sort.Strings(labels)
			key := fmt.Sprintf("%s{%s}", name, strings.Join(labels, ","))
			switch {
			case m.Counter != nil:
				samples[key] = m.GetCounter().GetValue()
			case m.Gauge != nil:
				samples[key] = m.GetGauge().GetValue()
			case m.Histogram != nil:
				samples[key] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return families, samples
}

// What Prometheus finds after calls that are known: every name, type, label and value.
func TestWhatPrometheusFinds(t *testing.T) {
	telemetry, err := newTelemetry()
	require.NoError(t, err)
	defer func() { require.NoError(t, telemetry.Close(context.Background())) }()
	shop, err := newShop(telemetry)
	require.NoError(t, err)
	server := httptest.NewServer(telemetry.Handler())
	defer server.Close()

	for range 3 {
		require.NoError(t, shop.buy(t.Context()))
	}
	shop.bank.down.Store(true)
	for range 2 {
		require.ErrorIs(t, shop.buy(t.Context()), errDown) // two attempts each
	}
	require.ErrorIs(t, shop.buy(t.Context()), errDown) // the fifth failure opens the circuit
	require.Error(t, shop.buy(t.Context()))            // refused

	families, got := scrape(t, server.URL)
	require.InDelta(t, 98, got[`resilience_retry_budget_balance{resilience_pipeline_name="billing"}`], 5, "10 per second for 10 s, and 2 were spent; in real time")
	delete(got, `resilience_retry_budget_balance{resilience_pipeline_name="billing"}`)
	require.Equal(t, map[string]float64{
		`resilience_pipeline_duration_seconds{resilience_outcome="succeeded",resilience_pipeline_name="billing"}`:                                                  3,
		`resilience_pipeline_duration_seconds{resilience_outcome="failed",resilience_pipeline_name="billing",resilience_reason="attempts_exhausted"}`:              2,
		`resilience_pipeline_duration_seconds{resilience_outcome="failed",resilience_pipeline_name="billing",resilience_reason="refused"}`:                         1,
		`resilience_pipeline_duration_seconds{resilience_outcome="rejected",resilience_pipeline_name="billing"}`:                                                   1,
		`resilience_attempts_total{resilience_outcome="succeeded",resilience_pipeline_name="billing"}`:                                                             3,
		`resilience_attempts_total{resilience_outcome="failed",resilience_pipeline_name="billing"}`:                                                                5,
		`resilience_rejections_total{resilience_layer="breaker",resilience_pipeline_name="billing",resilience_reason="refused"}`:                                   2,
		`resilience_circuit_breaker_state{resilience_circuit_breaker_name="bank",resilience_circuit_breaker_state="closed",resilience_pipeline_name="billing"}`:    0,
		`resilience_circuit_breaker_state{resilience_circuit_breaker_name="bank",resilience_circuit_breaker_state="open",resilience_pipeline_name="billing"}`:      1,
		`resilience_circuit_breaker_state{resilience_circuit_breaker_name="bank",resilience_circuit_breaker_state="half_open",resilience_pipeline_name="billing"}`: 0,
		`resilience_bulkhead_in_use{resilience_bulkhead_name="bank",resilience_pipeline_name="billing"}`:                                                           0,
	}, got)
	for name, kind := range map[string]dto.MetricType{
		"resilience_pipeline_duration_seconds": dto.MetricType_HISTOGRAM, "resilience_attempts_total": dto.MetricType_COUNTER,
		"resilience_rejections_total": dto.MetricType_COUNTER, "resilience_circuit_breaker_state": dto.MetricType_GAUGE,
		"resilience_bulkhead_in_use": dto.MetricType_GAUGE, "resilience_retry_budget_balance": dto.MetricType_GAUGE,
	} {
		require.Equal(t, kind, families[name].GetType(), name)
		require.NotEmpty(t, families[name].GetHelp())
	}
	require.Len(t, families, 6)
	require.NoError(t, telemetry.Telemetry.Close())
	_, got = scrape(t, server.URL)
	require.NotContains(t, got, `resilience_bulkhead_in_use{resilience_bulkhead_name="bank",resilience_pipeline_name="billing"}`)
}

// The program serves until it is interrupted, and leaves nothing behind.
func TestTheProgramServesUntilItEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := make(chan string, 1)
	var ended sync.WaitGroup
	ended.Go(func() { require.NoError(t, run(ctx, "127.0.0.1:0", func(address string) { at <- address })) })
	_, got := scrape(t, "http://"+<-at+"/metrics")
	require.Contains(t, got, `resilience_bulkhead_in_use{resilience_bulkhead_name="bank",resilience_pipeline_name="billing"}`)
	cancel()
	ended.Wait()
	require.Error(t, run(t.Context(), "127.0.0.1:no", nil))
}
