package main

// Why goals are missed. A reading of the clock costs 35 ns and an allocation 30 on the machine that these were written on, where
// time.Now takes 55 to 60; the shares are what -profile shows of fairleadFull at 1, 2 and 8 goroutines.
const (
	noteOK = "a call of 170 to 190 ns holds two readings of the clock, 70 ns or a third of it: one for the limiter and the retry's budget, " +
		"one for the result's place in the breaker's time window (a breaker of a number of calls needs none). Under a tenth of failsafe-go leaves 10 ns " +
		"for each of the five layers. Left: to give the window the first reading where fn was quick, which cannot be known without a second"
	noteUntouched = "limit.New is a third of the call, most of it one allocation of 128 bytes; it reads the clock, and another reading at the end says whether the limit " +
		"had passed: about 260 ns in all on a quiet machine. Left: a pool of these contexts, which a callback that keeps its context would break"
	noteDone = "two thirds of the call are Done() itself, and two thirds of that the standard library's own context.WithDeadlineCause, with its timer, its allocations and " +
		"its removal at the end; the rest is the context that was there before the timer was wanted. Left: nothing but a guess that fn will ask"
	noteTwice = "each failing attempt costs about 300 ns: a third is the breaker's record (its lock, a reading of the clock, the window's counts, and whether it trips; nearly half " +
		"where goroutines wait for the lock), the rest another reading at the next admission, the judgement of the error and the retry's decision. By hand nobody judges the error, " +
		"and the loop decides by a count. Left: a failing path of the breaker without a lock, and one reading that a failure's record and the next admission share"
	noteRefused = "a refusal is an error that is allocated (a fifth of the call), a reading of the clock (a fifth), and the beginning and the stop of the retry loop (a third): 135 to 160 ns, " +
		"where failsafe-go takes 650 for the open breaker. A tenth of that is what the reading and the allocation take alone. " +
		"Left: an error without its time to wait would need neither, and tell the caller less"
	noteBreaker = "leaf.Do costs 65 to 80 ns around any guard: two thirds of it are the outcome, which is built and copied from call to call also where there is nothing to find out, " +
		"and a deferred unwinding that runs after a success too; Acquire and Settle by hand, the line below it, are within the bound. " +
		"Left: a success without a deadline needs neither (tried: 0.67 became 0.39)"
	noteHTTP = "httpx itself costs about 30 ns (a declaration, the deadline, the status), the engine and all guards about 140 as without HTTP, of which 36 are a reading of the clock; and about 40 more " +
		"are calls nested more deeply than the processor predicts their returns: 10 ns for each beyond the third between the client and its transport, as a transport that only calls another shows. " +
		"A plain call in memory is 620 ns without the collector, about 1 µs with it. A retry alone, which is what go-retryablehttp is, stays below the bound; each guard adds 20 ns, the limiter 50. " +
		"The share falls with whatever a network adds. Left: what the full pipeline leaves"
	noteObserved = "an observed call reads the clock three times, for its start, for its attempt's and for both their ends: one reading more than where a breaker judges a rate, " +
		"as it does unless it is told otherwise, and two more than where it judges a number of calls, 36 ns each; the other 55 ns are three events, written and handed over. " +
		"Left: an attempt that goes by the call's own first reading would be told an observer's time as its own; an observer that takes a pointer must not keep it"
	noteUnknown = "it was met whenever this text was written. -profile FILE shows where the time goes; a loaded machine is the likeliest reason"
)
