package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const defaults = `
resilience:
  retry:           { all: {} }
  circuit-breaker: { all: {} }
  cooldown:        { all: {} }
  bulkhead:        { all: { max-concurrent: 32 } }
  pipelines:
    billing: { timeout: 1900ms, retry: all, cooldown: all, circuit-breaker: all, bulkhead: all, attempt-timeout: 500ms }
`

// A registry file that says nothing but the defaults is the full default pipeline, to the request.
func TestYoursIsTheFilesPipelineInEachProcess(t *testing.T) {
	p, err := yours(write(t, "resilience.yaml", defaults), "")
	require.NoError(t, err)
	require.Equal(t, "yours: billing of resilience.yaml", p.title)
	got, want := simulated(t, scenarioOf("throttle"), p), storming(t, "throttle", "full")
	require.Equal(t, want.Summary, got.Summary)
	require.Equal(t, want.Series, got.Series)
}

// The file that the documentation and the usage name is there, and does what it says of itself.
func TestTheFileThatIsShippedIsAPolicyToBeginWith(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var usage bytes.Buffer
	require.ErrorIs(t, command(bubblesOf(t), []string{"-h"}, io.Discard, &usage), flag.ErrHelp)
	for where, text := range map[string]string{"doc.go": string(doc), "the usage": usage.String()} {
		files := regexp.MustCompile(`\S+\.yaml`).FindAllString(text, -1)
		require.Equal(t, []string{"examples/storm/policy.yaml"}, files, where)
	}
	p, err := yours(filepath.Join("..", "..", "examples", "storm", "policy.yaml"), "")
	require.NoError(t, err)
	faults, err := pick("-scenarios", "brownout,sick", scenarios, scenario.id)
	require.NoError(t, err)
	d, err := storms(bubblesOf(t), faults, []policy{policyOf("full"), p}, 1)
	require.NoError(t, err)
	brownout, sick := d.Scenarios[0].Runs, d.Scenarios[1].Runs
	require.InDelta(t, 2.3, brownout[0].Summary.Worst, 0.05)
	require.InDelta(t, 1.6, brownout[1].Summary.Worst, 0.05)
	require.Equal(t, []int{2, 6}, []int{brownout[0].Summary.Recovered, brownout[1].Summary.Recovered})
	require.InDelta(t, 0.99, sick[0].Summary.During, 0.005)
	require.InDelta(t, 0.96, sick[1].Summary.During, 0.005)
}

func TestAJSONFileIsYoursToo(t *testing.T) {
	text := `{"resilience": {"pipelines": {"plain": {"timeout": "1s"}, "other": {}}}}`
	_, err := yours(write(t, "resilience.json", text), "plain")
	require.NoError(t, err)
}

func TestAFileMayAskWhatHappened(t *testing.T) {
	_, err := yours(write(t, "a.yaml", `
resilience:
  retry: { a: { retry-on: [reset, throttled, unavailable, timeout] } }
  pipelines: { a: { retry: a } }
`), "")
	require.NoError(t, err)
}

func TestAFileThatCannotBeUsedIsAnErrorBeforeAnyStorm(t *testing.T) {
	for name, c := range map[string]struct{ text, pipeline, says string }{
		"garbage":       {"resilience: [", "", "resilience"},
		"unknown key":   {"resilience: { retry: { a: { tries: 3 } }, pipelines: { a: { retry: a } } }", "", "tries"},
		"no pipeline":   {"resilience: { retry: { a: {} } }", "", "resilience.pipelines: there is none"},
		"which one":     {"resilience: { pipelines: { a: {}, b: {} } }", "", `-pipeline "": has to be one of a, b`},
		"not that one":  {"resilience: { pipelines: { a: {}, b: {} } }", "c", `-pipeline "c": has to be one of a, b`},
		"shared things": {`resilience: { store: { redis: "redis://x:1/0" }, circuit-breaker: { a: { shared: true } }, pipelines: { a: { circuit-breaker: a } } }`, "", "circuit-breaker.a: shared: true would need Redis"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "resilience.yaml", c.text)
			_, err := yours(path, c.pipeline)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, path)
		})
	}
	_, err := yours(filepath.Join(t.TempDir(), "absent.yaml"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
}
