package otelx_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/otelx"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A pipeline that is watched, and what a reader finds. Programs use an exporter's reader, as examples/metrics does.
func Example() {
	reader := metric.NewManualReader()
	telemetry, err := otelx.New(otelx.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	if err != nil {
		panic(err)
	}
	defer func() { _ = telemetry.Close() }()

	charge := pipeline.For("billing").Breaker(breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 2})).MustBuild()
	if _, err := telemetry.Watch(charge); err != nil {
		panic(err)
	}
	for range 3 {
		_ = charge.Run(context.Background(), func(context.Context) error { return errors.New("bank: 503") })
	}

	var data metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &data)
	for _, m := range data.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			fmt.Println(m.Name, sum.DataPoints[0].Attributes.Encoded(attribute.DefaultEncoder()), sum.DataPoints[0].Value)
		}
	}
	// Output:
	// resilience.attempts resilience.outcome=failed,resilience.pipeline.name=billing 2
	// resilience.rejections resilience.layer=breaker,resilience.pipeline.name=billing,resilience.reason=refused 1
}
