package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/budget"
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
	w, requests := bill(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
	}, "/?order=1")
	require.Equal(t, http.StatusBadGateway, w.Code)
	require.Equal(t, "60", w.Header().Get("Retry-After"))
	require.Equal(t, 1, requests)
}

// bill sends one request to a billing whose bank is h, and counts what the bank sees.
func bill(t *testing.T, h http.HandlerFunc, target string, header ...string) (answer *httptest.ResponseRecorder, requests int) {
	t.Helper()
	var seen atomic.Int64
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		h(w, r)
	}))
	defer bank.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	req := httptest.NewRequest("POST", target, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer = httptest.NewRecorder()
	newBilling(bank.URL, base).ServeHTTP(answer, req)
	return answer, int(seen.Load())
}

// An order without a name would share its key with every other one: it is refused before the bank hears of it, at each hop.
func TestEmptyOrder(t *testing.T) {
	for _, target := range []string{"/", "/?order=", "/?other=1"} {
		w, requests := bill(t, func(http.ResponseWriter, *http.Request) {}, target)
		require.Equal(t, http.StatusBadRequest, w.Code, target)
		require.Zero(t, requests)
	}
	billing := httptest.NewServer(newBilling("http://bank.invalid", nil))
	defer billing.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	w := httptest.NewRecorder()
	newGateway(billing.URL, base).ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	require.Equal(t, http.StatusBadRequest, w.Code)
}

// A bank whose own bank is late, and one that is late itself: nobody knows whether it charged, and nobody says that it did
// not. The key makes it safe to ask three times, as long as there is time.
func TestLateBank(t *testing.T) {
	w, requests := bill(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) }, "/?order=1")
	require.Equal(t, http.StatusGatewayTimeout, w.Code)
	require.NotContains(t, w.Body.String(), "not charged")
	require.Equal(t, 3, requests)

	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	w, requests = bill(t, hang, "/?order=1", budget.Header, "190") // less than an attempt's limit
	require.Equal(t, http.StatusGatewayTimeout, w.Code)
	require.NotContains(t, w.Body.String(), "not charged")
	require.LessOrEqual(t, requests, 1)
}

// A bank that says no has said so once.
func TestBankSaysNo(t *testing.T) {
	w, requests := bill(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPaymentRequired) }, "/?order=1")
	require.Equal(t, http.StatusPaymentRequired, w.Code)
	require.Equal(t, 1, requests)
}

func millis(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}
