package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDemonstration runs all of it in virtual time, with the handler called directly.
func TestDemonstration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		bank := &bank{}
		shop := newShop(bank.charge)
		type answer struct {
			status int
			after  string
		}
		var answers []answer
		began := time.Now()
		require.NoError(t, demonstrate(t.Context(), &out, bank, func(order string) (*http.Response, error) {
			w := checkout(t.Context(), shop, order)
			answers = append(answers, answer{w.Code, w.Header().Get("Retry-After")})
			return w.Result(), nil
		}))
		t.Log("\n" + out.String())
		assert.Equal(t, []answer{{200, ""}, {502, ""}, {502, ""}, {503, "2"}, {503, "1"}, {504, ""}, {503, "2"}, {200, ""}}, answers)
		assert.Equal(t, 5, bank.count(), "a refused checkout does not reach the bank")
		assert.Equal(t, 3400*time.Millisecond, time.Since(began), "the waits, and 200 ms for the probe that hung")
		for line := range strings.Lines(out.String()) {
			assert.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
		}
	})
}

// TestLoopback is main's own run, over a real connection, until it is interrupted.
func TestLoopback(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &lines{after: 5, then: cancel} // heading, three that reached the bank, one that was refused
	require.ErrorIs(t, run(ctx, out), context.Canceled)
	assert.Contains(t, out.String(), "503    2")
}

// lines calls then when so many lines were written.
type lines struct {
	bytes.Buffer
	after int
	then  func()
}

func (l *lines) Write(p []byte) (int, error) {
	if l.after -= bytes.Count(p, []byte{'\n'}); l.after == 0 {
		l.then()
	}
	return l.Buffer.Write(p)
}

// TestAnyLayer: a full bulkhead becomes the same 503; it does not know when there will be room, so there is no Retry-After.
func TestAnyLayer(t *testing.T) {
	release, inside := make(chan struct{}), make(chan struct{})
	shop := newShop(func(context.Context, string) (string, error) {
		inside <- struct{}{}
		<-release
		return "receipt", nil
	})
	codes := make(chan int)
	for range 8 {
		go func() { codes <- checkout(context.Background(), shop, "1").Code }()
		<-inside
	}
	w := checkout(t.Context(), shop, "9")
	assert.Equal(t, 503, w.Code)
	assert.Empty(t, w.Header().Get("Retry-After"))
	assert.Contains(t, w.Body.String(), "nothing was charged")
	close(release)
	for range 8 {
		assert.Equal(t, 200, <-codes)
	}
}

func TestCauseStaysReachable(t *testing.T) {
	cause := errors.New("circuit open")
	assert.ErrorIs(t, &BillingUnavailable{Cause: cause}, cause)
}

func checkout(ctx context.Context, shop http.Handler, order string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	shop.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/checkout/"+order, nil))
	return w
}
