package retry

import "time"

// stop ends the loop for reason. wait is what its error tells, asked what was asked for, if only by the failure before.
func (l *Loop) stop(reason Reason, cause error, wait, asked time.Duration) error {
	asked = max(asked, l.wait)
	l.reason, l.wait = reason, asked
	if wait > asked {
		l.wait = 0 // it is a delay of our own that does not fit
	}
	l.End()
	if l.runs == 0 && l.refusal != nil {
		return l.refusal
	}
	return l.wrap(cause, max(wait, asked), asked)
}

// ended stops the loop because ctx ended a wait. That fn has never run is told by Attempts 0.
func (l *Loop) ended(cause error) error {
	l.reason = ContextEnded
	l.End()
	return l.wrap(cause, 0, 0)
}

func (l *Loop) wrap(cause error, wait, asked time.Duration) error {
	if l.plan.ReturnLast && l.runs > 0 {
		return l.last
	}
	return &Error{Attempts: l.runs, Reason: l.reason, Last: l.last, Stop: cause, Wait: wait, name: l.plan.Name, asked: asked}
}
