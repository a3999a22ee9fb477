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

// declared takes the call's options; it returns what they declare, which only the beginning needs.
func (c *call) declared(opts []Option) (s retry.Safety) {
	for i := range opts {
		o := &opts[i]
		if o.declared {
			s = o.safety
		}
		if o.operation != "" {
			c.operationID = o.operation
		}
	}
	return s
}
