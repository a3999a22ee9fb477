// Package pipelinetest is for tests of code that uses pipelines: a callback that does what a script says, a recorder of a
// pipeline's events, and an assertion of the exact instants at which attempts began. Time is virtual, so that an hour of
// backoff takes milliseconds:
//
//	func TestChargeBacksOffExactly(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			var rec pipelinetest.Recorder
//			p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{
//				Backoff: retry.Exponential(100 * time.Millisecond), Jitter: retry.None,
//			})).Observe(rec.Observe).MustBuild() // made inside the bubble, on its time
//			bank := pipelinetest.Script[string](t, pipelinetest.Fail(errDown).Times(2), pipelinetest.Return("paid"))
//			receipt, err := pipeline.Do(t.Context(), p, bank.Do)
//			if err != nil || receipt != "paid" {
//				t.Fatal(receipt, err)
//			}
//			pipelinetest.AssertSchedule(t, &rec, 0, 100*time.Millisecond, 300*time.Millisecond)
//		})
//	}
//
// In a testing/synctest bubble nothing has to be injected: real time is virtual there, for the pipeline and for a script.
// Where layers have a clockwork.FakeClock in their Config, give the script the same one ([Scripted.On]); the recorder goes by
// the pipeline's clock in any case. A wait on a fake clock ends when the test advances it: run the call in a goroutine of a
// bubble, and before each Advance call synctest.Wait, which returns when the call can go no further.
//
// Make guards and pipelines inside the bubble: every bubble begins anew in the year 2000, and a guard from outside remembers
// another time.
//
// Failures are told with Errorf and the caller's line, so that a callback may fail a test from any goroutine. Everything here
// is safe for concurrent use.
package pipelinetest
