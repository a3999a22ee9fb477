package registry

import (
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// handle is one pipeline for the registry's life. It goes by the registry's switch from the day it is made, also when a reload
// has removed it: who holds it must not find half of the registry on.
type handle struct {
	spec     pipelineSpec
	pipeline *pipeline.Pipeline
	full     pipeline.Builder // what it is while the registry is switched on
}

// commitPipelines puts the document's pipelines in force, on instances that are in force already. One that a reload removed is
// left as it is: what its parts have become need not fit what it was, and must not keep a document from coming into force.
func (r *Registry) commitPipelines(doc *document, back *rollback) error {
	from := layers{
		timeout:  func(n string) *timeout.Timeout { return r.timeouts.now[n].item },
		retry:    func(n string) *retry.Retry { return r.retries.now[n].item },
		cooldown: func(n string) leaf.Guard { return r.cooldowns.now[n].item },
		breaker:  func(n string) leaf.Guard { return r.breakers.now[n].item },
		limit:    func(n string) leaf.Guard { return r.limits.now[n].item },
		bulkhead: func(n string) leaf.Guard { return r.bulkheads.now[n].item },
	}
	next := map[string]handle{}
	for name, s := range doc.pipelines { // all are found to be in order before one of them changes
		full, err := s.builder(&r.options, from)
		if err != nil {
			return err
		}
		full = full.SwitchedBy(r.on)
		p, err := full.Build()
		if err != nil {
			return err
		}
		next[name] = handle{*s, p, full}
	}
	before, now := r.pipelines, map[string]*handle{}
	back.add(func() { r.pipelines = before })
	for name, to := range next {
		h := r.everPipeline[name]
		if h == nil {
			h = &to
			r.everPipeline[name] = h
			back.add(func() { delete(r.everPipeline, name) })
		} else if err := h.become(&to, back); err != nil {
			return err
		}
		now[name] = h
	}
	r.pipelines = now
	return nil
}

// become changes a pipeline that there is.
func (h *handle) become(to *handle, back *rollback) error {
	was := *h
	back.add(func() {
		*h = was
		_ = h.pipeline.Update(was.full)
	})
	h.spec, h.full = to.spec, to.full
	return h.pipeline.Update(to.full)
}
