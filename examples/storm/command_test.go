package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const brief = "-scenarios=sick"

func TestTheTableHasALinePerPolicyAndTheReportItsCurves(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	var out bytes.Buffer
	config := write(t, "resilience.yaml", defaults)
	require.NoError(t, command(bubblesOf(t), []string{brief, "-policies", "none,full", "-config", config, "-html", page}, &out, io.Discard))
	t.Log("\n" + out.String())
	assert.Regexp(t, `One sick instance of five`, out.String())
	assert.Regexp(t, `1\.\d\d +1\.00 +(79|80)\.\d % +100\.0 % .* at once +0 +0  +no protection\n`, out.String())
	assert.Regexp(t, `\n.*full default pipeline\n.*yours: billing of resilience\.yaml\n`, out.String())
	assert.Contains(t, out.String(), "The curves are in "+page)
	report, err := os.ReadFile(page)
	require.NoError(t, err)
	html := string(report)
	assert.Equal(t, 1, strings.Count(html, "<svg"))
	assert.Equal(t, 9, strings.Count(html, `class="ground"`), "three policies, three questions")
	assert.Contains(t, html, "yours: billing of resilience.yaml")
	assert.NotContains(t, html, "ZgotmplZ")
}

// No script, no font, no picture, no style from anywhere.
func TestTheReportNeedsNothingElse(t *testing.T) {
	d, err := storms(bubblesOf(t), []scenario{scenarioOf("sick")}, []policy{policyOf("none")}, 1)
	require.NoError(t, err)
	html := strings.ReplaceAll(d.html(), "http://www.w3.org/2000/svg", "")
	assert.Empty(t, regexp.MustCompile(`(?i)(https?:)?//[a-z]|<script|<link|<img|@import|url\(|\ssrc=`).FindString(html))
	assert.Contains(t, html, "prefers-color-scheme: dark")
}

func TestJSONIsEverythingForMachines(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command(bubblesOf(t), []string{brief, "-policies", "none", "-json", "-seed", "7"}, &out, io.Discard))
	var d document
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	require.Equal(t, uint64(7), d.Seed)
	require.Equal(t, "sick", d.Scenarios[0].Name)
	require.Equal(t, 400, d.Scenarios[0].Fleet.Capacity)
	r := d.Scenarios[0].Runs[0]
	require.Equal(t, "none", r.Policy)
	require.Len(t, r.Series.Attempts, seconds)
	require.Equal(t, r.Summary.Calls, total(r.Series.Begun))
}

func TestClientsSpreadTheSameCallsOverOtherProcesses(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command(bubblesOf(t), []string{brief, "-policies", "none", "-json", "-clients", "3"}, &out, io.Discard))
	var d document
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	require.Equal(t, 3, d.Scenarios[0].Fleet.Clients)
	require.InDelta(t, 240*seconds, d.Scenarios[0].Runs[0].Summary.Calls, 600)
	require.Equal(t, whole, scenarios[3].fleet, "the scenario itself is as it was")
}

func TestBadFlagsAreNamedAllAtOnce(t *testing.T) {
	err := command(bubblesOf(t), []string{"-scenarios", "rain", "-policies", "hope", "-clients", "-1", "-pipeline", "x"}, io.Discard, io.Discard)
	for _, says := range []string{`-scenarios "rain": has to be some of outage, `, `-policies "hope": has to be some of none, `, "-clients -1: has to be from 1", `-pipeline "x": needs -config`} {
		assert.ErrorContains(t, err, says)
	}
	assert.ErrorContains(t, command(nil, []string{"now"}, io.Discard, io.Discard), `"now": there are no arguments`)
	assert.ErrorContains(t, command(nil, []string{"-speed", "1"}, io.Discard, io.Discard), "speed")
	assert.ErrorIs(t, command(nil, []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
	absent := filepath.Join(t.TempDir(), "no", "where.html")
	assert.ErrorIs(t, command(bubblesOf(t), []string{brief, "-policies", "none", "-html", absent}, io.Discard, io.Discard), os.ErrNotExist)
}
