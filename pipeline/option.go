package pipeline

import "github.com/fairlead/fairlead/leaf/retry"

// Option is about one call; a value that costs no allocation.
type Option struct {
	declared  bool
	safety    retry.Safety
	operation string
}

// Declare says that fn may be repeated; see retry.Safety. The last one counts.
func Declare(s retry.Safety) Option { return Option{declared: true, safety: s} }

// OperationID names the operation in the call's events; "" = none.
func OperationID(id string) Option { return Option{operation: id} }

// add merges one option into the call's.
func (o *Option) add(more *Option) {
	if more.declared {
		o.declared, o.safety = true, more.safety
	}
	if more.operation != "" {
		o.operation = more.operation
	}
}
