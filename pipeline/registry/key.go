package registry

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

// key is one setting of a section: how it is read, and how what is in force is shown.
type key[S any] struct {
	name   string
	read   func(d *decoder, a at, s *S)
	show   func(s *S) string // "" = not set, and without effect
	null   bool              // null means something here; elsewhere it is "not set"
	fixed  bool              // a reload may not change it for an instance that is shared
	secret bool              // what stands there may hold a password
}

// entry is what every section knows of one instance as it was configured.
type entry struct {
	name string
	at   at
	set  map[string]at // the keys that were set
	bad  bool          // something in it is wrong: nothing is made of it

	unread bool // what is wrong is the value of a key
}

func (e *entry) has(key string) bool { _, ok := e.set[key]; return ok }

// place is where a key stands, or would.
func (e *entry) place(key string) at {
	if a, ok := e.set[key]; ok {
		return a
	}
	return at{path: join(e.at.path, key), node: absent}
}

// readKeys reads the settings of one entry.
func readKeys[S any](d *decoder, a at, keys []key[S], s *S, e *entry) {
	e.set = map[string]at{}
	d.pairs(a, func(name string, v at) {
		i := slices.IndexFunc(keys, func(k key[S]) bool { return k.name == name })
		if i < 0 {
			d.unknown(v, namesOf(keys))
			return
		}
		if v.null() && !keys[i].null {
			return
		}
		v.secret = v.secret || keys[i].secret
		e.set[name] = v
		problems := d.count()
		keys[i].read(d, v, s)
		e.unread = e.unread || d.count() > problems
	})
}

func namesOf[S any](keys []key[S]) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// The usual kinds of keys. field finds where the value goes.

func durationKey[S any](name string, s span, field func(*S) *time.Duration) key[S] {
	return key[S]{name: name,
		read: func(d *decoder, a at, to *S) {
			if v, ok := d.duration(a, s); ok {
				*field(to) = v
			}
		},
		show: func(s *S) string { return span2text(*field(s)) },
	}
}

// offDurationKey also takes off, which is -1 in the code.
func offDurationKey[S any](name string, field func(*S) *time.Duration) key[S] {
	k := durationKey(name, positive, field)
	read := k.read
	k.read = func(d *decoder, a at, to *S) {
		if a.is("off") {
			*field(to) = -1
			return
		}
		read(d, a, to)
	}
	return k
}

// zero shows what 0 means, where the code says it by 0.
func zero[S any](k key[S], word string) key[S] {
	show := k.show
	k.show = func(s *S) string {
		if text := show(s); text != "0s" && text != "0" {
			return text
		}
		return word
	}
	return k
}

// defaulting shows in words what happens where a key is not set, and there is no value to show.
func defaulting[S any](words string, k key[S]) key[S] {
	show := k.show
	k.show = func(s *S) string {
		return cmp.Or(show(s), words)
	}
	return k
}

func wholeKey[S any](name string, least, most int, field func(*S) *int) key[S] {
	return key[S]{name: name,
		read: func(d *decoder, a at, to *S) {
			if v, ok := d.whole(a, least, most); ok {
				*field(to) = v
			}
		},
		show: func(s *S) string { return number(*field(s)) },
	}
}

// worded is k that also takes a word, for a value that is -1 in the code.
func worded[S any, N int | float64](k key[S], word string, field func(*S) *N) key[S] {
	read, show := k.read, k.show
	k.read = func(d *decoder, a at, to *S) {
		if a.is(word) {
			*field(to) = -1
			return
		}
		read(d, a, to)
	}
	k.show = func(s *S) string {
		if *field(s) == -1 {
			return word
		}
		return show(s)
	}
	return k
}

func decimalKey[S any](name string, least, most float64, want string, field func(*S) *float64) key[S] {
	return key[S]{name: name,
		read: func(d *decoder, a at, to *S) {
			if v, ok := d.decimal(a, least, most, want); ok {
				*field(to) = v
			}
		},
		show: func(s *S) string { return float(*field(s)) },
	}
}

// rateKey is a share of calls, above 0 and at most 1.
func rateKey[S any](name string, field func(*S) *float64) key[S] {
	return decimalKey(name, math.SmallestNonzeroFloat64, 1, "a number above 0 and at most 1", field)
}

func boolKey[S any](name string, field func(*S) *bool) key[S] {
	return key[S]{name: name,
		read: func(d *decoder, a at, to *S) {
			if v, ok := d.boolean(a); ok {
				*field(to) = v
			}
		},
		show: func(s *S) string {
			if *field(s) {
				return "true"
			}
			return "false"
		},
	}
}

// nameKey refers to an instance of another section.
func nameKey[S any](name string, field func(*S) *string) key[S] {
	return key[S]{name: name,
		read: func(d *decoder, a at, to *S) {
			if v, ok := d.name(a); ok {
				*field(to) = v
			}
		},
		show: func(s *S) string { return *field(s) },
	}
}

// outages is in the order of leaf.Outage.
var outages = []string{"fail-local", "fail-open", "fail-closed"}

func outageKey[S any](field func(*S) *leaf.Outage) key[S] {
	return key[S]{name: "on-outage",
		read: func(d *decoder, a at, to *S) {
			if i, ok := d.word(a, outages...); ok {
				*field(to) = leaf.Outage(i)
			}
		},
		show: func(s *S) string { return outages[*field(s)] },
	}
}

func fixed[S any](k key[S]) key[S] {
	k.fixed = true
	return k
}
