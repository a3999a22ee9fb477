package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is what of the state the tests look at.
type seen struct {
	Rows []struct {
		Name, Level string
		Why         []string
		Recent      struct{ Calls, Failed, Refused float64 }
	}
}

func look(t *testing.T, h http.Handler) (s seen) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost:8090/console/state.json", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	return s
}

func (s seen) of(name string) (level string, why string, calls float64) {
	for _, r := range s.Rows {
		if r.Name == name {
			return r.Level, strings.Join(r.Why, "; "), r.Recent.Calls
		}
	}
	return "", "", 0
}

func post(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8090/faults", strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// "a lively simulated service whose faults can be switched from the page": each fault shows in the console as what it is, and goes away.
func TestFaultsShowInTheConsoleAndGoAway(t *testing.T) {
	for fault, want := range map[Fault]struct{ downstream, pipeline, why string }{
		Outage:   {"bank", "billing", `breaker "bank" is open`},
		BrownOut: {"warehouse", "stock", `failed in 10 s`},
		Slow:     {"search", "search", `breaker "search"`},
		Throttle: {"mail", "mail", `cooldown "mail" is cooling`},
		Flapping: {"mail", "mail", `failed in 10 s`},
	} {
		t.Run(string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := newShop()
				require.NoError(t, err)
				defer func() { require.NoError(t, s.Close()) }()
				s.open(context.Background())
				h := s.handler()
				<-time.After(20 * time.Second)
				level, why, calls := look(t, h).of(want.pipeline)
				require.Contains(t, []string{"ok", "warn"}, level, why) // nobody is perfect
				require.Greater(t, calls, 20.0, "it is lively")

				require.Equal(t, http.StatusOK, post(h, `{"name":"`+want.downstream+`","fault":"`+string(fault)+`"}`).Code)
				shown := false
				for range 30 {
					<-time.After(time.Second)
					if _, why, _ = look(t, h).of(want.pipeline); strings.Contains(why, want.why) {
						shown = true
						break
					}
				}
				require.True(t, shown, "want %q in %q", want.why, why)

				require.Equal(t, http.StatusOK, post(h, `{"name":"`+want.downstream+`","fault":"healthy"}`).Code)
				<-time.After(60 * time.Second)
				level, why, _ = look(t, h).of(want.pipeline)
				require.Contains(t, []string{"ok", "warn"}, level, why)
				require.NotContains(t, why, "is open")
			})
		})
	}
}

func TestOnlyTheOwnPageBreaksTheShop(t *testing.T) {
	s, err := newShop()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	h := s.handler()
	require.Equal(t, http.StatusForbidden, post(h, `{"name":"bank","fault":"outage"}`, "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, Healthy, s.downstream("bank").Fault())
	for _, body := range []string{"", `{"name":"bank","fault":"fire"}`, `{"name":"nobody","fault":"slow"}`} {
		require.Equal(t, http.StatusBadRequest, post(h, body).Code, body)
	}
}

func TestItServesThePanelAndTheConsoleAndLeavesNothingBehind(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	out, in := io.Pipe()
	go func() { ended <- run(ctx, listener, in) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	base := strings.TrimSpace(strings.TrimPrefix(line, "The panel:"))

	client := &http.Client{Transport: &http.Transport{}}
	for path, want := range map[string]string{"": "Break something", "panel.js": "fieldset", "faults": "brown-out", "console/": "Fairlead console", "console/main.js": "import", "console/settings.json": "circuit-breaker"} {
		answer, err := client.Get(base + path)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.True(t, bytes.Contains(body, []byte(want)), "%s: %s", path, body)
		require.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'none'")
	}
	stream, err := client.Get(base + "console/stream")
	require.NoError(t, err)
	stop() // with a stream open
	require.NoError(t, <-ended)
	require.NoError(t, stream.Body.Close())
	client.CloseIdleConnections()
}
