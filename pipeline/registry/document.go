package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"go.yaml.in/yaml/v3"
)

// rootKey is the one key of a file that is read.
const rootKey = "resilience"

// document is everything that a file says, found valid as far as it can be without making anything.
type document struct {
	root      string
	enabled   bool
	store     *store
	retries   *plan[retrySpec, *retry.Retry]
	budgets   *plan[budgetSpec, anyBudget]
	breakers  *plan[breakerSpec, circuit]
	limits    *plan[limitSpec, limiter]
	bulkheads *plan[slotsSpec, slots]
	timeouts  *plan[timeoutSpec, *timeout.Timeout]
	cooldowns *plan[cooldownSpec, cooling]
	pipelines map[string]*pipelineSpec
	order     []string // of the pipelines
}

var sections = []string{
	"enabled", "store", retryKind.section, budgetKind.section, breakerKind.section, limitKind.section, slotsKind.section,
	timeoutKind.section, cooldownKind.section, "pipelines",
}

// readDocument decodes the whole of it; what is wrong is in d.
func readDocument(d *decoder, node *yaml.Node) *document {
	doc := &document{root: rootKey, enabled: true, store: newStore(rootKey), pipelines: map[string]*pipelineSpec{}}
	d.store = doc.store
	found := map[string]*at{}
	if a, ok := findRoot(d, node); ok {
		d.pairs(a, func(name string, v at) {
			if !slices.Contains(sections, name) {
				d.unknown(v, slices.Clone(sections))
				return
			}
			found[name] = &v
		})
	}
	if a := found["enabled"]; a != nil && !a.null() {
		if v, ok := d.boolean(*a); ok {
			doc.enabled = v
		}
	}
	if a := found["store"]; a != nil {
		a.secret = true
		doc.store.at = *a
		readKeys(d, *a, storeKeys, doc.store, &doc.store.entry)
	}
	doc.budgets = budgetKind.read(d, doc.root, found[budgetKind.section])
	doc.retries = retryKind.read(d, doc.root, found[retryKind.section])
	doc.breakers = breakerKind.read(d, doc.root, found[breakerKind.section])
	doc.limits = limitKind.read(d, doc.root, found[limitKind.section])
	doc.bulkheads = slotsKind.read(d, doc.root, found[slotsKind.section])
	doc.timeouts = timeoutKind.read(d, doc.root, found[timeoutKind.section])
	doc.cooldowns = cooldownKind.read(d, doc.root, found[cooldownKind.section])
	for _, name := range doc.retries.order {
		if s := doc.retries.specs[name]; s.budget != noBudget {
			budgetKind.refer(d, doc.budgets, doc.root, s.place("budget"), s.budget)
		}
	}
	if a := found["pipelines"]; a != nil {
		doc.readPipelines(d, *a)
	}
	return doc
}

// findRoot is the mapping under the root key. An empty document has none, and is one without any entry.
func findRoot(d *decoder, node *yaml.Node) (a at, ok bool) {
	if node == nil {
		return a, false
	}
	doc := at{path: "the document", node: deref(node)}
	d.untagged(doc)
	if doc.null() {
		return a, false
	}
	if doc.node.Kind != yaml.MappingNode {
		d.bad(doc, "a mapping with the key %s", rootKey)
		return a, false
	}
	var others []string
	for i := 0; i+1 < len(doc.node.Content); i += 2 {
		key := deref(doc.node.Content[i])
		switch {
		case key.Value != rootKey || key.Kind != yaml.ScalarNode || tagged(key):
			others = append(others, at{node: key}.text())
		case ok:
			d.add(fmt.Errorf("%s stands there twice: want it once", rootKey))
		default:
			a, ok = at{path: rootKey, node: deref(doc.node.Content[i+1])}, true
		}
	}
	if !ok && len(others) > 0 {
		slices.Sort(others)
		d.add(fmt.Errorf("the document has no key %s; it has: %s", rootKey, joined(others[:min(len(others), 20)], len(others)-20)))
	}
	return a, ok
}

// shares says whether any instance of the document lives in the store.
func (doc *document) shares() bool {
	for _, s := range doc.breakers.specs {
		if s.shared {
			return true
		}
	}
	for _, s := range doc.limits.specs {
		if s.shared {
			return true
		}
	}
	for _, s := range doc.bulkheads.specs {
		if s.shared {
			return true
		}
	}
	for _, s := range doc.cooldowns.specs {
		if s.shared {
			return true
		}
	}
	return false
}

