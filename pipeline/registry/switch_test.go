package registry

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/pipeline"
)

// switched is a document of pipelines, each of whose calls says by its deadline which document it goes by: n hours.
func switched(on bool, hours int, names ...string) string {
	var pipes []string
	for _, name := range names {
		pipes = append(pipes, fmt.Sprintf("%s: {timeout: %dh, bulkhead: db}", name, hours))
	}
	return fmt.Sprintf("resilience: {enabled: %v, bulkhead: {db: {max-concurrent: %d}}, cooldown: {c: {max: %ds}}, time-limiter: {t: {timeout: %ds}}, pipelines: {%s}}",
		on, 1000+hours, 1+hours, 1+hours, strings.Join(pipes, ", "))
}

func named20() (names []string) {
	for n := range 20 {
		names = append(names, fmt.Sprintf("p%d", n))
	}
	return names
}

// documentOf is the one that a call goes by, in hours; 0 = it is a plain call. within runs inside of the call.
func documentOf(ctx context.Context, p *pipeline.Pipeline, within func(ctx context.Context, hours int)) int {
	hours := -1
	_ = p.Run(context.WithoutCancel(ctx), func(ctx context.Context) error {
		hours = 0
		if at, limited := ctx.Deadline(); limited {
			hours = int(time.Until(at).Round(time.Hour) / time.Hour)
		}
		if within != nil {
			within(ctx, hours)
		}
		return nil
	})
	return hours
}

// 100 goroutines call 20 pipelines inside each other during 1,000 switches, each of which changes everything else, too. What
// one of them sees, call by call, is one history: that of the documents, each whole and in force for all pipelines at once, in
// their order, none that was replaced when it began, and none that was not there yet when it ended. Document n is on where n
// is even, and gives every pipeline n+1 hours.
func TestAtEveryInstantAllPipelinesAnswerAlike(t *testing.T) {
	const switches = 1000
	names := named20()
	r := loaded(t, switched(true, 1, names...))
	var all []*pipeline.Pipeline
	for _, name := range names {
		all = append(all, r.MustPipeline(name))
	}
	const gone = 18 // and above: removed by every second pair of documents
	var begun, ended, calls, on, off atomic.Int64
	var done atomic.Bool
	var wrong sync.Map
	var callers sync.WaitGroup
	for seed := range 100 {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(seed), 5))
			for !done.Load() {
				at := ended.Load() // the document, as far as this goroutine knows
				var call func(ctx context.Context, depth int)
				call = func(ctx context.Context, depth int) {
					which := rnd.IntN(len(all))
					documentOf(ctx, all[which], func(ctx context.Context, hours int) {
						switch n := int64(hours - 1); {
						case hours == 0:
							at += 1 - at%2 // the next that is off, unless this one is
							off.Add(1)
						case which >= gone: // it may have been removed, and keep the limits of then
							at += at % 2
							on.Add(1)
						case n%2 == 1 || n < at:
							wrong.Store(fmt.Sprintf("document %d after %d, on", n, at), true)
						default:
							at = n
							on.Add(1)
						}
						if last := begun.Load(); at > last {
							wrong.Store(fmt.Sprintf("document %d before its time: %d", at, last), true)
						}
						if depth < 3 {
							call(ctx, depth+1)
						}
					})
				}
				call(bg, 1)
				calls.Add(1)
				runtime.Gosched()
			}
		})
	}
	for n := 1; n <= switches; n++ {
		there := names
		if n%4 >= 2 {
			there = names[:gone]
		}
		begun.Store(int64(n))
		require.NoError(t, r.Reload(strings.NewReader(switched(n%2 == 0, n+1, there...))))
		ended.Store(int64(n))
	}
	for had := calls.Load(); calls.Load() < had+100; {
		runtime.Gosched()
	}
	done.Store(true)
	callers.Wait()
	wrong.Range(func(what, _ any) bool { t.Error(what); return true })
	assert.Positive(t, on.Load())
	assert.Positive(t, off.Load())
	assert.Zero(t, r.MustBulkhead("db").(*bulkhead.Bulkhead).InUse())
}

// lookout is a guard that admits everybody. Who puts it into a pipeline asks it for its clock, and that is when it looks.
type lookout struct{ look func() }

func (lookout) Acquire(context.Context) (leaf.Permit, error) { return leaf.Permit{}, nil }
func (l lookout) Clock() (clockwork.Clock, bool)             { l.look(); return nil, false }

// spied looks before each change of an instance.
func spied[S, T any](s *shelf[S, T], look func()) {
	k := *s.kind
	change := k.update
	k.update = func(e *env, item T, spec *S) error { look(); return change(e, item, spec) }
	s.kind = &k
}

// observed is a registry that calls look at every step of a reload.
func observed(t *testing.T, text string) (r *Registry, from func(look func())) {
	look := func() {}
	add := func(_ string, b pipeline.Builder) pipeline.Builder { return b.With(lookout{func() { look() }}) }
	r = loaded(t, text, WithPipeline(add))
	spied(r.bulkheads, func() { look() })
	spied(r.timeouts, func() { look() })
	spied(r.cooldowns, func() { look() })
	return r, func(f func()) { look = f }
}

