// Package guardtest is the conformance suite of guards: what leaf.Guard and its optional companions promise, as tests.
// Every guard of this module passes it, local or shared through a store, and so should your own:
//
//	func TestConformance(t *testing.T) {
//		guardtest.Run(t, guardtest.Config{
//			New: func(t testing.TB) leaf.Guard { return NewTurnstile(4, 0) },
//			Waiting: func(t testing.TB) leaf.Guard { return NewTurnstile(4, time.Hour) },
//			Capacity: 4,
//			Slots:    true,
//		})
//	}
//
// The suite looks at a guard from outside alone: who is admitted, with which error who is not, and whether everything is
// back at the end. So the more the [Config] says about the guard, the more is checked; a guard without Capacity and without
// Refusing is one that admits everybody.
//
// It runs in real time and in no testing/synctest bubble: a guard may talk to a store. It never sleeps to wait for something
// to happen; [Config.Patience] only bounds what would hang. Run it under -race, and with a leak detector in TestMain:
// the suite leaves no goroutine behind unless the guard does.
package guardtest
