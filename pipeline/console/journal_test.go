package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

func TestTheJournalRemembersTheLastTwoHundred(t *testing.T) {
	var j Journal
	for i := range 500 {
		j.OnChange(breaker.Change{Name: "b", From: breaker.Closed, To: breaker.Open, Reason: fmt.Sprint("reason ", i)})
	}
	all, last := j.after(0)
	require.Len(t, all, journalKept)
	require.Equal(t, uint64(500), last)
	require.Equal(t, "reason 300", all[0].Text)
	require.Equal(t, "reason 499", all[journalKept-1].Text)
	some, _ := j.after(498)
	require.Len(t, some, 2)
	none, _ := j.after(500)
	require.Empty(t, none)
}

// "would-be refusals and stores' failures beyond one a second for each name are counted into the next entry"
func TestAFloodDoesNotWashAwayTheChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j Journal
		j.OnChange(breaker.Change{Name: "b", From: breaker.Closed, To: breaker.Open, Reason: "probe failed"})
		report := j.Shadow("trial")
		for range 1000 {
			report(bg, errors.New("no slot"))
			j.OnStore(bg, leaf.StoreEvent{Name: "b", Kind: "failed", Op: leaf.OpAdmit, Policy: leaf.FailLocal, Err: errors.New("redis: down")})
		}
		after(time.Second)
		report(bg, errors.New("no slot"))
		all, _ := j.after(0)
		require.Len(t, all, 4)
		require.Equal(t, "probe failed", all[0].Text)
		require.Equal(t, "would have refused: no slot", all[1].Text)
		require.Equal(t, "failed to admit, fail_local: redis: down", all[2].Text)
		require.Equal(t, 999, all[3].Before)
	})
}

func TestTheJournalsNamesAreBounded(t *testing.T) {
	var j Journal
	for i := range 5 * journalNames {
		name := strings.Repeat("x", 1000) + fmt.Sprint(i)
		j.OnChange(breaker.Change{Name: name, From: breaker.Closed, To: breaker.Open})
		j.Shadow(fmt.Sprint(i))(bg, errDown)
	}
	require.LessOrEqual(t, len(j.heard), journalNames)
	require.LessOrEqual(t, len(j.quiet), journalNames+3, "and one place for the rest of each kind")
}

// "Texts are taken where the error is", four a second, and the rest is only counted.
func TestErrorsAreKeptAsAFewDifferentTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		asked := 0
		c := started(t, Pipelines(p), WithErrorText(func(err error) string {
			asked++
			return "shown: " + err.Error()
		}))
		for i := range 50 {
			_ = p.Run(bg, func(context.Context) error { return fmt.Errorf("request %d failed", i) })
		}
		require.Equal(t, textsPerSecond, asked)
		after(1500 * time.Millisecond)
		errs := state(t, c).row(t, "billing").Errors
		require.LessOrEqual(t, len(errs), textsPerSecond)
		require.Equal(t, "shown: request 1 failed", errs[len(errs)-2].Text, "the newest of those that differ in numbers alone")
		require.Equal(t, "attempt", errs[len(errs)-2].From)
		require.Equal(t, withoutNumbers("open, next probe in 3.43s"), withoutNumbers("open, next probe in 1m205.8ms"))
		require.NotEqual(t, withoutNumbers("bank answered 503"), withoutNumbers("mail answered 503"))
	})
}

type badError struct{}

func (badError) Error() string { panic("secret") }

func TestAnErrorWithoutATextDoesNotEndTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		c := started(t, Pipelines(p))
		require.ErrorIs(t, p.Run(bg, func(context.Context) error { return badError{} }), badError{})
		after(1500 * time.Millisecond)
		got := state(t, c).row(t, "billing").Errors
		require.Contains(t, got[len(got)-1].Text, "the text of a console.badError cannot be had: panic of type string")
	})
}

func TestTextsAreClippedToWholeCharacters(t *testing.T) {
	for _, s := range []string{strings.Repeat("é", 400), strings.Repeat("a", 400), strings.Repeat("\xff", 400), strings.Repeat("日", 200), "x" + strings.Repeat("😀", 100)} {
		got := clip(s, longestText)
		require.LessOrEqual(t, len(got), longestText+len("…"))
		require.True(t, strings.HasSuffix(got, "…"))
		require.NotContains(t, got[:len(got)-len("…")], "\x00")
	}
	require.Equal(t, "short", clip("short", longestText))
	require.Equal(t, "a b", clip("a\nb", longestText))
}