// Off comes before everything else of a document, on after it: what a reload changes in between is seen by nobody.
func TestNoStepOfAReloadShowsAMixture(t *testing.T) {
	names := named20()
	for _, c := range []struct {
		was, is bool
		want    string // what is seen, step by step, and at the end
	}{{true, false, "old, off"}, {false, true, "off, new"}, {false, false, "off"}} {
		t.Run(fmt.Sprintf("%v to %v", c.was, c.is), func(t *testing.T) {
			r, from := observed(t, switched(true, 1, names...))
			var all []*pipeline.Pipeline
			for _, name := range names {
				all = append(all, r.MustPipeline(name))
			}
			reload(t, r, switched(c.was, 1, names[2:]...)) // two that were removed before
			slots := r.bulkheads.now["db"].item
			var seen []string
			steps := 0
			look := func() {
				steps++
				for i, p := range all {
					state := map[int]string{0: "off", 1: "old", 2: "new"}[documentOf(bg, p, nil)]
					if i < 4 && state == "old" && c.is && !c.was {
						state = "new" // a removed one keeps what it was
					}
					if len(seen) == 0 || seen[len(seen)-1] != state {
						seen = append(seen, state)
					}
					if state == "old" {
						assert.Equal(t, 1001, slots.Config().MaxConcurrent, "the old pipelines are on the old limits")
					}
				}
			}
			from(look)
			reload(t, r, switched(c.is, 2, append(names[4:], "added")...)) // and two that are removed by this one
			from(func() {})
			all = append(all, r.MustPipeline("added"))
			look()
			assert.Equal(t, c.want, strings.Join(seen, ", "))
			assert.Greater(t, steps, 2*len(names))
			assert.Equal(t, c.is, r.Describe().Enabled)
		})
	}
}

// What fails after its first changes leaves the switch as it was, however it fails.
func TestACommitThatFailsFlipsNothing(t *testing.T) {
	for _, was := range []bool{true, false} {
		for how, fail := range map[string]func() error{
			"an error": func() error { return errDown },
			"a panic":  func() error { panic(errDown) },
			"Goexit":   func() error { runtime.Goexit(); return nil },
		} {
			t.Run(fmt.Sprintf("%s from %v", how, was), func(t *testing.T) {
				r := loaded(t, switched(was, 1, named20()...))
				p, before := r.MustPipeline("p7"), r.Describe()
				broken := *r.cooldowns.kind
				broken.update = func(e *env, c cooling, s *cooldownSpec) error {
					if s.cfg.Max > 2*time.Second {
						return fail()
					}
					return cooldownKind.update(e, c, s)
				}
				r.cooldowns.kind = &broken
				failed := make(chan any)
				go func() {
					defer close(failed)
					defer func() { failed <- recover() }()
					if err := r.Reload(strings.NewReader(switched(!was, 2, "p7", "added"))); err != nil {
						panic(err)
					}
				}()
				if said := <-failed; how == "Goexit" {
					assert.Nil(t, said)
				} else {
					assert.ErrorIs(t, said.(error), errDown)
				}
				<-failed
				assert.Equal(t, before, r.Describe())
				assert.Equal(t, was, documentOf(bg, p, nil) == 1)
				assert.Error(t, second(r.Pipeline("added")))
				assert.Len(t, r.everPipeline, 20)
				r.cooldowns.kind = cooldownKind
				reload(t, r, switched(!was, 2, "p7"))
				assert.Equal(t, !was, documentOf(bg, p, nil) == 2)
			})
		}
	}
}

// A document that is refused does not touch the switch for an instant.
func TestAnInvalidDocumentFlipsNothing(t *testing.T) {
	r, from := observed(t, switched(true, 1, "p"))
	p := r.MustPipeline("p")
	from(func() { assert.Equal(t, 1, documentOf(bg, p, nil)) })
	require.Error(t, r.Reload(strings.NewReader(strings.Replace(switched(false, 2, "p", "q"), "cooldown: {", "cooldown: {z: {max: 0}, ", 1))))
	assert.Equal(t, 1, documentOf(bg, p, nil))
	assert.True(t, r.Describe().Enabled)
}

// A name that comes while the registry is off is there at once, as a plain call, and what it is configured to be from when it
// is on; so is one that goes and comes back meanwhile.
func TestNamesThatComeAndGoWhileTheRegistryIsOff(t *testing.T) {
	r := loaded(t, switched(false, 1, "first"))
	first := r.MustPipeline("first")
	assert.Equal(t, "first: fn", first.String())
	assert.Equal(t, 0, documentOf(bg, first, nil))
	reload(t, r, switched(false, 2, "added"))
	added := r.MustPipeline("added")
	assert.Equal(t, 0, documentOf(bg, added, nil))
	reload(t, r, switched(true, 3, "added"))
	assert.Equal(t, []int{1, 3}, []int{documentOf(bg, first, nil), documentOf(bg, added, nil)}, "a removed one keeps what it was")
	reload(t, r, switched(false, 4, "first"))
	assert.Equal(t, []int{0, 0}, []int{documentOf(bg, first, nil), documentOf(bg, added, nil)})
	reload(t, r, switched(true, 5, "first", "added"))
	assert.Equal(t, []int{5, 5}, []int{documentOf(bg, first, nil), documentOf(bg, added, nil)})
	assert.Same(t, first, r.MustPipeline("first"))
	assert.Equal(t, `first: timeout "first" 5h0m0s > bulkhead "db" > fn`, first.String())
}

// What a program makes of a pipeline itself goes by the switch, too.
func TestAPipelineThatTheProgramUpdatesStillGoesByTheSwitch(t *testing.T) {
	r := loaded(t, switched(false, 1, "p", "gone"))
	p := r.MustPipeline("gone")
	reload(t, r, switched(false, 1, "p"))
	require.NoError(t, p.Update(pipeline.For("gone").Timeout(r.MustTimeout("t"))))
	assert.Equal(t, "gone: fn", p.String())
	reload(t, r, switched(true, 1, "p"))
	assert.Equal(t, `gone: timeout "t" 2s > fn`, p.String())
}
