package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// matcher is a named question about an error that is not nil.
type matcher = func(err error) bool

// builtin matchers: all is every error; timeout is a deadline of whatever kind (an error whose Timeout() is true, such as
// timeout.Error and net.Error, context.DeadlineExceeded, os.ErrDeadlineExceeded); context is context.Canceled and
// context.DeadlineExceeded.
var builtin = map[string]matcher{
	"all":     func(error) bool { return true },
	"timeout": isTimeout,
	"context": func(err error) bool {
		return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	},
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}

// matchers is a list of names that stands for one question: does any of them say yes?
type matchers struct {
	names []string
	any   matcher // nil = not set
}

func (m matchers) String() string { return "[" + strings.Join(m.names, ", ") + "]" }

// all says that every error matches.
func (m matchers) all() bool { return slices.Contains(m.names, "all") }

func matchersKey[S any](name string, field func(*S) *matchers) key[S] {
	return key[S]{name: name,
		read: func(d *decoder, a at, to *S) { *field(to) = d.matchers(a) },
		show: func(s *S) string {
			if m := field(s); m.any != nil {
				return m.String()
			}
			return ""
		},
	}
}

// matchers is a name, or a list of names.
func (d *decoder) matchers(a at) matchers {
	items := []at{a}
	if a.node.Kind == yaml.SequenceNode {
		d.untagged(a)
		items = a.items()
	}
	var m matchers
	var fns []matcher
	for _, item := range items {
		name, ok := item.plain()
		if !ok {
			d.bad(item, "the name of a matcher")
			continue
		}
		fn, ok := d.opts.matcher(name)
		if !ok {
			d.named(item, fmt.Errorf("no matcher named [%s]; available: %s", printable(veiled(name)), listed(d.opts.matcherNames(), 50)))
			continue
		}
		m.names, fns = append(m.names, name), append(fns, fn)
	}
	if len(items) == 0 {
		d.bad(a, "at least one matcher (all is every error)")
	}
	m.any = func(err error) bool {
		return err != nil && slices.ContainsFunc(fns, func(fn matcher) bool { return fn(err) })
	}
	return m
}

func (o *options) matcher(name string) (matcher, bool) {
	if fn, ok := builtin[name]; ok {
		return fn, true
	}
	fn, ok := o.matchers[name]
	return fn, ok
}

func (o *options) matcherNames() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(builtin)), maps.Keys(o.matchers))
	slices.Sort(names)
	return names
}
