package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// Journal remembers what guards tell their own hooks, and no pipeline's observer: a guard may serve many pipelines. Make it before
// the guards, give them its methods, and the console [WithJournal]. The zero Journal is ready to use, and safe for concurrent use.
//
// It holds the last 200 entries, of at most 300 bytes of text each; would-be refusals and stores' failures beyond one a second
// for each name are counted into the next entry, so that a flood does not wash away the changes. It tells 1000 names of circuits apart,
// and 1000 of stores and shadows, by their first 200 bytes; of more, it forgets the one that was not heard of for the longest time.
type Journal struct {
	mu    sync.Mutex
	ring  [journalKept]entry
	n     uint64 // entries so far
	heard recently[heard]
	quiet recently[repeated]
}

const (
	journalKept  = 200
	journalNames = 1000
)

// entry is one line of the journal.
type entry struct {
	N      uint64 `json:"n"`
	At     int64  `json:"at"`   // Unix milliseconds
	Kind   string `json:"kind"` // breaker, store, shadow, control
	Name   string `json:"name"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Text   string `json:"text,omitempty"`
	Before int    `json:"before,omitempty"` // how many of its kind were not written since the one before it
}

// heard is how the present or last trouble of a circuit began.
type heard struct {
	tripped time.Time
	trip    string
}

type repeated struct {
	last time.Time
	more int
}

// OnChange is for breaker.Config.OnChange.
func (j *Journal) OnChange(c breaker.Change) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.heard.at(clip(c.Name, longestName))
	if c.From == breaker.Closed && c.Reason != forced {
		h.tripped, h.trip = now, clip(c.Reason, longestText)
	}
	j.write(entry{Kind: "breaker", Name: c.Name, From: c.From.String(), To: c.To.String(), Text: c.Reason}, now)
}

// OnStore is for the OnStore of what is shared through a store: redisbreaker.Options.OnStore, registry.WithOnStore, …
func (j *Journal) OnStore(_ context.Context, e leaf.StoreEvent) {
	text := e.Kind
	if e.Op != "" {
		text += " to " + e.Op
	}
	if e.Err != nil {
		text = fmt.Sprintf("%s, %s: %s", text, e.Policy, textOf(e.Err, error.Error))
	}
	j.repeat(entry{Kind: "store", Name: e.Name, Text: text}, e.Kind)
}

// Shadow is a report for leaf.Shadow: what the shadowed guard of that name would have refused.
func (j *Journal) Shadow(name string) func(ctx context.Context, refusal error) {
	return func(_ context.Context, refusal error) {
		j.repeat(entry{Kind: "shadow", Name: name, Text: "would have refused: " + textOf(refusal, error.Error)}, "")
	}
}

// repeat writes at most one entry a second of each kind, name and what it is about.
func (j *Journal) repeat(e entry, about string) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	key := e.Kind + " " + clip(about, longestName) + " " + clip(e.Name, longestName)
	if oldest := j.quiet.oldest(); oldest != nil && j.quiet.known(key) == nil && now.Sub(oldest.last) < time.Second {
		key = e.Kind // a flood of names: those that find no place share one
	}
	r := j.quiet.at(key)
	if !r.last.IsZero() && now.Sub(r.last) < time.Second {
		r.more++
		return
	}
	e.Before, r.more, r.last = r.more, 0, now
	j.write(e, now)
}

// note writes what the console itself saw or did.
func (j *Journal) note(e entry, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(e, now)
}

// write holds mu.
func (j *Journal) write(e entry, now time.Time) {
	j.n++
	e.N, e.At = j.n, now.UnixMilli()
	e.Name, e.Text = clip(e.Name, longestName), clip(e.Text, longestText)
	j.ring[j.n%journalKept] = e
}

// last is what a circuit's own hook told of it.
func (j *Journal) last(name string) (h heard, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.heard.known(clip(name, longestName))
	if known == nil {
		return h, false
	}
	return *known, true
}

// after is the entries after n, oldest first, as far as they are still there.
func (j *Journal) after(n uint64) (entries []entry, last uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries = []entry{}
	first := n + 1
	if j.n > journalKept {
		first = max(first, j.n-journalKept+1)
	}
	for i := first; i <= j.n; i++ {
		entries = append(entries, j.ring[i%journalKept])
	}
	return entries, j.n
}
