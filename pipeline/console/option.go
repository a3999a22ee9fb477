package console

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/pipeline"
)

// Source is what a console shows. A *registry.Registry is one. It is asked once a second, on a goroutine of the console's own, so
// that pipelines which come and go are followed: what is nil in the list of a source of your own is left out. It must not block.
//
// Where it also has the method EachSetting(yield func(section, name, key, value string, byDefault bool) bool), as a registry has,
// the page shows these settings.
type Source interface {
	Pipelines() []*pipeline.Pipeline
}

// Pipelines is a Source that never changes. A nil one among them is an error of [Handler], which names its place.
func Pipelines(all ...*pipeline.Pipeline) Source {
	return fixed(append([]*pipeline.Pipeline{}, all...))
}

type fixed []*pipeline.Pipeline

func (f fixed) Pipelines() []*pipeline.Pipeline { return f }

// settler is a Source that knows its settings; it is described where a user looks, at Source.
type settler interface {
	EachSetting(yield func(section, name, key, value string, byDefault bool) bool)
}

// Option changes what a console does.
type Option func(*options)

type options struct {
	authorize func(*http.Request) bool
	journal   *Journal
	text      func(error) string
	bad       check.List
}

// AllowControl adds to the page what changes circuits: force-open, force-closed, auto, reset. Without it the console is
// read-only, and the page has nothing to press.
//
// authorize is asked about each POST, after it was found to come from the page's own origin, and about each GET of the page,
// which holds the controls only for those whom it lets. It must be safe for concurrent use; nil is an error.
//
// Origin's host is compared with the request's Host, and nothing else is: authorize must tell that the request is somebody's who may.
// The address that it comes from does not tell: a page of somebody else's, whose name resolves to the console by now (DNS
// rebinding), is of the same origin to the browser, and comes from the same machine. Where no login decides, compare r.Host with
// the names that the service is known by, as examples/console does.
func AllowControl(authorize func(*http.Request) bool) Option {
	return func(o *options) {
		if authorize == nil {
			o.bad.Bad("console", "AllowControl's authorize", "nil", "a function (leave AllowControl out for read-only)")
			return
		}
		o.authorize = authorize
	}
}

// WithJournal shows what j has heard: changes of circuits at their instant, stores' trouble, would-be refusals. Without it the
// console knows only what it sees once a second. nil is an error.
func WithJournal(j *Journal) Option {
	return func(o *options) {
		if j == nil {
			o.bad.Bad("console", "WithJournal's journal", "nil", "a *console.Journal (leave WithJournal out for none)")
			return
		}
		o.journal = j
	}
}

// WithErrorText is what the page shows of an error; the default is its Error(). An empty text is not shown. It runs on the
// call's goroutine, at most four times a second for each pipeline, must be safe for concurrent use, and is for errors whose
// text may hold what not everybody may read. Its panic is not the call's: the text is then the panic's type. nil is an error.
func WithErrorText(text func(err error) string) Option {
	return func(o *options) {
		if text == nil {
			o.bad.Bad("console", "WithErrorText's text", "nil", "a function (leave WithErrorText out for Error())")
			return
		}
		o.text = text
	}
}

func newOptions(source Source, opts []Option) (options, error) {
	o := options{text: error.Error}
	if check.Nil(source) {
		o.bad.Bad("console", "source", check.Type(source), "a registry, or console.Pipelines(…)")
	}
	if f, ok := source.(fixed); ok {
		for i, p := range f {
			if p == nil {
				o.bad.Bad("console", fmt.Sprintf("pipeline %d", i+1), "nil", "a pipeline")
			}
		}
	}
	for _, set := range opts {
		if set == nil {
			o.bad.Add(errors.New("console: an option is nil: want one made by AllowControl, WithJournal or WithErrorText"))
			continue
		}
		set(&o)
	}
	if o.journal == nil {
		o.journal = new(Journal)
	}
	return o, o.bad.Err()
}
