// Package rejection answers: was the call refused before it ran, and when may it come back.
//
//	v, err := pipeline.Do(ctx, p, fn)
//	if rejection.Is(err) { … }                                // nothing happened yet: it may be queued again
//	if wait, ok := rejection.RetryAfter(err); ok { … }        // and not before wait has passed
//	if code := rejection.Status(err); code != 0 { … }         // 503 or 504 to the outside
//	rejection.SetHeader(w.Header(), err)                      // Retry-After: 3
//
// It knows errors by two methods alone, Rejected() bool and RetryAfter() (time.Duration, bool), and imports no guard: errors
// of your own with these methods are understood as well. All functions are pure, and safe for concurrent use.
package rejection
