// Package httpx puts a pipeline into net/http: around a client's http.RoundTripper, and around a server's http.Handler.
//
//	client := &http.Client{Transport: httpx.NewTransport(p, nil)}      // nil: http.DefaultTransport
//	http.Handle("/", httpx.Middleware(p)(handler))
//
// # The client
//
//	RoundTrip ─► pipeline ─► per attempt: discard the response before, GetBody, budget header ─► base ─► judge the status
//
// Retried are requests that may be repeated: GET, HEAD, OPTIONS, TRACE, PUT, DELETE (method "" is GET), any method with an
// Idempotency-Key header, and what [Safety] declares; a body needs GetBody. Everything else is sent once. To a retry policy
// that is Strict these methods and keys are declarations. Nothing is buffered: attempt 1 sends the caller's own Body, and
// GetBody is called once per retry. When GetBody fails, the call fails with its error, and no guard hears of an attempt. When
// the request's Cancel channel is closed, the caller has left: nothing is repeated, and guards take it as that.
//
// A retry follows a transport error, or one of 408, 425, 429, 500, 502, 503 and 504 ([RetryStatus] replaces the set). Such a
// failure is a [*StatusError] to RetryIf, Observe and the guards, whose view of it is: 5xx is a failure, in the set or not;
// 429 is ignored, but feeds the cooldown, as any Retry-After does; every other status is a success. Retry-After is a lower
// bound (leaf/retry); of several lines the longest valid one counts, and dates are compared with [Clock].
//
// The caller gets the last response, undrained and with a nil error, where a response exists and no retry follows: out of
// attempts or of retry budget, a wait that is too long, a retry that a guard is known to refuse. It gets an error where its
// context or the total timeout ended the call, and where the last response can no longer be read: the [*StatusError] in it
// tells the status.
//
// Once a retry is certain, but for a guard that has not been asked yet, its response is read ahead, into at most 64 KiB of
// memory: a backoff, or a guard that makes the retry wait, holds no connection, and the end of the attempt's time takes
// nothing away. Where that guard refuses, the caller gets what was read and the rest. Otherwise the response is drained
// (at most 64 KiB, 500 ms from then on and a quarter of what the next attempt has left) and closed before the next request, so
// that its connection is used again.
//
// Slots, tokens and the breaker are settled when the headers are there. The context of the attempt lives until the
// body's EOF or Close; its timeout goes on covering the body, which then fails with an error that matches
// context.DeadlineExceeded. Where there is no body (HEAD, 204, 304), it is over at once. The connection of a 101 is the
// caller's: no timeout cuts it, or is blamed for its end. A call without timeouts gets the base's own body back, and costs no allocation.
//
// # In a reverse proxy
//
// httputil.ReverseProxy takes the client's side as its Transport. It answers every error with a 502 of its own, an open circuit
// included, so give it an ErrorHandler that asks rejection.Status and rejection.SetHeader: 503 with Retry-After where a guard refused,
// 504 where the time was over; the example of [NewTransport] is one. A request with a body that comes through a proxy is sent
// once, a PUT too: it has no GetBody.
//
// # The server
//
//	handler ◄─ pipeline ◄─ deadline of budget.Header
//
// A handler runs once, whatever retry the pipeline holds: its body cannot be read again. (A retry of refusals by opt-in,
// RetryOnBulkheadFull or RetryOnRateLimited, still waits for admission.)
//
//	refused by the RateLimit layer, or by a With  429, Retry-After, problem+json
//	guard whose error is ratelimit.ErrLimited
//	refused by anything else; a broken guard      503, Retry-After, problem+json
//	the request's time was over before            504, problem+json; an X-Request-Budget-Ms of 0 asks no layer
//	its deadline passed, nothing written          504, problem+json
//	the client left before the handler ran        503, problem+json, for whoever logs
//	anything else went wrong before it ran        500, problem+json
//
// A 429 is a limit's own refusal: a guard that is broken (its error is no rejection), a store's outage, and a breaker, bulkhead
// or cooldown are a 503 in the RateLimit layer as well. Retry-After is in seconds, rounded up, at least 1, and 1 where no guard
// knows better. What the handler wrote is never touched: a status from 500 on is a failure for the guards, everything below a
// success. Where a 504 takes the place of an answer that never came, what the handler had said of that one (Content-Encoding,
// ETag, Cache-Control, Location, trailers, …) is taken back, and what was said before it ran stays.
//
// Problem texts are fixed, and show nothing of what refused. One alone is not: a [Middleware] that was made wrongly (a nil
// pipeline, an option that is not its own) serves no request, and its 500 names the mistake, which is the program's and not the
// request's.
//
// A panic settles everything as a failure and goes on, http.ErrAbortHandler included; but where the client has left, that one
// is how a proxy notices, and is as neutral as any other leaving.
//
// The ResponseWriter has Flush and Push, and Hijack where the server's has it; http.ResponseController reaches everything
// else. Under a deadline the handler gets a copy of the request; its Pattern, the path values that this one names, and parsed forms
// are handed back, so that a middleware outside sees them after the handler, as ever.
package httpx