// apply puts a document in force, or changes nothing; text is what it was read from, nil where that was no text. It is called by one goroutine at a time.
func (r *Registry) apply(node *yaml.Node, text *digest) (err error) {
	d := decoder{opts: &r.options}
	doc := readDocument(&d, node)
	r.mu.RLock()
	opened := r.chooseStore(&d, doc)
	r.mu.RUnlock()
	inForce := false
	defer func() { // also where the program's own code, which a pipeline is made with, panics
		if opened && !inForce {
			err = errors.Join(err, doc.store.end())
		}
	}()
	trial := env{&r.options, doc.store, func(n string) anyBudget { return doc.budgets.trial[n] }}
	r.budgets.try(&d, &trial, doc.budgets)
	r.retries.try(&d, &trial, doc.retries)
	r.breakers.try(&d, &trial, doc.breakers)
	r.limits.try(&d, &trial, doc.limits)
	r.bulkheads.try(&d, &trial, doc.bulkheads)
	r.timeouts.try(&d, &trial, doc.timeouts)
	r.cooldowns.try(&d, &trial, doc.cooldowns)
	doc.try(&d)
	err = r.commit(&d, doc, text)
	inForce = err == nil
	return err
}

// chooseStore gives the document its client where it needs one, and says whether that was made now. Instances that are shared
// keep the one they have.
func (r *Registry) chooseStore(d *decoder, doc *document) (opened bool) {
	if r.store == nil || r.store.client == nil {
		if !doc.shares() {
			return false
		}
		if err := doc.store.open(&r.options); err != nil && !doc.store.has("redis") {
			d.add(err)
		}
		return true
	}
	if !doc.shares() { // kept for who holds a shared instance, and for the day one comes back
		kept := *r.store
		doc.store = &kept
		return false
	}
	doc.store.same(d, r.store)
	doc.store.client, doc.store.owned = r.store.client, r.store.owned
	return false
}

// commit changes what is there, unless d has a problem or finds one. Everything in it was tried before; should it fail all the
// same, it is undone.
func (r *Registry) commit(d *decoder, doc *document, text *digest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	// Only now, since a Get may have served a name with defaults while the trial was made.
	r.budgets.same(d, doc.budgets)
	r.retries.same(d, doc.retries)
	r.breakers.same(d, doc.breakers)
	r.limits.same(d, doc.limits)
	r.bulkheads.same(d, doc.bulkheads)
	r.timeouts.same(d, doc.timeouts)
	r.cooldowns.same(d, doc.cooldowns)
	if err := d.err(); err != nil {
		return err
	}
	if err := r.switching(doc.enabled, func() error { return r.change(doc) }); err != nil {
		return err
	}
	r.text = text
	return nil
}

// switching does what changes the registry so that no call meets half of it: off comes before everything else and on after it,
// so that what changes between the two is seen by nobody. Where do fails, the switch goes back, after the rest.
func (r *Registry) switching(on bool, do func() error) error {
	end := r.on.On()
	defer func() { r.on.Set(end) }()
	if !on {
		r.on.Set(false)
	}
	err := do()
	if err == nil {
		end = on
	}
	return err
}

// change puts the document's parts in force, or none of them.
func (r *Registry) change(doc *document) error {
	var undone []*rollback
	done := false
	defer func() {
		if !done {
			for _, back := range undone { // in this order: what an instance was may need what others were
				back.undo()
			}
		}
	}()
	was := r.store
	undone = append(undone, &rollback{func() { r.store = was }})
	r.store = doc.store
	e := r.env()
	for _, commit := range []func(*rollback) error{
		func(back *rollback) error { return r.budgets.commit(e, doc.budgets, back) },
		func(back *rollback) error { return r.retries.commit(e, doc.retries, back) },
		func(back *rollback) error { return r.breakers.commit(e, doc.breakers, back) },
		func(back *rollback) error { return r.limits.commit(e, doc.limits, back) },
		func(back *rollback) error { return r.bulkheads.commit(e, doc.bulkheads, back) },
		func(back *rollback) error { return r.timeouts.commit(e, doc.timeouts, back) },
		func(back *rollback) error { return r.cooldowns.commit(e, doc.cooldowns, back) },
		func(back *rollback) error { return r.commitPipelines(doc, back) },
	} {
		back := new(rollback)
		undone = append(undone, back)
		if err := commit(back); err != nil {
			return err
		}
	}
	done = true
	return nil
}
