package console

import (
	"slices"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// watched is one pipeline: what its events count, and what the sampler makes of it. Its size does not depend on how many there were.
type watched struct {
	id       int
	pipeline *pipeline.Pipeline
	cancel   func()
	tally    tally

	last     reading
	counted  counts
	window   window
	series   series
	starved  [recent]uint64 // retries that the budget refused, per second
	level    level
	since    time.Time
	readings [recent]reading // of the last seconds, for what is recent
	seconds  int             // so many there were
}

// shown is a pipeline as it is published: rows are replaced, never changed.
type shown struct {
	pipeline *pipeline.Pipeline
	layers   []seen
	row      row
	series   *series // under Console.mu
}

// sample takes one second. First it asks the pipelines, without a lock, since their guards' code runs; then it publishes.
func (c *Console) sample(now time.Time) {
	changed, failed := c.follow()
	list := make([]*watched, 0, len(c.watched))
	for _, w := range c.watched {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *watched) int { return a.id - b.id })

	looks := make([]rowLook, len(list))
	for i, w := range list {
		l := &looks[i]
		var known limits
		l.layers, known, l.failed = look(w.pipeline)
		l.name = clip(w.pipeline.Name(), longestName)
		w.tally.limits.Store(&known)
		w.tally.errors.refill()
	}
	share(looks)
	c.trackAll(looks, now)

	c.mu.Lock()
	defer c.mu.Unlock()
	rows := make([]*shown, len(list))
	for i, w := range list {
		rows[i] = &shown{pipeline: w.pipeline, layers: looks[i].layers, row: w.take(&looks[i], now), series: &w.series}
	}
	c.seq++
	if changed {
		c.changed = c.seq
	}
	c.at, c.rows, c.failed = now, rows, failed
	close(c.wake)
	c.wake = make(chan struct{})
}

// rowLook is a pipeline as it was read.
type rowLook struct {
	name   string
	layers []seen
	failed string
}

// follow subscribes to pipelines that have come, and leaves those that have gone.
func (c *Console) follow() (changed bool, failed string) {
	var list []*pipeline.Pipeline
	if failed = guarded(func() { list = c.source.Pipelines() }); failed != "" {
		return false, "the source's Pipelines: " + failed
	}
	here := make(map[*pipeline.Pipeline]bool, len(list))
	for _, p := range list {
		if p == nil {
			continue
		}
		here[p] = true
		if c.watched[p] != nil {
			continue
		}
		c.nextID++
		w := &watched{id: c.nextID, pipeline: p, level: idle, since: time.Now()}
		w.tally.text = c.text
		w.tally.errors.refill()
		w.cancel = p.Subscribe(w.tally.observe)
		c.watched[p] = w
		changed = true
	}
	for p, w := range c.watched {
		if !here[p] {
			w.cancel()
			delete(c.watched, p)
			changed = true
		}
	}
	return changed, ""
}

// share finds the instances that several pipelines have.
func share(looks []rowLook) {
	users := map[any][]int{}
	for i := range looks {
		for _, s := range looks[i].layers {
			if s.item != nil && !slices.Contains(users[s.item], i) {
				users[s.item] = append(users[s.item], i)
			}
		}
	}
	for i := range looks {
		for n := range looks[i].layers {
			s := &looks[i].layers[n]
			for _, other := range users[s.item] {
				if other != i && s.item != nil && len(s.Sharers) < mostSharers {
					s.Sharers = append(s.Sharers, looks[other].name)
				}
			}
		}
	}
}

// trackAll follows each circuit once, however many pipelines share it, and forgets those that have gone.
func (c *Console) trackAll(looks []rowLook, now time.Time) {
	for _, t := range c.tracks {
		t.here = false
	}
	for i := range looks {
		for n := range looks[i].layers {
			s := &looks[i].layers[n]
			if s.snapshot == nil || s.item == nil {
				continue
			}
			t := c.tracks[s.item]
			first := t == nil
			if first {
				c.tracked++
				t = &track{id: c.tracked, name: s.snapshot.Name}
				c.tracks[s.item] = t
			}
			if !t.here {
				t.here = true
				t.follow(s.snapshot, now, first, c.journal)
			}
			s.Breaker = t.circuit(s.snapshot, s.config)
		}
	}
	for item, t := range c.tracks {
		if !t.here {
			delete(c.tracks, item)
		}
	}
}

