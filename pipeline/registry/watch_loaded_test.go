package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The content that the file has now counts as a change, unless it is the text that is in force.
func TestWatchDoesNotTellOfTheTextThatIsInForce(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		told   []string
		become int
	}{
		"the same":                          {attempts(2), nil, 2},
		"changed since":                     {attempts(3), []string{"in force"}, 3},
		"with a mark of UTF-8":              {"\ufeff" + attempts(2), nil, 2},
		"written otherwise":                 {attempts(2) + "\n", []string{"in force"}, 2},
		"invalid, and never was in force":   {attempts(99), []string{"DIR/resilience.yaml: resilience.retry.a.max-attempts is 99: want a whole number from 1 to 64"}, 2},
		"nothing, which was never in force": {"# none", []string{"DIR/resilience.yaml: registry: the document is empty, which would remove every instance: want `resilience: {}` where that is meant"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, written(c.file))
			w.poll(5)
			w.expect(c.become, c.told...)
		})
	}
}

// The text in force is that of the last document that came into force, by whichever way; what was refused is none.
func TestTheTextInForceIsTheLastThatCameIntoForce(t *testing.T) {
	const json = `{"resilience": {"retry": {"a": {"max-attempts": 4}}}}`
	r := loaded(t, attempts(2))
	require.Equal(t, digestOf([]byte(attempts(2))), r.text)
	require.Error(t, r.Reload(strings.NewReader(attempts(99))))
	require.Equal(t, digestOf([]byte(attempts(2))), r.text)
	reload(t, r, attempts(3))
	require.Equal(t, digestOf([]byte(attempts(3))), r.text)
	r, err := LoadJSON(strings.NewReader(json))
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, digestOf([]byte(json)), r.text)
	m, err := LoadMap(map[string]any{"resilience": map[string]any{}})
	require.NoError(t, err)
	defer m.Close()
	assert.Nil(t, m.text, "Go values are no text: what a file says then counts as a change")
}
