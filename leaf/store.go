package leaf

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
)

// The operations of a [StoreError].
const (
	OpAdmit  = "admit"  // asked before the call
	OpRecord = "record" // told after it
)

// StoreError is a failure of the store behind a shared guard.
type StoreError struct {
	Op          string // OpAdmit or OpRecord
	Name        string // the guard's
	Err         error  // the store's
	NotExecuted bool   // the store certainly did not execute the operation; false = nobody knows
}

// Error names the operation, the guard, the store's error, and whether it was executed.
func (e *StoreError) Error() string {
	if e == nil {
		return "store: nil"
	}
	executed := "may have been executed"
	if e.NotExecuted {
		executed = "not executed"
	}
	op := e.Op
	if e.Name != "" {
		op += " for " + strconv.Quote(e.Name)
	}
	return fmt.Sprintf("store: %s failed (%s): %v", op, executed, e.Err)
}

// Unwrap is Err.
func (e *StoreError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Rejected is true for OpAdmit alone: the callback did not run.
func (e *StoreError) Rejected() bool { return e != nil && e.Op == OpAdmit }

// RetryAfter is Err's own hint, if it has one.
func (e *StoreError) RetryAfter() (time.Duration, bool) {
	if e == nil {
		return 0, false
	}
	return refusal.RetryAfter(e.Err)
}

// Outage is what a shared guard does while its store cannot be asked.
type Outage uint8

const (
	// FailLocal: the same guard in this process, at its share of the limit. The default.
	FailLocal Outage = iota
	// FailOpen: admit.
	FailOpen
	// FailClosed: refuse with a [StoreError].
	FailClosed
)

// String is fail_local, fail_open or fail_closed.
func (o Outage) String() string {
	switch o {
	case FailLocal:
		return "fail_local"
	case FailOpen:
		return "fail_open"
	case FailClosed:
		return "fail_closed"
	}
	return fmt.Sprintf("Outage(%d)", uint8(o))
}

// StoreEvent is what a shared guard tells its OnStore hook.
type StoreEvent struct {
	Name   string // the guard's
	Kind   string // failed, recovered, overage
	Op     string // OpAdmit or OpRecord
	Policy Outage // in force from now on (failed)
	Err    error
}

// OnStore is the hook of a guard that is shared through a store: told when the store fails (the first failure of an outage),
// when it answers again, and of each permit that came back after its lease (overage). ctx is that of the call which found
// out, and may be done. It must be safe for concurrent use; a guard's options may say more. A nil OnStore is told nothing.
type OnStore func(ctx context.Context, e StoreEvent)
