package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/console"
)

// The page is for a person; state.json has the same for a program.
func Example() {
	var journal console.Journal
	bank := breaker.MustNew(breaker.Config{Name: "bank", OnChange: journal.OnChange})
	charge := pipeline.For("billing").Breaker(bank).MustBuild()
	live, err := console.Handler(console.Pipelines(charge), console.WithJournal(&journal))
	if err != nil {
		panic(err)
	}
	defer func() { _ = live.Close() }()

	for range 6 {
		_ = charge.Run(context.Background(), func(context.Context) error { return errors.New("503") })
	}
	answer := httptest.NewRecorder()
	live.ServeHTTP(answer, httptest.NewRequest("GET", "/console/state.json", nil))
	var state struct {
		Journal []struct{ Name, From, To, Text string }
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &state); err != nil {
		panic(err)
	}
	for _, e := range state.Journal {
		fmt.Printf("%s: %s → %s, %s\n", e.Name, e.From, e.To, e.Text)
	}
	// Output: bank: closed → open, 5 failures in a row
}
