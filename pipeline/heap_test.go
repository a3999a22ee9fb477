package pipeline_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// Section 3, speed: a pipeline is at most 800 heap bytes, every layer set. Its layers are not counted: they may be shared.
func TestAPipelineAllocatesAtMost800Bytes(t *testing.T) {
	b := full(breaker.Window{}).
		Timeout(timeout.MustNew(timeout.Config{Limit: time.Hour})).AttemptTimeout(timeout.MustNew(timeout.Config{Limit: time.Minute})).
		Cooldown(cooldown.MustNew(cooldown.Config{})).
		OnRejected(func(context.Context, error) error { return nil }).Observe(func(context.Context, pipeline.Event) {})
	for name, b := range map[string]pipeline.Builder{
		"full": b, "breaker outside": b.BreakerOutsideRetry(), "8 guards": b.With(&rule{}, &rule{}, &rule{}, &rule{}),
	} {
		const n = 1000
		built := make([]*pipeline.Pipeline, n)
		before := live()
		for i := range built {
			built[i] = b.MustBuild()
		}
		each := (live() - before) / n
		runtime.KeepAlive(built)
		t.Log(name, each, "bytes")
		require.Positive(t, each)
		require.LessOrEqual(t, each, int64(800), name)
	}
}

// live is the bytes of heap that somebody still points to.
func live() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools kept until the first
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
