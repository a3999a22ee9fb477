// Package redistest starts real Redis servers for tests, and breaks them.
//
//	s := redistest.Start(t)                                 // a server of the test's own: a free loopback port, no persistence
//	s := redistest.Start(t, redistest.Options{MaxMemory: "3mb", Config: []string{"maxmemory-policy noeviction"}})
//	s := redistest.Shared(t)                                // one for the whole test binary: use s.Prefix(t), flush nothing
//	client := s.Client(t)                                   // closed with the test
//	before := s.Calls(t, "evalsha")                         // counted at the server
//	s.Pause(t); s.Resume(t); s.Kill(t); s.Restart(t)        // SIGSTOP, SIGCONT, SIGKILL
//	p := redistest.NewProxy(t, s.Addr)                      // drops replies after execution, delays, cuts
//	open, held := redistest.NewGate(client).Shut()          // holds a client's answers back
//	[StartSentinel]: a primary, a replica, three Sentinels. [StartCluster]: three masters, three replicas
//
// A second process is the test binary itself: [Child] registers a function under a name, TestMain calls [RunChild] first, and
// [Spawn] starts it; they talk in lines.
//
// Every process is ended by its own id: with its test, and, on Linux, with the test binary, however that ends. The shared server
// is ended by [Exit]:
//
//	func TestMain(m *testing.M) {
//		redistest.RunChild()
//		goleak.VerifyTestMain(m, goleak.Cleanup(redistest.Exit))
//	}
//
// Where redis-server is missing, a test fails and says how to get it.
package redistest
