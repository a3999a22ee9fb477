package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/fairlead/fairlead/pipeline/otelx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// telemetry is what lies between pipelines and Prometheus.
type telemetry struct {
	*otelx.Telemetry
	registry *prometheus.Registry
	provider *metric.MeterProvider
}

// newTelemetry has a registry of its own: nothing but the pipelines is on its page.
func newTelemetry() (*telemetry, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter))
	pipelines, err := otelx.New(otelx.Config{MeterProvider: provider})
	if err != nil {
		return nil, errors.Join(err, provider.Shutdown(context.Background()))
	}
	return &telemetry{pipelines, registry, provider}, nil
}

// Handler is /metrics.
func (t *telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Close leaves the pipelines, then shuts OpenTelemetry down.
func (t *telemetry) Close(ctx context.Context) error {
	return errors.Join(t.Telemetry.Close(), t.provider.Shutdown(ctx))
}
