package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/pipeline"
)

// Two peers start goroutines that nothing ends: hystrix two per command, eapache's breaker one per opening.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/afex/hystrix-go/hystrix.(*metricExchange).Monitor"),
		goleak.IgnoreAnyFunction("github.com/afex/hystrix-go/hystrix.(*poolMetrics).Monitor"),
		goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"))
}

// group.check is asked in every round: how often fn ran, whose results came back, and with which refusal. So a run that ends
// without an error shows that everybody retried twice, refused what is open, full or spent, and ran nothing then.
func TestEveryContenderDoesTheWork(t *testing.T) {
	o := options{each: 50 * time.Microsecond, rounds: 1, calls: 20, only: func(string) bool { return true }}
	r, err := o.everything(groups(), io.Discard)
	require.NoError(t, err)
	text := r.markdown()
	for _, g := range groups() {
		for _, width := range g.widths {
			for _, c := range g.by {
				cell := r.cell(g.name, c.name, width)
				require.NotNil(t, cell, "%s: %s", g.name, c.name)
				assert.Positive(t, cell.median(), "%s: %s", g.name, c.name)
				assert.Contains(t, text, "| "+c.name+" | ")
			}
		}
	}
	for _, i := range instances {
		assert.Positive(t, r.heap[i.name], i.name)
	}
	assert.NotContains(t, text, "NaN")
	assert.NotContains(t, text, "Inf")
	assert.NotContains(t, text, "not measured in this run")
}

func TestWhoDoesNotDoTheWorkIsFoundOut(t *testing.T) {
	err := errors.New("no")
	cheat := func(call func(j *job) (int, error)) work {
		return work{refusal: err, run: func(n int, j *job) {
			for range n {
				j.ended(call(j))
			}
		}}
	}
	ctx := context.Background()
	for name, c := range map[string]struct {
		group
		work
	}{
		"never runs fn":       {group{}, cheat(func(*job) (int, error) { return 1, nil })},
		"runs it twice":       {group{}, cheat(func(j *job) (int, error) { _, _ = j.fn(ctx); return j.fn(ctx) })},
		"loses the result":    {group{}, cheat(func(j *job) (int, error) { _, err := j.fn(ctx); return 0, err })},
		"does not retry":      {group{fails: 2}, cheat(func(j *job) (int, error) { return j.fn(ctx) })},
		"has no timeout":      {group{asks: true}, cheat(func(j *job) (int, error) { return j.fn(ctx) })},
		"refuses nobody":      {group{refuse: true}, cheat(func(j *job) (int, error) { return j.fn(ctx) })},
		"refuses as another":  {group{refuse: true}, cheat(func(*job) (int, error) { return 0, errDown })},
		"refuses what it ran": {group{refuse: true}, cheat(func(j *job) (int, error) { _, _ = j.fn(ctx); return 0, err })},
		"refuses everybody":   {group{}, cheat(func(*job) (int, error) { return 0, err })},
	} {
		t.Run(name, func(t *testing.T) {
			c.by = []contender{{name: "it", begin: func() work { return c.work }}}
			_, err := options{each: time.Microsecond, rounds: 1, calls: 1}.measure(c.group, 1)
			require.Error(t, err)
		})
	}
}

func TestAllocationsAreThoseOfACall(t *testing.T) {
	var kept any
	w := work{run: func(n int, j *job) {
		kept = make([]byte, 1<<20) // what a run costs once does not count
		for range n {
			kept = make([]byte, 64)
			kept = make([]byte, 32)
			j.ended(j.fn(context.Background()))
		}
	}}
	count, bytes, err := allocations(group{}, w, 1000)
	require.NoError(t, err)
	require.NotNil(t, kept)
	assert.InDelta(t, 4, count, 0.1, "two slices and their two headers")
	assert.InDelta(t, 64+32+24+24, bytes, 2)
}

// What is compared as "observed" tells its observer of a call's start, its attempt and its end.
func TestTheObservedPipelineTellsThreeEvents(t *testing.T) {
	var told []pipeline.Kind
	p, _ := fairleadPipeline(shape{observe: func(_ context.Context, e pipeline.Event) { told = append(told, e.Kind) }})
	_, err := pipeline.Do(t.Context(), p, func(context.Context) (int, error) { return 1, nil })
	require.NoError(t, err)
	assert.Equal(t, []pipeline.Kind{pipeline.CallStarted, pipeline.AttemptFinished, pipeline.CallFinished}, told)
}

func TestHeapBytesAreWhatOneInstanceKeeps(t *testing.T) {
	type kib [1024]byte
	assert.InDelta(t, 1024, heapBytes(func() any { return new(kib) }), 32)
}

func TestTheRatioIsTheMedianOfTheRounds(t *testing.T) {
	us, them := &cell{rounds: []float64{1, 10, 100}}, &cell{rounds: []float64{2, 40, 200}}
	assert.InDelta(t, 0.5, ratio(us, them), 1e-9)
	quietest, typical := difference(us, them)
	assert.InDelta(t, -1, quietest, 1e-9)
	assert.InDelta(t, -30, typical, 1e-9)
	assert.InDelta(t, 40, them.median(), 1e-9)
	assert.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 1e-9)
	assert.True(t, math.IsNaN(median(nil)))
}

func TestOnlyWhatRunNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "RESULTS.md")
	var out, problems bytes.Buffer
	code := start([]string{"-for", "100µs", "-rounds", "1", "-run", "^retry alone, ok$", "-write", file}, &out, &problems)
	require.Zero(t, code, problems.String())
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, out.String(), string(written))
	assert.Contains(t, out.String(), "## Retry alone, ok")
	assert.NotContains(t, out.String(), "## Retry alone, two")
	assert.NotContains(t, out.String(), "## Heap")
	assert.NotContains(t, out.String(), "| met |")
	assert.Equal(t, len(goals()), strings.Count(out.String(), "not measured in this run"))
}

func TestAGroupsPaceIsThatOfItsRounds(t *testing.T) {
	o := options{each: 8 * time.Millisecond, rounds: 3}
	assert.Equal(t, options{each: 8 * time.Millisecond, rounds: 3}, o.paced(group{}))
	assert.Equal(t, options{each: 40 * time.Millisecond, rounds: 3}, o.paced(group{pace: garbage}))
	assert.Equal(t, options{each: time.Millisecond, rounds: 900}, o.paced(group{pace: quiet}))
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-for", "1ns"}, {"-rounds", "0"}, {"-run", "("}, {"left over"}, {"-what"}} {
		var out, problems bytes.Buffer
		assert.Equal(t, 2, start(args, &out, &problems), args)
		assert.NotEmpty(t, problems.String())
		assert.Empty(t, out.String())
	}
}
