package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// direct hands a request to the handler of its host. Of the caller's context nothing but its end as a connection's would be
// passes: the deadline is known by the header alone.
type direct map[string]http.Handler

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	d[r.URL.Host].ServeHTTP(w, r.WithContext(ctx))
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func TestExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := direct{}
		client := &http.Client{Transport: hosts}
		gate := &gateway{client: client}
		for _, s := range services {
			hosts[s.Name] = s
			gate.behind = append(gate.behind, target{s, "http://" + s.Name})
		}
		hosts["gateway"] = gate
		a, err := askOnce(t.Context(), client, "http://gateway")
		require.NoError(t, err)
		ms := time.Millisecond
		assert.Equal(t, []hop{
			{Name: "inventory", Needs: 80 * ms, Left: 350 * ms, Status: 200, Seen: seen{"350", 350 * ms, 80 * ms, true}},
			{Name: "prices", Needs: 120 * ms, Left: 270 * ms, Status: 200, Seen: seen{"270", 270 * ms, 120 * ms, true}},
			{Name: "shipping", Needs: time.Second, Left: 150 * ms, Status: 504, Seen: seen{"150", 150 * ms, 130 * ms, false}},
			{Name: "offers", Needs: 10 * ms, Left: 20 * ms, Err: "not asked: it could only be late"},
		}, a.hops)
		assert.Equal(t, 330*ms, a.took, "the user's 400, less the gateway's 50, less the last service's 20")
	})
}

// TestLoopback is main's own run, on real connections. A machine that stalls for 70 ms lets its user go: then once more.
func TestLoopback(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), &out)
	for range 10 {
		if !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		err = run(t.Context(), &out)
	}
	require.NoError(t, err)
	t.Log("\n" + out.String())
	rows := 0
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 101)
		for _, s := range services {
			if strings.HasPrefix(line, s.Name) {
				rows++
			}
		}
	}
	assert.Equal(t, len(services), rows)
}

// TestHopsOnLoopback: whatever the machine does, no hop has more than was left, and the user is answered in time.
func TestHopsOnLoopback(t *testing.T) {
	var host servers
	defer host.close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	quick := service{"quick", time.Millisecond}
	url, err := host.start(quick)
	require.NoError(t, err)
	gateURL, err := host.start(&gateway{client, []target{{quick, url}, {quick, url}, {quick, url}}})
	require.NoError(t, err)
	a, err := askOnce(t.Context(), client, gateURL)
	require.NoError(t, err)
	require.Len(t, a.hops, 3)
	last := patience - reserve
	for _, h := range a.hops {
		assert.LessOrEqual(t, h.Left, last)
		require.Equal(t, 200, h.Status, h.Err)
		sent, err := strconv.Atoi(h.Seen.Header)
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Duration(sent)*time.Millisecond, h.Left, "rounded down")
		assert.LessOrEqual(t, h.Seen.Had, time.Duration(sent)*time.Millisecond)
		last = h.Left
	}
	assert.LessOrEqual(t, a.took, patience)
}

// TestNoHeader: without a budget a service takes the time that it needs.
func TestNoHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		services[2].ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		var got seen
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		assert.Equal(t, seen{Took: time.Second, Ready: true}, got)
	})
}

func TestAnswerThatIsNone(t *testing.T) {
	hosts := direct{"broken": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })}
	gate := &gateway{client: &http.Client{Transport: hosts}}
	h := gate.ask(t.Context(), target{service{Name: "broken"}, "http://broken"})
	assert.Equal(t, 500, h.Status)
	assert.Contains(t, h.Err, "no JSON")
	h = gate.ask(t.Context(), target{service{Name: "unknown"}, "http://:x"})
	assert.NotEmpty(t, h.Err)
	assert.Zero(t, h.Status)
	var out bytes.Buffer
	answer{hops: []hop{{Name: "broken", Status: 500, Err: "no JSON"}}}.print(&out)
	assert.Contains(t, out.String(), "no JSON")
}
