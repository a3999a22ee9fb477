package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// told notes events as lines: when since it was made, what, and the fields that are set.
type told struct {
	began time.Time
	mu    sync.Mutex
	lines []string
}

func listen() *told { return &told{began: time.Now()} }

func (l *told) observe(_ context.Context, e pipeline.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%v %s", e.Time.Sub(l.began), line(e)))
}

// note adds a line of somebody who is no observer.
func (l *told) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%v %s", time.Since(l.began), what))
}

// line is an event without its time, and without what is not set. What call_finished sums up has a test of its own.
func line(e pipeline.Event) string {
	var s strings.Builder
	if e.Kind == pipeline.CallFinished {
		e = pipeline.Event{Kind: e.Kind, Took: e.Took, Err: e.Err}
	}
	s.WriteString(e.Kind.String())
	if e.Layer != "" {
		s.WriteString(" " + e.Layer)
	}
	if e.Attempt != 0 {
		fmt.Fprintf(&s, " #%d", e.Attempt)
	}
	if e.Reason != 0 {
		fmt.Fprintf(&s, " %s", e.Reason)
	}
	if e.Delay != 0 {
		fmt.Fprintf(&s, " delay %v", e.Delay)
	}
	if e.Wait != 0 {
		fmt.Fprintf(&s, " wait %v", e.Wait)
	}
	if e.Took != 0 {
		fmt.Fprintf(&s, " took %v", e.Took)
	}
	if e.Err != nil {
		fmt.Fprintf(&s, ": %v", e.Err)
	}
	return s.String()
}

// requireLines compares lines; in want, … at the end of a line stands for the call's own error.
func requireLines(t *testing.T, want, got []string, err error) {
	t.Helper()
	filled := make([]string, len(want))
	for i, w := range want {
		if before, ok := strings.CutSuffix(w, "…"); ok {
			w = before + err.Error()
		}
		filled[i] = w
	}
	require.Equal(t, filled, got)
}
