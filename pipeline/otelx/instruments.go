package otelx

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The attributes' keys.
const (
	pipelineName = attribute.Key("resilience.pipeline.name")
	outcome      = attribute.Key("resilience.outcome")
	reason       = attribute.Key("resilience.reason")
	layer        = attribute.Key("resilience.layer")
	breakerName  = attribute.Key("resilience.circuit_breaker.name")
	breakerState = attribute.Key("resilience.circuit_breaker.state")
	bulkheadName = attribute.Key("resilience.bulkhead.name")

	attemptNumber   = attribute.Key("resilience.attempt.number")
	attemptDuration = attribute.Key("resilience.attempt.duration")
	errorType       = attribute.Key("error.type")
	errorMessage    = attribute.Key("error.message")
)

// seconds are the histogram's boundaries: those that the semantic conventions advise for durations of requests.
var seconds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

type instruments struct {
	duration   metric.Float64Histogram
	attempts   metric.Int64Counter
	rejections metric.Int64Counter

	state   metric.Int64ObservableGauge
	inUse   metric.Int64ObservableGauge
	balance metric.Int64ObservableGauge
}

// make asks for all of them. Units in braces are annotations: exporters leave them out of names.
func (i *instruments) make(m metric.Meter) error {
	var errs [6]error
	i.duration, errs[0] = m.Float64Histogram("resilience.pipeline.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of calls through a pipeline, waits and backoffs included."),
		metric.WithExplicitBucketBoundaries(seconds...))
	i.attempts, errs[1] = m.Int64Counter("resilience.attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Runs of the callback."))
	i.rejections, errs[2] = m.Int64Counter("resilience.rejections", metric.WithUnit("{rejection}"),
		metric.WithDescription("Attempts that a guard refused."))
	i.state, errs[3] = m.Int64ObservableGauge("resilience.circuit_breaker.state", metric.WithUnit("{breaker}"),
		metric.WithDescription("1 for the state that the circuit breaker is in, 0 for the others."))
	i.inUse, errs[4] = m.Int64ObservableGauge("resilience.bulkhead.in_use", metric.WithUnit("{call}"),
		metric.WithDescription("Slots of the bulkhead that are in use."))
	i.balance, errs[5] = m.Int64ObservableGauge("resilience.retry_budget.balance", metric.WithUnit("{token}"),
		metric.WithDescription("Retries that the retry budget could pay for now."))
	return errors.Join(errs[:]...)
}

// observed are those that a callback fills.
func (i *instruments) observed() []metric.Observable {
	return []metric.Observable{i.state, i.inUse, i.balance}
}
