package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/internal/check"
)

// translate adds what New of a leaf found, in the words of the document: the leaf's message is "pkg "name": Field is value:
// want …", and keys tells the key of each field.
func (d *decoder) translate(e *entry, pkg string, keys map[string]string, err error) {
	d.translateElsewhere(e, pkg, keys, nil, err)
}

// translateElsewhere is translate where some of what is wrong stands in other entries: elsewhere is their keys, by field.
func (d *decoder) translateElsewhere(e *entry, pkg string, keys map[string]string, elsewhere map[string]at, err error) {
	if err == nil {
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			d.translateElsewhere(e, pkg, keys, elsewhere, one)
		}
		return
	}
	message, found := strings.CutPrefix(err.Error(), check.Called(pkg, e.name)+": ")
	if !found {
		message = strings.TrimPrefix(err.Error(), pkg+": ")
	}
	field, rest, ok1 := strings.Cut(message, " is ")
	value, want, ok2 := cutLast(rest, ": want ")
	where, reason := at{}, ""
	if a, ok := elsewhere[field]; ok {
		where, reason = a, fmt.Sprintf(" (for %s)", e.at.path)
	} else if name, ok := keys[field]; ok {
		where = e.place(name)
	}
	if !ok1 || !ok2 || where.node == nil {
		d.add(&leafError{e.at.path + ": " + message, err})
		return
	}
	d.add(&leafError{where.path + " is " + asWritten(where, value, keys) + ": want " + kebab(keys).Replace(want) + reason, err})
}

// asWritten is the value as the document has it: the leaf's own where a default is wrong, or where it names other fields besides.
func asWritten(a at, value string, keys map[string]string) string {
	for field := range keys {
		if strings.Contains(value, field) {
			return kebab(keys).Replace(value)
		}
	}
	if a.node != absent {
		return a.text()
	}
	if value == "nil" {
		return "absent"
	}
	return value
}

// leafError is a leaf's error in the words of the document.
type leafError struct {
	text string
	err  error
}

func (e *leafError) Error() string { return e.text }

// Unwrap is the leaf's own.
func (e *leafError) Unwrap() error { return e.err }

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// unsaid is what a leaf advises and a document cannot follow, beside what it says instead: where a leaf takes 0 for "not set",
// the document leaves the key out, and a function is a list of matchers.
var unsaid = []string{
	"0 (the default), or ", "", "0 (the default) or ", "",
	"0 where SlowCall is off", "none without slow-call",
	"0 without MaxWait", "none without max-wait",
	"a function, as", "matchers, as",
	"breaker.NoLease", "0", "breaker.Off", "off", "Off", "off",
}

// kebab replaces the names of fields by those of keys, longer ones first.
func kebab(keys map[string]string) *strings.Replacer {
	fields := make([]string, 0, len(keys))
	for f := range keys {
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b string) int { return len(b) - len(a) })
	pairs := slices.Clone(unsaid)
	for _, f := range fields {
		pairs = append(pairs, f, keys[f])
	}
	return strings.NewReplacer(pairs...)
}