// take ends the second of one pipeline.
func (w *watched) take(l *rowLook, now time.Time) row {
	r := w.tally.read()
	last := r.totals().minus(w.last.totals())
	w.window.push(w.tally.latencies.since(&w.counted))
	slot := w.seconds % recent
	w.starved[slot] = r.stopped[retry.RetryBudgetExhausted] - w.last.stopped[retry.RetryBudgetExhausted]
	before := w.readings[slot] // ten seconds ago; zero at first, when nothing was counted either
	w.readings[slot] = r
	w.last = r
	w.seconds++

	inFlight := r.started - min(r.finished, r.started)
	s := second{
		calls: uint32(last.Calls), failed: uint32(last.Failed), refused: uint32(last.Refused), retries: uint32(last.Retries),
		inFlight: uint32(inFlight),
	}
	latency := []number{nan, nan, nan}
	var p50, p95, p99 time.Duration
	if w.window.percentiles(&p50, &p95, &p99) {
		s.p50, s.p95, s.p99 = inSeconds(p50), inSeconds(p95), inSeconds(p99)
		latency = []number{number(p50.Seconds()), number(p95.Seconds()), number(p99.Seconds())}
	}
	w.series.push(s)

	out := row{
		ID: w.id, Name: l.name, InFlight: inFlight, Totals: r.totals(), Last: last, Recent: r.totals().minus(before.totals()),
		Latency: latency, Stops: r.stops(), Errors: w.tally.errors.latest(), Layers: layersOf(l.layers, &r),
	}
	var starved uint64
	for _, n := range w.starved {
		starved += n
	}
	out.judge(w.series.sum(0, recent), w.series.sum(3*recent, recent), refusers(&r, &before), starved, w.series.sum(0, sparked).calls == 0 && inFlight == 0)
	if l.failed != "" {
		out.Level, out.Why = warn, append(out.Why, "its layers cannot be looked at: "+l.failed)
	}
	if out.Level != w.level {
		w.level, w.since = out.Level, now
	}
	out.LevelSince = w.since.UnixMilli()
	return out
}

// layersOf puts the counters to the layers. What went through a layer is what reached any layer further in: attempts that ran,
// and those that were refused deeper down.
func layersOf(all []seen, r *reading) []layer {
	out := make([]layer, len(all))
	extra, inRetry := 0, false
	for i := range all {
		out[i] = all[i].layer
		if out[i].Kind == "guard" {
			extra++
		}
		if out[i].Kind == "breaker" && !inRetry {
			out[i].Per = perOf(all[i:])
		}
		inRetry = inRetry || out[i].Kind == "retry"
	}
	deeper, counted := uint64(0), false
	for i := len(out) - 1; i >= 0; i-- {
		l := &out[i]
		kind := kindOf(l.Kind)
		l.Admitted = r.attempts + deeper
		switch {
		case l.Kind == "attempt-timeout":
			l.Fired = r.attemptTimedOut
			continue
		case l.Kind == "timeout":
			l.Admitted, l.Fired = r.finished, r.timedOut
			continue
		case kind == otherKind: // the retry, which sees calls
			l.Admitted = r.finished
			continue
		}
		l.Refused = r.rejected[kind]
		if l.Per == "call" {
			l.Admitted = r.finished - min(r.finished, l.Refused)
			continue
		}
		if kind == extraKind {
			l.Together = extra > 1
			if counted {
				continue
			}
			counted = true
		}
		deeper += l.Refused
	}
	return out
}

// perOf says whether the breaker that rest begins with is asked per call: it then has the retry inside it.
func perOf(rest []seen) string {
	for i := range rest {
		if rest[i].Kind == "retry" {
			return "call"
		}
	}
	return "attempt"
}
