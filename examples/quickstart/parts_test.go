package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

func TestScript(t *testing.T) {
	s := script{total: 8 * time.Second}
	for _, row := range []struct {
		at   time.Duration
		want string
	}{
		{0, "healthy"}, {1199 * time.Millisecond, "healthy"}, {1200 * time.Millisecond, "slow"}, {2800 * time.Millisecond, "failing"},
		{4400 * time.Millisecond, "limited"}, {6400 * time.Millisecond, "recovering"}, {time.Hour, "recovering"},
	} {
		assert.Equal(t, row.want, phases[s.at(row.at)].name, row.at)
	}
	assert.Equal(t, s.total, s.ends(len(phases)-1))
}

func TestLengthGrowsWithThoseInside(t *testing.T) {
	p := phase{work: 10 * time.Millisecond}
	for inside, want := range map[int64]time.Duration{0: 10, 12: 10, 60: 20, 108: 30} {
		assert.Equal(t, want*time.Millisecond, p.length(inside), inside)
	}
}

func TestQuotaCountsAnewEachSecond(t *testing.T) {
	var q quota
	for _, row := range []struct {
		at   time.Duration
		want bool
	}{{5 * time.Second, true}, {5500 * time.Millisecond, true}, {5900 * time.Millisecond, false}, {6 * time.Second, true}} {
		assert.Equal(t, row.want, q.take(row.at, 2), row.at)
	}
}

func TestPercentile(t *testing.T) {
	_, ok := percentile(nil, 50)
	assert.False(t, ok)
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, row := range []struct {
		of   []time.Duration
		p    int
		want time.Duration
	}{{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred[:1], 1, 1}, {hundred[:2], 50, 1}, {hundred[:3], 99, 3}} {
		got, ok := percentile(row.of, row.p)
		assert.True(t, ok)
		assert.Equal(t, row.want, got, "p%d of %d", row.p, len(row.of))
	}
}

// TestJudge: what the breaker is told of an answer, and whether it is worth a retry.
func TestJudge(t *testing.T) {
	for _, row := range []struct {
		code    int
		verdict leaf.Verdict
		failure bool
		stop    bool
	}{
		{400, leaf.Returned, false, true}, {404, leaf.Returned, false, true}, {408, leaf.Returned, false, false},
		{429, leaf.Ignored, true, false}, {500, leaf.Returned, true, false}, {503, leaf.Returned, true, false},
	} {
		err := fmt.Errorf("wrapped: %w", &StatusError{Code: row.code})
		got := leaf.Outcome{Err: err}.Judged()
		assert.Equal(t, row.verdict, got.Verdict, row.code)
		assert.Equal(t, row.failure, got.Err != nil, row.code)
		assert.Equal(t, row.stop, ourFault(err), row.code)
	}
	late := leaf.Outcome{Verdict: leaf.TimedOut, Err: &StatusError{Code: 404}}
	assert.Equal(t, late, late.Judged(), "the limit had fired before the answer was there")
	assert.False(t, ourFault(errors.New("connection refused")))
}

// TestMovingLine: on a terminal one line is written again and again, and always as wide, so that nothing of the old one stays.
func TestMovingLine(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, moves: true, shown: -1, day: 8 * time.Second}
	s.done()
	assert.Empty(t, out.String(), "nothing has moved yet")
	s.progress(moment{})
	s.progress(moment{at: 9 * time.Second, phase: recovering, without: 800, with: 24, circuit: breaker.HalfOpen})
	s.done()
	lines := strings.Split(out.String(), "\r")
	assert.Len(t, lines, 3)
	wide := utf8.RuneCountInString(lines[1])
	assert.Less(t, wide, width)
	assert.Equal(t, wide+1, utf8.RuneCountInString(lines[2]), "as wide, and a newline")
	assert.True(t, strings.HasSuffix(lines[2], "\n"))
}

// TestBusyMachine: numbers that the machine has spoilt are not shown without a word.
func TestBusyMachine(t *testing.T) {
	for late, said := range map[time.Duration]bool{0: false, tooLate: false, 180 * time.Millisecond: true} {
		r := &result{late: late, without: make([]summary, len(phases)+1), with: make([]summary, len(phases)+1)}
		var out bytes.Buffer
		(&screen{out: &out}).result(r)
		assert.Equal(t, said, strings.Contains(out.String(), "late by up to 180 ms"), late)
	}
}

func TestParagraphWraps(t *testing.T) {
	var out bytes.Buffer
	paragraph(&out, 5, "head", strings.Repeat("word ", 60))
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line)-1, width)
		assert.Equal(t, "word", line[5:9])
	}
	assert.Equal(t, 60, strings.Count(out.String(), "word"))
}
