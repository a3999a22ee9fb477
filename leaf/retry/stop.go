package retry

import "time"

// stop ends the loop for reason; asked says that wait was asked for by somebody.
func (l *Loop) stop(reason Reason, cause error, wait time.Duration, asked bool) error {
	l.reason, l.wait = reason, 0
	if asked {
		l.wait = wait
	}
	l.End()
	if l.runs == 0 && l.refusal != nil {
		return l.refusal
	}
	return l.wrap(cause, wait, asked)
}

// ended stops the loop because ctx ended a wait. That fn has never run is told by Attempts 0.
func (l *Loop) ended(cause error) error {
	l.reason = ContextEnded
	l.End()
	return l.wrap(cause, 0, false)
}

func (l *Loop) wrap(cause error, wait time.Duration, asked bool) error {
	if l.plan.ReturnLast && l.runs > 0 {
		return l.last
	}
	return &Error{
		Attempts: l.runs, Reason: l.reason, Last: l.last, Stop: cause, Wait: wait,
		name: l.plan.Name, asked: asked && wait > 0,
	}
}
