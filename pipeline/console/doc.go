// Package console shows pipelines live in the browser: which circuit is open, why, since when, what is refused, and whether it is
// getting better. It is one http.Handler without any dependency: the page is compiled in, loads nothing from elsewhere, and works
// offline.
//
//	live, err := console.Handler(reg)                       // or console.Pipelines(charge, search)
//	…
//	defer live.Close()
//	internal.Handle("/console/", live)                      // any prefix, ending with a slash
//
// # What it sees
//
//	events ──► a tally per pipeline (adds only) ──┐
//	                                              ├─ once a second ─► rings of five minutes ─► one encoding ─► every stream
//	guards ──► Inspect, Snapshot ─────────────────┘
//
// It subscribes to each pipeline (which then reads its clock in every call, see [pipeline.Pipeline.Subscribe]) and counts what it
// is told with atomic adds, without a clock or an allocation; only of failures it takes a text, at most four times a second for each
// pipeline. Once a second one goroutine reads the counters and looks at the guards. Everything has a fixed size: some 28 KiB for
// each pipeline, whatever the traffic. Latencies are those of calls, of the last ten seconds, and off by 6 % at most.
//
// A guard may serve many pipelines, so that no pipeline tells of its changes. The console sees them when it looks. To have each
// change at its instant, give the guards' hooks to a [Journal]:
//
//	var journal console.Journal
//	bank := breaker.MustNew(breaker.Config{Name: "bank", OnChange: journal.OnChange})
//	live, err := console.Handler(console.Pipelines(charge), console.WithJournal(&journal))
//
// # What it serves
//
// The page; state.json, everything as the page gets it; series.json?id=1, five minutes of one pipeline; settings.json, a registry's
// settings; stream, the same as server-sent events, one a second. At most 100 streams are open at once, more get a 503. A client that
// reads nothing holds one until the buffers between are full, which small messages take long to do, and for 5 s more: then it is cut. Nothing
// waits for it but its own goroutine.
//
// Without [AllowControl] nothing can be changed, and the page has nothing to press. With it, circuits can be forced open or
// closed, returned to automatic, and reset: by POST, from the console's own page, for those whom the program lets, and after
// the page has asked again.
package console
