package archtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArrowsAllowTheDesignsArrows(t *testing.T) {
	for _, c := range []struct{ path, imports string }{
		{"leaf/guard.go", "context"},
		{"leaf/do.go", Module + "/internal/ended"},
		{"leaf/retry/retry.go", Module + "/leaf"},
		{"leaf/retry/retry.go", Module + "/budget"},
		{"leaf/breaker/breaker.go", Module + "/leaf"},
		{"leaf/breaker/breaker.go", clockworkModule},
		{"leaf/breaker/redisbreaker/b.go", Module + "/leaf/breaker"},
		{"leaf/breaker/redisbreaker/b.go", Module + "/internal/redisscript"},
		{"leaf/breaker/redisbreaker/b.go", goRedisModule},
		{"budget/time.go", clockworkModule},
		{"budget/time.go", Module + "/internal/clock"},
		{"rejection/rejection.go", Module + "/internal/refusal"},
		{"pipeline/do.go", Module + "/leaf/retry"},
		{"pipeline/do.go", Module + "/leaf/timeout"},
		{"pipeline/do.go", Module + "/leaf"},
		{"pipeline/do.go", Module + "/budget"},
		{"pipeline/do.go", Module + "/rejection"},
		{"pipeline/registry/load.go", Module + "/pipeline"},
		{"pipeline/registry/load.go", Module + "/leaf/breaker/redisbreaker"},
		{"pipeline/registry/load.go", goRedisModule},
		{"pipeline/registry/load.go", yamlModule},
		{"pipeline/slogx/observer.go", Module + "/pipeline"},
		{"internal/redisscript/run.go", goRedisModule + "/maintnotifications"},
		{"internal/redisscript/run.go", Module + "/leaf"},
		{"internal/redisscript/run_test.go", Module + "/internal/redistest"},
		{"internal/redistest/server.go", goRedisModule},
		{"internal/redistest/server_test.go", goRedisModule},
		{"leaf/breaker/redisbreaker/b_test.go", goRedisModule},
		{"leaf/breaker/redisbreaker/b_test.go", Module + "/internal/redistest"},
		{"examples/fleet/share.go", goRedisModule},
		{"examples/fleet/share.go", Module + "/leaf/breaker/redisbreaker"},
		{"examples/fleet/story.go", Module + "/examples/redisserver"},
		{"examples/readme/shared.go", goRedisModule},
		{"examples/quickstart/main.go", Module + "/leaf/bulkhead"},
		{"examples/quickstart/main.go", Module + "/examples/quickstart/server"},
		{"leaf/breaker/breaker_test.go", testifyModule + "/require"},
		{"leaf/breaker/main_test.go", goleakModule},
		{"leaf/breaker/guard_test.go", Module + "/leaf/guardtest"},
		{"leaf/breaker/example_test.go", Module + "/leaf/breaker"},
		{"leaf/guardtest/guardtest_test.go", Module + "/leaf/bulkhead"},
		{"pipeline/pipeline_test.go", Module + "/leaf/breaker"},
		{"arch_test.go", Module + "/internal/archtest"},
	} {
		assert.Empty(t, Arrows([]File{importing(t, c.path, c.imports)}), "%s → %s", c.path, c.imports)
	}
}

