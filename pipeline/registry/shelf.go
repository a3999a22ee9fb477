package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead/fairlead/leaf"
)

// kind is what the instances of one section have in common: S is one as it was configured, T what is made of it.
type kind[S, T any] struct {
	section string
	keys    []key[S]
	open    bool // without any entry, every name is served with defaults
	entry   func(*S) *entry
	needs   func(d *decoder, s *S) // the keys without which there is no instance; nil = none
	check   func(d *decoder, s *S) // what the keys mean together, and everything that New would find
	make    func(e *env, s *S) (T, error)
	update  func(e *env, item T, s *S) error
	fixed   func(was, s *S) (key string, want string) // what else a reload may not change; "" = nothing
	shared  func(*S) bool                             // nil = never
	inForce func(item T, s *S) S
	inspect func(item T) (leaf.Snapshot, bool)
	close   func(ctx context.Context, item T) error
}

// env is what instances are made with.
type env struct {
	*options
	store  *store
	budget func(name string) anyBudget
}

// shelf is the instances of one section. It is guarded by the registry's lock.
type shelf[S, T any] struct {
	*kind[S, T]
	now  map[string]*slot[S, T] // what Get finds
	ever map[string]*slot[S, T] // also what a reload has removed: one instance per name for the registry's life
	all  bool                   // no entries: every name is served
}

type slot[S, T any] struct {
	spec S
	item T
}

func newShelf[S, T any](k *kind[S, T]) *shelf[S, T] {
	return &shelf[S, T]{kind: k, ever: map[string]*slot[S, T]{}}
}

// plan is one section of a document that was found valid by itself, and its instances as a trial.
type plan[S, T any] struct {
	specs map[string]*S
	order []string // as in the document
	all   bool
	trial map[string]T
}

// blank is an entry without a single setting.
func (k *kind[S, T]) blank(path, name string) *S {
	s := new(S)
	*k.entry(s) = entry{name: name, at: at{path: join(path+"."+k.section, name), node: nothing}}
	return s
}

var nothing = scalar("!!null", "null")

// read decodes the section; a is nil where it is absent.
func (k *kind[S, T]) read(d *decoder, root string, a *at) *plan[S, T] {
	p := &plan[S, T]{specs: map[string]*S{}}
	if a != nil {
		d.pairs(*a, func(name string, v at) {
			if len(p.specs) == mostNames {
				return
			}
			s := k.blank(root, name)
			k.entry(s).at = v
			problems := d.count()
			readKeys(d, v, k.keys, s, k.entry(s))
			if k.needs != nil {
				k.needs(d, s)
			}
			if !k.entry(s).unread { // what a key means beside one that could not be read is not known
				k.check(d, s)
			}
			k.entry(s).bad = d.count() > problems
			p.specs[name], p.order = s, append(p.order, name)
		})
		if n := len(a.node.Content) / 2; n > mostNames {
			d.add(fmt.Errorf("%s has %d names: want at most %d", a.path, n, mostNames))
		}
	}
	p.all = k.open && len(p.specs) == 0
	return p
}

// refer says whether a name can be referred to; one that every name is served by is made.
func (k *kind[S, T]) refer(d *decoder, p *plan[S, T], root string, a at, name string) {
	if name == "" || p.specs[name] != nil {
		return
	}
	if p.all {
		p.specs[name] = k.blank(root, name)
		p.order = append(p.order, name)
		k.check(d, p.specs[name])
		return
	}
	d.named(a, missing(k.section, printable(veiled(name)), slices.Collect(maps.Keys(p.specs))))
}

// try makes every valid instance of p anew, to be thrown away unless it is the first of its name.
func (k *kind[S, T]) try(d *decoder, e *env, p *plan[S, T]) {
	p.trial = map[string]T{}
	for _, name := range p.order {
		spec := p.specs[name]
		if k.entry(spec).bad || k.shared != nil && k.shared(spec) && e.store.client == nil {
			continue
		}
		item, err := k.make(e, spec)
		if err != nil {
			d.named(k.entry(spec).at, err)
			continue
		}
		p.trial[name] = item
	}
}

