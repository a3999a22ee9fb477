// Package timeout limits how long a callback may run, cooperatively: the callback's context gets a deadline.
//
//	v, err := timeout.Do(ctx, t, func(ctx context.Context) (T, error) { … }) // ctx ends at min(caller's deadline, now+Limit)
//
// Nothing is cut off: a callback that ignores its context returns when it likes, and a success is never discarded. When the
// callback fails after the limit fired while the caller's context lived, the error is an [*Error]; of several limits the
// outermost expired one is named, and equal deadlines belong to the outer one. Whoever wants to return before the callback
// does needs a pipeline's DoDetached.
//
// The context arms its timer lazily: until Done is first asked for it holds no timer and costs one allocation; then it
// becomes a real context.WithDeadlineCause, so that children need no goroutine and the cause is right. It ends when
// the callback returns, unless [Keep] took that over.
//
// Which limit fired is decided by the identity of its error in context.Cause of the callback's context or, where nobody had
// asked for Done, by the earliest deadline at or before the instant at which the callback returned; the caller's context is
// not asked afterwards, since it may have ended after the callback.
package timeout
