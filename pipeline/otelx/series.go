package otelx

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

var (
	succeeded = outcome.String("succeeded")
	failed    = outcome.String("failed")

	layers = []string{"cooldown", "breaker", "ratelimit", "guard", "bulkhead"} // those that refuse
)

const (
	dispositions = int(pipeline.Cancelled) + 1
	reasons      = int(retry.UnsafeReplay) + 1
)

// series is one pipeline's attribute sets, each made when it is first needed: making one costs more than all else that recording
// does. What has no place here (a word that a later version of the library adds) is made each time.
type series struct {
	name       attribute.KeyValue
	calls      [dispositions][reasons]atomic.Pointer[[]metric.RecordOption]
	attempts   [2]atomic.Pointer[[]metric.AddOption]
	rejections [2][5]atomic.Pointer[[]metric.AddOption] // by what, and by the index in layers
}

func (s *series) ofCall(how pipeline.Disposition, why retry.Reason) []metric.RecordOption {
	place := (*atomic.Pointer[[]metric.RecordOption])(nil)
	if int(how) < dispositions && int(why) < reasons {
		place = &s.calls[how][why]
		if known := place.Load(); known != nil {
			return *known
		}
	}
	attrs := []attribute.KeyValue{s.name, outcome.String(how.String())}
	if why != 0 {
		attrs = append(attrs, reason.String(why.String()))
	}
	return keep(place, []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))})
}

func (s *series) ofAttempt(ok bool) []metric.AddOption {
	place, how := &s.attempts[0], failed
	if ok {
		place, how = &s.attempts[1], succeeded
	}
	if known := place.Load(); known != nil {
		return *known
	}
	return keep(place, []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(s.name, how))})
}

func (s *series) ofRejection(by string, stored bool) []metric.AddOption {
	place, what, word := (*atomic.Pointer[[]metric.AddOption])(nil), 0, "refused"
	if stored {
		what, word = 1, "store_failed"
	}
	if i := slices.Index(layers, by); i >= 0 {
		place = &s.rejections[what][i]
		if known := place.Load(); known != nil {
			return *known
		}
	}
	return keep(place, []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(s.name, layer.String(by), reason.String(word)))})
}

// keep puts options in their place, if they have one. Two that do so at once put the same.
func keep[O any](place *atomic.Pointer[[]O], made []O) []O {
	if place != nil {
		place.Store(&made)
	}
	return made
}

// maxNames bounds the names that are remembered: no more than the SDK keeps apart by default. The series of others are made
// anew for each event.
const maxNames = 2000

// names finds a pipeline's series: a map that is copied when a name is new, so that finding one takes no lock.
type names struct {
	known atomic.Pointer[map[string]*series]
	mu    sync.Mutex
}

func (n *names) of(name string) *series {
	if known := n.known.Load(); known != nil {
		if s := (*known)[name]; s != nil {
			return s
		}
	}
	return n.add(name)
}

func (n *names) add(name string) *series {
	n.mu.Lock()
	defer n.mu.Unlock()
	more := map[string]*series{}
	if known := n.known.Load(); known != nil {
		if s := (*known)[name]; s != nil {
			return s
		}
		if len(*known) >= maxNames {
			return &series{name: pipelineName.String(name)}
		}
		more = maps.Clone(*known)
	}
	more[name] = &series{name: pipelineName.String(name)}
	n.known.Store(&more)
	return more[name]
}
