package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The bank hears of an outage five times, every customer gets an answer, and the Retry-After that he is told is right.
func TestOutageInTheMiddle(t *testing.T) {
	var out bytes.Buffer
	phases, err := run(t.Context(), &out, 20)
	require.NoError(t, err)
	t.Log("\n" + out.String())
	require.Len(t, phases, 3)
	for _, i := range []int{0, 2} {
		require.Empty(t, phases[i].retryAfter)
		for _, s := range phases[i].hops {
			require.Equal(t, map[int]int{200: 20}, s.answers, s.hop)
		}
		gateway, billing, bank := phases[i].hops[0].budget, phases[i].hops[1].budget, phases[i].hops[2].budget
		require.Empty(t, gateway, "nobody gave it a budget")
		require.LessOrEqual(t, millis(t, billing), 400)
		require.LessOrEqual(t, millis(t, bank), 200, "the attempt's limit is the smaller one")
		require.Positive(t, millis(t, bank))
	}
	outage := phases[1]
	require.Equal(t, "1", outage.retryAfter)
	// Order 1 fails three times. Order 2 fails twice: five of the last ten, and the circuit opens. The others are refused.
	require.Equal(t, map[int]int{502: 2, 503: 18}, outage.hops[0].answers)
	require.Equal(t, map[int]int{502: 2, 503: 18}, outage.hops[1].answers)
	require.Equal(t, map[int]int{503: 5}, outage.hops[2].answers)
}

// A wait that the bank asks for, and that is too long for a retry, is the customer's.
func TestTheBanksOwnRetryAfter(t *testing.T) {
	requests := 0
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer bank.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	w := httptest.NewRecorder()
	newBilling(bank.URL, base).ServeHTTP(w, httptest.NewRequest("POST", "/?order=1", nil))
	require.Equal(t, http.StatusBadGateway, w.Code)
	require.Equal(t, "60", w.Header().Get("Retry-After"))
	require.Equal(t, 1, requests)
}

func millis(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}
