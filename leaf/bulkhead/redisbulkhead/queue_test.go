package redisbulkhead

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// members reads l in both directions.
func members(t *testing.T, l *list) (all []*call) {
	t.Helper()
	var backwards []*call
	for c := l.front; c != nil; c = l.next(c) {
		all = append(all, c)
	}
	for c := l.back; c != nil; c = l.prev(c) {
		backwards = append(backwards, c)
	}
	slices.Reverse(backwards)
	require.Equal(t, len(all), l.n)
	require.True(t, slices.Equal(all, backwards))
	return all
}

// Two lists share the calls and must not share the links.
func TestListsAreWhatSlicesAre(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lists := [2]*list{{of: byTurn}, {of: byEnd}}
	var models [2][]*call
	for range 5000 {
		which := random.IntN(2)
		l, model := lists[which], models[which]
		if n := len(model); n > 0 && random.IntN(2) == 0 {
			at := random.IntN(n)
			l.remove(model[at])
			models[which] = slices.Delete(model, at, at+1)
		} else {
			c := &call{}
			if other := models[1-which]; len(other) > 0 { // one that stands in the other list
				if o := other[random.IntN(len(other))]; !slices.Contains(model, o) {
					c = o
				}
			}
			at := random.IntN(n + 1)
			var prev *call
			if at > 0 {
				prev = model[at-1]
			}
			l.insert(c, prev)
			models[which] = slices.Insert(model, at, c)
		}
		for i := range lists {
			require.True(t, slices.Equal(models[i], members(t, lists[i])))
		}
	}
}

func TestATokenNamesOneAdmissionAndNoLaterOneInItsPlace(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	h, model := &held{}, map[uint64]*slot{}
	var settled []uint64
	for range 5000 {
		if random.IntN(2) == 0 {
			s := &slot{}
			token := h.put(s)
			require.NotContains(t, model, token)
			require.NotContains(t, settled, token)
			model[token] = s
		} else {
			for token, s := range model {
				require.Same(t, s, h.take(token))
				delete(model, token)
				settled = append(settled, token)
				break
			}
		}
		if len(settled) > 0 {
			require.Nil(t, h.take(settled[random.IntN(len(settled))]))
		}
		require.Nil(t, h.take(1<<20))
		require.Equal(t, len(model), h.len())
		seen := map[*slot]bool{}
		h.each(func(s *slot) { seen[s] = true })
		require.Len(t, seen, len(model))
		for _, s := range model {
			require.True(t, seen[s])
		}
	}
}

// What an outage without a limit admitted is no reason to keep its table for ever; a slot that goes from call to call costs none.
func TestATableThatNobodyNeedsIsSmall(t *testing.T) {
	h := &held{}
	for _, n := range []int{10, mostPlaces, 5 * mostPlaces, 10} {
		var tokens []uint64
		for range n {
			tokens = append(tokens, h.put(&slot{}))
		}
		for _, token := range tokens {
			require.NotNil(t, h.take(token))
		}
		require.Zero(t, h.len())
		require.LessOrEqual(t, cap(h.places), 2*mostPlaces)
	}
	s := &slot{}
	token := h.put(s)
	require.Zero(t, testing.AllocsPerRun(100, func() { token = h.put(h.take(token)) }))
}