func TestArrowsFindEachWrongArrow(t *testing.T) {
	for _, c := range []struct{ guards, path, imports string }{
		{"leaf is the standard library alone", "leaf/guard.go", clockworkModule},
		{"leaf knows no leaf", "leaf/do.go", Module + "/leaf/timeout"},
		{"a guard leaf to another", "leaf/breaker/breaker.go", Module + "/leaf/bulkhead"},
		{"a guard leaf to another, in a test too", "leaf/breaker/breaker_test.go", Module + "/leaf/bulkhead"},
		{"budget is for retry alone", "leaf/breaker/breaker.go", Module + "/budget"},
		{"from below to pipeline", "leaf/retry/retry.go", Module + "/pipeline"},
		{"from below to pipeline, in a test too", "leaf/retry/retry_test.go", Module + "/pipeline"},
		{"budget to pipeline", "budget/time.go", Module + "/pipeline"},
		{"budget to leaf", "budget/retry.go", Module + "/leaf"},
		{"rejection to a leaf", "rejection/rejection.go", Module + "/leaf/breaker"},
		{"rejection to leaf", "rejection/rejection.go", Module + "/leaf"},
		{"internal to a leaf", "internal/clock/clock.go", Module + "/leaf/retry"},
		{"internal to pipeline", "internal/clock/clock.go", Module + "/pipeline"},
		{"pipeline to a guard leaf", "pipeline/do.go", Module + "/leaf/breaker"},
		{"pipeline to what is beside it", "pipeline/do.go", Module + "/pipeline/slogx"},
		{"go-redis in the core", "pipeline/do.go", goRedisModule},
		{"go-redis in a local leaf", "leaf/breaker/breaker.go", goRedisModule},
		{"go-redis in another part of pipeline", "pipeline/httpx/transport.go", goRedisModule},
		{"go-redis in internal", "internal/clock/clock.go", goRedisModule},
		{"go-redis in a local leaf's test", "leaf/breaker/breaker_test.go", goRedisModule},
		{"go-redis in another example", "examples/domain/main.go", goRedisModule},
		{"test servers outside tests", "leaf/breaker/redisbreaker/b.go", Module + "/internal/redistest"},
		{"test servers in an example", "examples/fleet/main.go", Module + "/internal/redistest"},
		{"a redis leaf to another leaf", "leaf/breaker/redisbreaker/b.go", Module + "/leaf/bulkhead"},
		{"yaml outside the registry", "pipeline/console/page.go", yamlModule},
		{"yaml in a leaf", "leaf/retry/config.go", yamlModule},
		{"testify outside tests", "leaf/guardtest/suite.go", testifyModule + "/require"},
		{"goleak outside tests", "leaf/guardtest/suite.go", goleakModule},
		{"a dependency without a reason", "leaf/ratelimit/limiter.go", "golang.org/x/time/rate"},
		{"a dependency that only begins alike", "budget/time.go", clockworkModule + "x"},
		{"an example of what no user can do", "examples/domain/main.go", Module + "/internal/clock"},
		{"the root has no code", "doc.go", Module + "/pipeline"},
		{"a package that imports itself", "budget/time.go", Module + "/budget"},
	} {
		assert.Len(t, Arrows([]File{importing(t, c.path, c.imports)}), 1, c.guards)
	}
}

func TestArrowsWantAPlaceForEachPackage(t *testing.T) {
	for _, path := range []string{"util/util.go", "leaf/a/b/c.go", "pipeline/a/b/c.go", "budget/sub/s.go"} {
		assert.Len(t, Arrows([]File{importing(t, path)}), 1, path)
	}
}

func TestArrowsLeaveANestedModuleItsOwnDependencies(t *testing.T) {
	f := importing(t, "examples/foreign/main.go", "golang.org/x/time/rate")
	assert.Len(t, Arrows([]File{f}), 1)
	f.Nested = true
	assert.Empty(t, Arrows([]File{f}))
	inside := importing(t, "examples/foreign/main.go", Module+"/internal/clock")
	inside.Nested = true
	assert.Len(t, Arrows([]File{inside}), 1)
}

func TestClosuresFindWhatIsReachedThroughOthers(t *testing.T) {
	clock := importing(t, "internal/clock/clock.go", clockworkModule)
	outcome := importing(t, "internal/outcome/outcome.go", Module+"/leaf")
	ended := importing(t, "internal/ended/ended.go", "context")
	for _, c := range []struct {
		from, through string
		want          []string
	}{
		{"leaf/do.go", "ended", nil},
		{"leaf/do.go", "clock", []string{"leaf: reaches " + clockworkModule + ": the contract needs the standard library alone"}},
		{"leaf/do_test.go", "clock", nil},
		{"budget/time.go", "clock", nil},
		{"budget/time.go", "outcome", []string{"budget: reaches " + Module + "/leaf: it knows no guard"}},
		{"rejection/r.go", "outcome", []string{"rejection: reaches " + Module + "/leaf: it knows errors by their methods alone"}},
	} {
		files := []File{importing(t, c.from, Module+"/internal/"+c.through), clock, outcome, ended}
		assert.Equal(t, c.want, Closures(files), "%s → %s", c.from, c.through)
	}
}
