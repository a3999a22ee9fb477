package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLoopback is a short day on a real network; what happens to whom is up to the machine, the sums are not.
func TestLoopback(t *testing.T) {
	looked := 0
	r, err := run(t.Context(), &loopback{}, 1500*time.Millisecond, 20, func(m moment) {
		looked++
		assert.GreaterOrEqual(t, m.without, int64(0))
		assert.GreaterOrEqual(t, m.with, int64(0))
	})
	require.NoError(t, err)
	checkSums(t, r)
	assert.Positive(t, looked)
	assert.Positive(t, r.without[len(phases)].ok)
	assert.Positive(t, r.with[len(phases)].ok)
	for i := range r.with {
		assert.Equal(t, r.without[i].calls, r.with[i].calls, "the same load, in each phase")
	}
	var out bytes.Buffer
	newScreen(&out).result(r)
	checkOutput(t, out.String(), r)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, problems bytes.Buffer
	stop := time.AfterFunc(200*time.Millisecond, cancel)
	defer stop.Stop()
	began := time.Now()
	assert.Zero(t, start(ctx, []string{"-seconds", "60", "-workers", "2"}, &out, &problems))
	assert.Less(t, time.Since(began), 30*time.Second)
	assert.Contains(t, out.String(), "2 users")
	assert.Empty(t, problems.String())
}

func TestFlagsOutOfRange(t *testing.T) {
	for _, args := range []string{
		"-seconds 0.5", "-seconds 61", "-seconds NaN", "-seconds x", "-workers 0", "-workers 201", "more",
	} {
		var out, problems bytes.Buffer
		assert.Equal(t, 2, start(t.Context(), strings.Fields(args), &out, &problems), args)
		assert.Empty(t, out.String())
		assert.NotEmpty(t, problems.String())
	}
	var out, help bytes.Buffer
	assert.Zero(t, start(t.Context(), []string{"-h"}, &out, &help))
	assert.Contains(t, help.String(), "-workers")
}

// full has no room for a second listener.
type full struct {
	loopback
	first net.Listener
}

func (f *full) Listen() (net.Listener, error) {
	if f.first != nil {
		return nil, errors.New("no more")
	}
	l, err := f.loopback.Listen()
	f.first = l
	return l, err
}

func TestNoListener(t *testing.T) {
	f := &full{}
	_, err := run(t.Context(), f, time.Second, 1, func(moment) {})
	require.EqualError(t, err, "no more")
	_, err = f.first.Accept()
	assert.ErrorIs(t, err, net.ErrClosed, "the first one is given back")
}
