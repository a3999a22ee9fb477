package main

import (
	"strings"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/registry"
)

const settings = `
resilience:
  retry:           { bank: { max-attempts: 3, wait-duration: 250ms } }
  circuit-breaker: { bank: { failure-rate-threshold: 0.5, window-size: 100, wait-duration-in-open: 30s } }
  bulkhead:        { bank: { max-concurrent: 32 } }
  pipelines:
    billing: { timeout: 2s, retry: bank, circuit-breaker: bank, bulkhead: bank, attempt-timeout: 500ms }
`

func configured() (*registry.Registry, *pipeline.Pipeline, error) {
	reg, err := registry.LoadYAML(strings.NewReader(settings))
	if err != nil {
		return nil, nil, err // every fault of the document, by path and text
	}
	billing, err := reg.Pipeline("billing")
	return reg, billing, err
}
