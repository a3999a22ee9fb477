package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/registry"
)

var errUnavailable = errors.New("unavailable")

func Example() {
	reg, err := registry.LoadYAML(strings.NewReader(`
resilience:
  retry:
    payments: { max-attempts: 3, wait-duration: 0, retry-on: [timeout, unavailable] }
  circuit-breaker:
    payments: { failure-rate-threshold: 0.5, window-size: 100 }
  pipelines:
    billing: { timeout: 5s, retry: payments, circuit-breaker: payments, attempt-timeout: 1s }
`), registry.WithMatcher("unavailable", func(err error) bool { return errors.Is(err, errUnavailable) }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()

	billing := reg.MustPipeline("billing")
	fmt.Println(billing)
	calls := 0
	receipt, err := pipeline.Do(context.Background(), billing, func(context.Context) (string, error) {
		if calls++; calls < 3 {
			return "", errUnavailable
		}
		return "receipt", nil
	})
	fmt.Println(receipt, err, calls)
	// Output:
	// billing: timeout "billing" 5s > retry "payments" > breaker "payments" > attempt-timeout "billing" 1s > fn
	// receipt <nil> 3
}

// Every problem of a document comes at once, where it stands and as it was written.
func ExampleLoadYAML_errors() {
	_, err := registry.LoadYAML(strings.NewReader(`
resilience:
  retry:
    default: { max-attempts: many }
    aggressive: { max-attempts: 9, wait-duration: 1 month }
  bulkhead:
    db: { max-concurent: 10 }
  pipelines:
    billing: { retry: missing }
`))
	fmt.Println(err)
	// Output:
	// resilience.retry.default.max-attempts is many: want a whole number from 1 to 64
	// resilience.retry.aggressive.wait-duration is 1 month: want a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds
	// resilience.bulkhead.db.max-concurent is no key of the registry; available: instances, max-concurrent, max-queue, max-wait, on-outage, permit-ttl, shared
	// resilience.bulkhead.db.max-concurrent is missing: want the number of calls at once, from 1
	// resilience.pipelines.billing.retry: no resilience [retry] instance named [missing]; available: aggressive, default
}

// A reload changes parameters and keeps what is there: the call in flight counts against the new limit.
func ExampleRegistry_Reload() {
	const document = `{"resilience": {"bulkhead": {"db": {"max-concurrent": %d}}, "pipelines": {"read": {"bulkhead": "db"}}}}`
	reg, err := registry.LoadJSON(strings.NewReader(fmt.Sprintf(document, 1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	read := reg.MustPipeline("read")
	nothing := func(context.Context) error { return nil }
	_ = read.Run(context.Background(), func(ctx context.Context) error {
		fmt.Println(errors.Is(read.Run(ctx, nothing), bulkhead.ErrFull))
		fmt.Println(reg.Reload(strings.NewReader(fmt.Sprintf(document, 2))))
		fmt.Println(read.Run(ctx, nothing))
		return nil
	})
	// Output:
	// true
	// <nil>
	// <nil>
}

// A hook that uses the registry: it is declared before it is made, since the hook is an option of what makes it. In the place of
// the printing a program has otelx follow its pipelines, as TestARegistryIsFollowedThroughReloads of that package does.
func ExampleWithOnReload() {
	const document = "resilience: { pipelines: { billing: { timeout: %s } } }"
	var reg *registry.Registry
	reg, err := registry.LoadYAML(strings.NewReader(fmt.Sprintf(document, "2s")), registry.WithOnReload(func(err error) {
		fmt.Println(reg.MustPipeline("billing"), err)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	_ = reg.Reload(strings.NewReader(fmt.Sprintf(document, "5s")))
	_ = reg.Reload(strings.NewReader(fmt.Sprintf(document, "soon")))
	// Output:
	// billing: timeout "billing" 5s > fn <nil>
	// billing: timeout "billing" 5s > fn resilience.pipelines.billing.timeout: no resilience [time-limiter] instance named [soon]; available: (none)
}
