package main

import (
	"runtime"

	fsbulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/pipeline"
)

const pipelineBytes = "fairlead, a pipeline around layers that it shares"

// instances are what is kept for each downstream.
var instances = []struct {
	name  string
	build func() any
}{
	{pipelineBytes, sharing()},
	{"fairlead, full pipeline with its own layers", func() any { p, _ := fairleadPipeline(shape{attempt: limit}); return p }},
	{"failsafe-go, full executor with its own policies", func() any { ex, _ := failsafeExecutor(shape{attempt: limit}); return ex }},
	{"by hand, full composition", func() any { return newHand(shape{attempt: limit}) }},
	{"fairlead breaker, 100 in a row", func() any { return fairleadBreaker(false) }},
	{"failsafe-go circuitbreaker, 100 in a row", func() any { return failsafeBreaker(false) }},
	{"gobreaker, 100 in a row", func() any { return handBreaker(false) }},
	{"fairlead breaker, rate over 10 s", func() any { return fairleadBreaker(true) }},
	{"failsafe-go circuitbreaker, rate over 10 s", func() any { return failsafeBreaker(true) }},
	{"gobreaker, rate over 10 s", func() any { return handBreaker(true) }},
	{"fairlead limiter", func() any { return fairleadLimiter(false) }},
	{"failsafe-go ratelimiter", func() any { return failsafeLimiter(false) }},
	{"x/time/rate", func() any { return handLimiter(false) }},
	{"fairlead bulkhead", func() any { return bulkhead.MustNew(bulkhead.Config{MaxConcurrent: slots}) }},
	{"failsafe-go bulkhead", func() any { return fsbulkhead.New[int](slots) }},
	{"x/sync/semaphore", func() any { return semaphore.NewWeighted(slots) }},
	{"fairlead retry, with its budget", func() any { return fairleadRetry(true) }},
	{"fairlead retry, without", func() any { return fairleadRetry(false) }},
}

func sharing() func() any {
	b := pipeline.For("full").Retry(fairleadRetry(false)).Breaker(fairleadBreaker(true)).RateLimit(fairleadLimiter(false)).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: slots}))
	return func() any { return b.MustBuild() }
}

// heapBytes is what one instance keeps alive.
func heapBytes(build func() any) float64 {
	const n = 1000
	kept := make([]any, n)
	before := live()
	for i := range kept {
		kept[i] = build()
	}
	each := float64(live()-before) / n
	runtime.KeepAlive(kept)
	return max(0, each)
}

// live is the bytes of heap that somebody points to.
func live() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools kept until the first
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