// same finds what p would change of instances that are there, and must not.
func (s *shelf[S, T]) same(d *decoder, p *plan[S, T]) {
	for _, name := range p.order {
		if was := s.ever[name]; was != nil && in(p.trial, name) {
			s.compare(d, &was.spec, p.specs[name])
		}
	}
}

// compare finds what a reload may not change.
func (s *shelf[S, T]) compare(d *decoder, was, spec *S) {
	frozen := func(name, want string) {
		d.bad(s.entry(spec).place(name), "%s, as it is: a reload cannot change it, a restart can", want)
	}
	if s.fixed != nil {
		if name, want := s.fixed(was, spec); name != "" {
			frozen(name, want)
			return
		}
	}
	if s.shared == nil {
		return
	}
	if s.shared(was) != s.shared(spec) {
		frozen("shared", fmt.Sprint(s.shared(was)))
		return
	}
	for _, k := range s.keys {
		if k.fixed && s.shared(was) && k.show(was) != k.show(spec) {
			frozen(k.name, k.show(was))
		}
	}
}

// commit puts p in force.
func (s *shelf[S, T]) commit(e *env, p *plan[S, T], back *rollback) error {
	before, all := s.now, s.all
	back.add(func() { s.now, s.all = before, all })
	now := make(map[string]*slot[S, T], len(p.specs))
	for name, spec := range p.specs {
		here := s.ever[name]
		if here == nil {
			here = &slot[S, T]{item: p.trial[name]}
			s.ever[name] = here
			back.add(func() { delete(s.ever, name) })
		} else {
			was := here.spec
			back.add(func() {
				here.spec = was
				_ = s.update(e, here.item, &was)
			})
		}
		if err := s.update(e, here.item, spec); err != nil {
			return fmt.Errorf("%s: %w", s.entry(spec).at.path, err)
		}
		here.spec = *spec
		now[name] = here
	}
	if p.all && all { // what was served with defaults still is
		for name, here := range before {
			if now[name] == nil {
				now[name] = here
			}
		}
	}
	s.now, s.all = now, p.all
	return nil
}

// get is the instance of that name; ok is false where it would have to be made first (see serve).
func (s *shelf[S, T]) get(name string) (item T, ok bool, err error) {
	if here := s.now[name]; here != nil {
		return here.item, true, nil
	}
	if s.all && name != "" {
		return item, false, nil
	}
	return item, false, missing(s.section, shown(name), slices.Collect(maps.Keys(s.now)))
}

// serve makes the default instance of a section without entries.
func (s *shelf[S, T]) serve(e *env, root, name string) (item T, err error) {
	if item, ok, err := s.get(name); ok || err != nil {
		return item, err
	}
	if s.ever[name] == nil && len(s.ever) >= mostNames {
		return item, fmt.Errorf("no resilience [%s] instance named [%s]: %d names are served with defaults, and no more", s.section, shown(name), mostNames)
	}
	d := decoder{opts: e.options, store: e.store}
	spec := s.blank(root, name)
	s.check(&d, spec)
	here := s.ever[name]
	if here == nil {
		made, err := s.make(e, spec)
		if err != nil {
			return item, err
		}
		here = &slot[S, T]{item: made}
		s.ever[name] = here
	} else if s.compare(&d, &here.spec, spec); d.err() != nil {
		return item, d.err()
	} else if err := s.update(e, here.item, spec); err != nil {
		return item, err
	}
	here.spec = *spec
	s.now[name] = here
	return here.item, nil
}

// ends is how to close every instance that there ever was.
func (s *shelf[S, T]) ends() (all []func(context.Context) error) {
	for _, here := range s.ever {
		all = append(all, func(ctx context.Context) error { return s.close(ctx, here.item) })
	}
	return all
}
