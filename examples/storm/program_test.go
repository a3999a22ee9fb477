package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program itself: bubbles in a process that is no test.
func TestProgram(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "storm")
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", built)
	program := func(t *testing.T, processors int, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", processors))
		out, err := cmd.Output()
		require.NoError(t, err)
		return out
	}

	t.Run("it says what its tests say", func(t *testing.T) {
		args := []string{brief, "-policies", "full", "-json"}
		var want bytes.Buffer
		require.NoError(t, command(bubblesOf(t), args, &want, io.Discard))
		require.Equal(t, want.String(), string(program(t, 2, args...)), "and no PASS behind it")
	})

	t.Run("what is wrong goes to stderr, with status 1", func(t *testing.T) {
		var failed *exec.ExitError
		_, err := exec.CommandContext(t.Context(), binary, "-policies", "hope").Output()
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 1, failed.ExitCode())
		require.Contains(t, string(failed.Stderr), `storm: -policies "hope"`)
	})

	// Retries, circuits, cooldowns, three tiers, crashes and a crowd, each time on another number of processors.
	t.Run("the same seed gives the same bytes", func(t *testing.T) {
		page := filepath.Join(t.TempDir(), "report.html")
		everything := func(processors int, seed string) (out [2]string) {
			out[0] = string(program(t, processors, "-scenarios", "layers,deploy,throttle", "-policies", "outside,full", "-seed", seed, "-json", "-html", page))
			html, err := os.ReadFile(page)
			require.NoError(t, err)
			out[1] = string(html)
			return out
		}
		first := everything(1, "1")
		for _, processors := range []int{2, 5} {
			again := everything(processors, "1")
			assert.True(t, first[0] == again[0], "the JSON on %d processors", processors)
			assert.True(t, first[1] == again[1], "the page on %d processors", processors)
		}
		require.NotEqual(t, first[0][20:], everything(2, "2")[0][20:], "another seed is another storm")
	})

	t.Run("what README.md shows is what it makes", func(t *testing.T) {
		dir := t.TempDir()
		program(t, 2, "-pictures", dir)
		for _, p := range pictures {
			made, err := os.ReadFile(filepath.Join(dir, p.file))
			require.NoError(t, err)
			there, err := os.ReadFile(filepath.Join("pictures", p.file))
			require.NoError(t, err)
			assert.True(t, bytes.Equal(made, there), "%s is old: go run ./examples/storm -pictures examples/storm/pictures", p.file)
			wellFormed(t, there)
		}
	})
}

func wellFormed(t *testing.T, document []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			require.NoError(t, err)
		}
	}
}
