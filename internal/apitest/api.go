package apitest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// API is the lines of each package, by its directory from the module's root.
type API map[string][]string

// API is what the project exports.
func (p *Project) API() API {
	api := API{}
	for _, pkg := range p.packages {
		api[Dir(pkg)] = Lines(pkg)
	}
	return api
}

// Diff is what has to be done to want to get got, in order: "- line" where want has it alone, "+ line" where got has.
func Diff(want, got []string) []string {
	var diff []string
	for _, l := range want {
		if !slices.Contains(got, l) {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			diff = append(diff, "+ "+l)
		}
	}
	return diff
}

// Leaks is the lines that name an internal package: a type that users meet and cannot name.
func (api API) Leaks() []string {
	var bad []string
	for dir, lines := range api {
		for _, l := range lines {
			if strings.Contains(l, Module+"/internal/") {
				bad = append(bad, dir+": "+l)
			}
		}
	}
	slices.Sort(bad)
	return bad
}

// ReadLines reads lines that WriteLines wrote.
func ReadLines(name string) ([]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// WriteLines writes lines to a file, and the directories above it.
func WriteLines(name string, lines []string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
