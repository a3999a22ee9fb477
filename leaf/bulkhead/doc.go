// Package bulkhead bounds how many calls run at once.
//
// A [Bulkhead] has MaxConcurrent slots. A call takes one, holds it until its permit is settled, and gives it back whatever
// the outcome was. Without MaxWait a call that finds no slot is refused at once with a [*FullError]; with it the call waits,
// at most MaxWait, at most MaxQueue calls at a time, and never past its context.
//
// Waiters are served first in, first out, and nobody overtakes them: while somebody waits, a slot that comes back is handed
// to the first in the queue, and a new call queues up behind, or is refused, even in the moment in which a slot looks free.
// A waiter that leaves takes no slot along and frees its queue place; a grant that races with its leaving is passed on to
// the next. A context that is done never takes a slot, also not the one that it was granted in the same moment.
//
// The slot follows the work, not the caller: in a detached call it comes back when the callback really ends
// ([Bulkhead.Occupies]). A callback that ignores its context therefore holds its slot for as long as it runs.
//
// With nobody waiting, taking a slot is one compare-and-swap, giving it back one addition, and a refusal one load: no lock,
// no clock, and no allocation but the refusal itself. Time is read by calls that wait, and by no others.
package bulkhead
