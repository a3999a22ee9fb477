// Package limit is a context with a deadline that costs one allocation until somebody waits for it.
//
// context.WithTimeout arms a timer, registers with its parent and makes closures, though most calls are over before
// anybody asks for Done. A [Ctx] does all that when Done is first called: then it becomes a real
// context.WithDeadlineCause, so that its children need no goroutine and context.Cause is right, and delegates to it.
// Before that, Err compares instants. An injected clock gets the same from a cancelled context behind a small trigger.
//
// A Ctx also knows who ended it ([Ctx.Ended]): its own limit, known by the identity of the error that only this Ctx made,
// or its parent. Equal deadlines belong to the outer one. And it can outlive its callback ([Keep]).
package limit
