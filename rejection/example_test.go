package rejection_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/fairlead/fairlead/rejection"
)

// tooBusy is an error of a program's own: two methods make it a refusal.
type tooBusy struct{ wait time.Duration }

func (e *tooBusy) Error() string                     { return "too busy" }
func (e *tooBusy) Rejected() bool                    { return true }
func (e *tooBusy) RetryAfter() (time.Duration, bool) { return e.wait, true }

// A handler tells its client what happened to the call behind it.
func Example() {
	err := fmt.Errorf("billing: %w", &tooBusy{wait: 2300 * time.Millisecond})

	w := httptest.NewRecorder()
	if code := rejection.Status(err); code != 0 {
		rejection.SetHeader(w.Header(), err)
		w.WriteHeader(code)
	}
	fmt.Println(w.Code, w.Header().Get("Retry-After"))
	// Output: 503 3
}

// Only a refusal of every branch says that nothing has happened.
func ExampleIs() {
	busy := &tooBusy{wait: time.Second}
	fmt.Println(rejection.Is(busy))
	fmt.Println(rejection.Is(errors.Join(busy, busy)))
	fmt.Println(rejection.Is(errors.Join(busy, errors.New("written, but not confirmed"))))
	// Output:
	// true
	// true
	// false
}

func ExampleParseRetryAfter() {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"120", now.Add(time.Hour).Format(http.TimeFormat), "tomorrow"} {
		fmt.Println(rejection.ParseRetryAfter(value, now))
	}
	// Output:
	// 2m0s true
	// 1h0m0s true
	// 0s false
}
