package registry

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// mostErrors is how many problems of one document are told, and counted beyond.
const mostErrors = 100

// decoder collects every problem of a document.
type decoder struct {
	opts  *options
	store *store // of the document, read first
	errs  []error
	more  int
}

// bad adds "path is text: want …".
func (d *decoder) bad(a at, format string, args ...any) {
	d.add(fmt.Errorf("%s is %s: want %s", a.path, a.text(), fmt.Sprintf(format, args...)))
}

func (d *decoder) add(err error) {
	if len(d.errs) == mostErrors {
		d.more++
		return
	}
	d.errs = append(d.errs, err)
}

// count is how many problems there are.
func (d *decoder) count() int { return len(d.errs) + d.more }

// err joins what was found; nil if nothing was.
func (d *decoder) err() error {
	if d.more > 0 {
		return errors.Join(errors.Join(d.errs...), fmt.Errorf("and %d problems more", d.more))
	}
	return errors.Join(d.errs...)
}

// pairs is the entries of a mapping; nothing, and no problem, where it is null.
func (d *decoder) pairs(a at, each func(key string, v at)) {
	if a.null() {
		return
	}
	if a.node.Kind != yaml.MappingNode {
		d.bad(a, "a mapping")
		return
	}
	d.untagged(a)
	seen := map[string]bool{}
	for i := 0; i+1 < len(a.node.Content); i += 2 {
		k, v := deref(a.node.Content[i]), a.node.Content[i+1]
		if merging(k) {
			d.add(fmt.Errorf("%s has a merge key (<<): want its keys written out, or an alias for the whole", a.path))
			continue
		}
		if _, ok := (at{node: k}).plain(); !ok || k.Value == "" {
			d.add(fmt.Errorf("%s has the key %s: want a name", a.path, at{node: k, secret: a.secret}.text()))
			continue
		}
		if seen[k.Value] {
			d.add(fmt.Errorf("%s stands there twice: want it once", join(a.path, k.Value)))
			continue
		}
		seen[k.Value] = true
		each(k.Value, a.into(k.Value, v))
	}
}

// untagged adds the problem of a mapping or a list that has a tag.
func (d *decoder) untagged(a at) {
	switch {
	case !tagged(a.node):
	case a.secret:
		d.add(fmt.Errorf("%s has a tag: want none", a.path))
	default:
		d.add(fmt.Errorf("%s has the tag %s: want none", a.path, shorten(veiled(a.node.Tag))))
	}
}

// unknown is a key that means nothing here.
func (d *decoder) unknown(v at, known []string) {
	slices.Sort(known)
	d.add(fmt.Errorf("%s is no key of the registry; available: %s", v.path, strings.Join(known, ", ")))
}

// named adds the problem of a reference to what there is not.
func (d *decoder) named(a at, err error) { d.add(fmt.Errorf("%s: %w", a.path, err)) }

// missing is the error of a name, as it can be shown, without an instance.
func missing(section, name string, available []string) error {
	list := "(none)"
	if len(available) > 0 {
		slices.Sort(available)
		list = listed(available, 50)
	}
	return fmt.Errorf("no resilience [%s] instance named [%s]; available: %s", section, name, list)
}

// span is a range of durations: what a key takes besides the positive ones.
type span uint8

const (
	positive span = iota
	orZero        // 0 has a meaning of its own
)

func (d *decoder) duration(a at, s span) (time.Duration, bool) {
	text, ok := a.plain()
	if !ok || a.node.Tag == "!!bool" {
		d.bad(a, "a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds")
		return 0, false
	}
	v, err := parseDuration(text)
	if err != nil {
		d.bad(a, "%v", err)
		return 0, false
	}
	if v == 0 && s == positive {
		d.bad(a, "a positive duration")
		return 0, false
	}
	return v, true
}

// whole is a whole number in decimal digits.
func (d *decoder) whole(a at, least, most int) (int, bool) {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	if most == math.MaxInt {
		want = fmt.Sprintf("a whole number from %d", least)
	}
	text, ok := a.plain()
	n, err := strconv.Atoi(text)
	if !ok || err != nil || text[0] == '+' || text[0] == '-' || n < least || n > most {
		d.bad(a, "%s", want)
		return 0, false
	}
	if padded(text) {
		d.bad(a, "%s, %v", want, errPadded)
		return 0, false
	}
	return n, true
}

// rational is a decimal number, not negative, as exactly as it was written.
func (d *decoder) rational(a at, want string) (*big.Rat, bool) {
	text, ok := a.plain()
	number, rest := cutNumber(text)
	if !ok || number == "" || rest != "" || len(text) > longestText {
		d.bad(a, "%s", want)
		return nil, false
	}
	if padded(number) {
		d.bad(a, "%s, %v", want, errPadded)
		return nil, false
	}
	return new(big.Rat).SetString(number)
}

// decimal is a decimal number in a range.
func (d *decoder) decimal(a at, least, most float64, want string) (float64, bool) {
	r, ok := d.rational(a, want)
	if !ok {
		return 0, false
	}
	f, _ := r.Float64()
	if f < least || f > most {
		d.bad(a, "%s", want)
		return 0, false
	}
	return f, true
}

// boolean is true or false, written out: yes, on and 1 mean different things to different readers.
func (d *decoder) boolean(a at) (value, ok bool) {
	if text, plain := a.plain(); plain && a.node.Tag == "!!bool" {
		switch strings.ToLower(text) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	d.bad(a, "true or false")
	return false, false
}

// word is one of several.
func (d *decoder) word(a at, words ...string) (int, bool) {
	if text, ok := a.plain(); ok {
		if i := slices.Index(words, text); i >= 0 {
			return i, true
		}
	}
	d.bad(a, "%s", strings.Join(words, " or "))
	return 0, false
}

// is says that a word stands here where something else could stand too.
func (a at) is(word string) bool {
	text, ok := a.plain()
	return ok && text == word
}

// name is a reference.
func (d *decoder) name(a at) (string, bool) {
	text, ok := a.plain()
	if !ok || text == "" {
		d.bad(a, "the name of an instance")
		return "", false
	}
	return text, true
}
