package guardtest

import "testing"

// Run checks the guards that cfg makes, one subtest per promise. An invalid cfg fails t at once. It must not be called
// inside a testing/synctest bubble.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	cfg = cfg.withDefaults()
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) { p.check(&suite{TB: t, cfg: cfg}) })
	}
}

// promises is the contract. A check returns without a word where the guard promises nothing of the kind.
var promises = []struct {
	name  string
	check func(*suite)
}{
	{"a fresh guard admits", (*suite).admits},
	{"every verdict settles, once", (*suite).settlesOnce},
	{"a done context takes nothing", (*suite).doneTakesNothing},
	{"a done context enters no refusing guard", (*suite).doneAtRefusing},
	{"capacity is exact", (*suite).capacityIsExact},
	{"a refusal says so", (*suite).refusalSaysSo},
	{"a refusal takes nothing", (*suite).refusalTakesNothing},
	{"NotRun gives everything back", (*suite).notRunGivesBack},
	{"a slot comes back after every verdict", (*suite).slotComesBack},
	{"a done context settles", (*suite).doneSettles},
	{"panic and Goexit settle", (*suite).panicSettles},
	{"a waiter gets the place that is freed", (*suite).waiterGetsPlace},
	{"a wait that ctx ended is ctx's error", (*suite).cancelledWait},
	{"a cancelled wait takes nothing along", (*suite).cancelledWaitTakesNothing},
	{"a grant that races with leaving is not lost", (*suite).grantRacesWithLeaving},
	{"TryAcquire never waits", (*suite).tryNeverWaits},
	{"Peek is pure", (*suite).peekIsPure},
	{"Peek tells what Acquire does", (*suite).peekTells},
	{"a hint of nothing changes nothing", (*suite).emptyHint},
	{"any hint is survived", (*suite).anyHint},
	{"Lease, Occupies and WantsTook are steady", (*suite).steadyAnswers},
	{"Inspect is consistent", (*suite).inspectIsConsistent},
	{"concurrent calls keep the capacity", (*suite).stress},
	{"concurrent waiters keep the capacity", (*suite).stressWaiting},
}
