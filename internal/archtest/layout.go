package archtest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// topLevel is what may stand at the module's root. The owner fixed it.
var topLevel = []string{
	"go.mod", "go.sum",
	"pipeline", "leaf", "rejection", "budget", "examples", "internal",
	"README.md", "llms.txt", "LICENSE", "Makefile", "CONTRIBUTING.md",
	".ci", ".git", ".gitignore", "arch_test.go",
}

// Stray finds entries of the root that the layout does not know. What git ignores does not count.
func Stray(entries, ignored []string) []string {
	var bad []string
	for _, e := range entries {
		byGit := slices.ContainsFunc(ignored, func(pattern string) bool {
			ok, err := path.Match(pattern, e)
			return ok && err == nil
		})
		if !byGit && !slices.Contains(topLevel, e) {
			bad = append(bad, e+": the top level has no place for it")
		}
	}
	return bad
}

// Top is the names at the root, and the patterns of its .gitignore.
func Top(root string) (entries, ignored []string, err error) {
	dir, err := os.ReadDir(root)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range dir {
		entries = append(entries, e.Name())
	}
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.Trim(strings.TrimSpace(line), "/"); line != "" && line[0] != '#' {
			ignored = append(ignored, line)
		}
	}
	return entries, ignored, nil
}
