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
	long := strings.Repeat("x", 4<<10)
	var j Journal
	for i := range 5 * journalNames {
		name := fmt.Sprint(i) + long
		j.OnChange(breaker.Change{Name: name, From: breaker.Closed, To: breaker.Open, Reason: name})
		j.OnStore(bg, leaf.StoreEvent{Name: name, Kind: name})
	}
	require.Equal(t, journalNames, j.heard.order.Len())
	require.Len(t, j.heard.byName, journalNames)
	require.Equal(t, journalNames, j.quiet.order.Len())
	require.Len(t, j.quiet.byName, journalNames)
	for name := range j.heard.byName {
		require.LessOrEqual(t, len(name), longestName)
		require.LessOrEqual(t, len(j.heard.known(name).trip), longestText)
	}
	for name := range j.quiet.byName {
		require.LessOrEqual(t, len(name), 3*longestName)
	}
}

// "evict the oldest": a name that comes after a thousand others have gone is heard like the first.
func TestTheJournalHearsNewNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j Journal
		change := func(name, why string) {
			j.OnChange(breaker.Change{Name: name, From: breaker.Closed, To: breaker.Open, Reason: why})
		}
		change("used", "first")
		for i := range journalNames + 400 {
			change(fmt.Sprint("old-", i), "gone")
			if i == 700 {
				change("used", "second")
			}
		}
		change("new", "5 failures in a row")
		h, ok := j.last("new")
		require.True(t, ok)
		require.Equal(t, "5 failures in a row", h.trip)
		h, ok = j.last("used")
		require.True(t, ok, "what goes on is not the oldest")
		require.Equal(t, "second", h.trip)
		_, ok = j.last("old-400")
		require.False(t, ok)
	})
}

// A flood of names is a flood, too: as long as all places are in use, the rest share one. Later they have places of their own.
func TestAFloodOfNamesDoesNotWashAwayTheChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j Journal
		for i := range 5 * journalNames {
			j.Shadow(fmt.Sprint("old-", i))(bg, errDown)
		}
		_, n := j.after(0)
		require.EqualValues(t, journalNames+1, n)
		after(2 * time.Second)
		for i := range 5 {
			j.Shadow(fmt.Sprint("new-", i))(bg, errDown)
		}
		all, _ := j.after(n)
		require.Len(t, all, 5)
		require.Equal(t, "new-4", all[4].Name)
	})
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
