package registry

import (
	"maps"
	"slices"

	"github.com/fairlead/fairlead/pipeline"
)

// Pipelines is the pipelines that there are now, by name: what a console shows.
func (r *Registry) Pipelines() []*pipeline.Pipeline {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*pipeline.Pipeline, 0, len(r.pipelines))
	for _, name := range slices.Sorted(maps.Keys(r.pipelines)) {
		all = append(all, r.pipelines[name].pipeline)
	}
	return all
}

// EachSetting is [Registry.Describe]'s settings one by one, in its order, until yield returns false, for who would rather not
// know this package. The store's section is "store", and its name "".
func (r *Registry) EachSetting(yield func(section, name, key, value string, byDefault bool) bool) {
	d := r.Describe()
	for _, s := range d.Store {
		if !yield("store", "", s.Key, s.Value, s.Default) {
			return
		}
	}
	for _, i := range d.Instances {
		for _, s := range i.Settings {
			if !yield(i.Section, i.Name, s.Key, s.Value, s.Default) {
				return
			}
		}
	}
}
