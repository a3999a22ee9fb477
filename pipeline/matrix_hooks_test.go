package pipeline_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// TestHookPanicsHoldNothing: whichever event's observer panics, or OnRejected, each permit is settled exactly once, the
// retry's token is spent or given back, no context lives on, and the hook's panic reaches the caller.
func TestHookPanicsHoldNothing(t *testing.T) {
	all := scenarios()
	for set := range 256 {
		for _, p := range plans(layer(set)) {
			p.mapping = mapsPlain
			for i, sc := range all {
				if (set+i)%(8*everyNth+3) != 0 || layer(set)&sc.needs != sc.needs || sc.settlePanics != nil {
					continue
				}
				for n := 1; hookPanics(t, sc, p, n); n++ {
				}
			}
		}
	}
}

// hookPanics lets the nth hook panic, and says whether there was one.
func hookPanics(t *testing.T, sc *scenario, p plan, n int) (again bool) {
	synctest.Test(t, func(t *testing.T) {
		w := play(sc, p, detailed, n)
		again = w.hooked >= n
		count := map[string]int{}
		for _, e := range w.trace {
			count[e.what]++
		}
		if count["reserve"] != count["commit"] {
			w.complain("%d tokens taken, %d spent, the rest not given back", count["reserve"], count["commit"])
		}
		if again && predict(sc, p).unwinds == "" && !slices.ContainsFunc(w.trace, func(e entry) bool { return e.what == "result" && e.err == hookBoom }) {
			w.complain("the hook's panic did not reach the caller")
		}
		if len(w.wrong) != 0 {
			t.Errorf("the hook's call %d panics in %q through %v\n%s\n%s", n, sc.name, p, strings.Join(w.wrong, "\n"), render(w.trace, w.trace))
		}
	})
	return again
}
