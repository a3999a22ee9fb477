package main

// What some have and others have not. Here a yes is good.
const (
	featureSection  = "Features: what some have"
	fallbackFeature = "a fallback's result instead of an error"
	resultFeature   = "retries a result that is no error"
	hedgeFeature    = "hedges: sends a second request where the first is slow"
	cacheFeature    = "serves from a cache"
	adaptiveFeature = "a limit of concurrent calls that adapts to latency"
	orderFeature    = "the order of the policies is the caller's choice"
	coolFeature     = "a Retry-After holds back other calls too"
	trialFeature    = "a breaker on trial: it says what it would refuse, and refuses nobody"
	tenantFeature   = "a guard per tenant, made and dropped as needed"
)

func featureProbes() (all []probe) {
	for _, name := range []string{fallbackFeature, resultFeature, hedgeFeature, cacheFeature, adaptiveFeature, orderFeature, coolFeature, trialFeature, tenantFeature} {
		all = append(all, probe{featureSection, name, func(s subject) bool { return s.features != nil }, func(s subject) answer {
			has := s.features[name]
			return when(has != nil && has())
		}, false})
	}
	return all
}

// unasked is what a probe would not show.
const unasked = `
Not asked by running: failsafe-go also has gRPC interceptors, throttling by priority, and policies for values of any type; gobreaker
and Fairlead share a circuit through Redis, Fairlead also limits, slots and pauses; hystrix-go streams to its dashboard. What each
costs, and who allocates, is in RESULTS.md.
`
