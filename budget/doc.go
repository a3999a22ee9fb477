// Package budget is the request's time budget ([Left], [Fits], [Sleep], [WithReserve], and [Header] on the wire), and
// the retry budget ([Retry]: [NewRatio], [NewTokens]).
//
// The time budget is the context's deadline and nothing else: whoever is about to wait asks whether the wait [Fits], and
// the next service is told what is left of it ([Inject], [FromHeader]).
//
// The retry budget bounds what retries add to the load of a dependency that is failing already. A token is reserved when
// a retry is scheduled, spent when the retry is sent, and given back when it never is, so that it limits retries that
// were really sent. One budget is shared by any number of retries and pipelines.
//
//	        Deposit            Reserve                 Commit                      Cancel
//	Ratio   earns Ratio        needs a whole token     spent, forgotten after TTL  back at once
//	Tokens  nothing            needs a whole token     spent, comes by Refill      back at once
//
// A nil clockwork.Clock is real time. All functions are safe for concurrent use.
package budget
