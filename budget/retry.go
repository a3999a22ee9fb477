package budget

// Off switches off what has a default where 0 means that default.
const Off = -1

// Retry limits retries; one budget is shared by any number of retries and pipelines. Safe for concurrent use.
type Retry interface {
	// Deposit is told once per call, when its first attempt is sent.
	Deposit()
	// Reserve takes a token for a retry that is about to be scheduled, or says false. It never waits.
	// Whoever holds a Reservation must decide it.
	Reserve() (Reservation, bool)
}

// Reservation is one token. The first of Commit and Cancel decides; later calls change nothing. Safe for concurrent use.
type Reservation interface {
	Commit() // the retry is sent: the token is spent
	Cancel() // the retry is never sent: the token goes back
}
