package slogx

import (
	"log/slog"

	"github.com/fairlead/fairlead/pipeline"
)

// severity is the package's table: an attempt that may be retried is a warning at most, only the call's end can be an error.
func severity(e pipeline.Event) slog.Level {
	switch e.Kind {
	case pipeline.CallFinished:
		return severityOfCall(e.Disposition)
	case pipeline.GuardRejected, pipeline.RetryStopped:
		return slog.LevelWarn
	case pipeline.RetryScheduled:
		return slog.LevelInfo
	case pipeline.AttemptFinished:
		if e.Err != nil {
			return slog.LevelWarn
		}
	}
	return slog.LevelDebug
}

func severityOfCall(how pipeline.Disposition) slog.Level {
	switch how {
	case pipeline.Succeeded:
		return slog.LevelDebug
	case pipeline.Cancelled:
		return slog.LevelInfo
	case pipeline.Rejected, pipeline.Deferred:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}

// message is a constant per kind and outcome: what varies is in the attributes.
func message(e pipeline.Event) string {
	switch e.Kind {
	case pipeline.CallStarted:
		return "pipeline: call started"
	case pipeline.AttemptFinished:
		if e.Err != nil {
			return "pipeline: attempt failed"
		}
		return "pipeline: attempt done"
	case pipeline.RetryScheduled:
		return "pipeline: retry scheduled"
	case pipeline.RetryStopped:
		return "pipeline: retry stopped"
	case pipeline.GuardRejected:
		return "pipeline: attempt rejected"
	}
	if int(e.Disposition) < len(endings) {
		return endings[e.Disposition]
	}
	return "pipeline: call " + e.Disposition.String()
}

var endings = [...]string{
	pipeline.Succeeded: "pipeline: call succeeded", pipeline.Failed: "pipeline: call failed", pipeline.Rejected: "pipeline: call rejected",
	pipeline.Deferred: "pipeline: call deferred", pipeline.Expired: "pipeline: call expired", pipeline.Cancelled: "pipeline: call cancelled",
}
