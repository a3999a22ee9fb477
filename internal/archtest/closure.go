package archtest

import (
	"fmt"
	"maps"
	"slices"
)

// Closures finds what a package must not reach even through others: leaf needs the standard library alone, and what budget and
// rejection build on knows no guard. Test files do not count.
func Closures(files []File) []string {
	imports := map[string]map[string]bool{}
	for _, f := range files {
		if f.Test() {
			continue
		}
		if imports[f.Dir()] == nil {
			imports[f.Dir()] = map[string]bool{}
		}
		for _, p := range f.Imports() {
			imports[f.Dir()][p] = true
		}
	}
	var bad []string
	forbid := func(from string, allowed func(importPath string) bool, why string) {
		for _, p := range reached(imports, from) {
			if !allowed(p) {
				bad = append(bad, fmt.Sprintf("%s: reaches %s: %s", from, p, why))
			}
		}
	}
	internalOr := func(outside ...string) func(string) bool {
		return func(p string) bool {
			dir, ok := inModule(p)
			return ok && matches("internal/...", dir) || within(outside, p)
		}
	}
	forbid("leaf", internalOr(), "the contract needs the standard library alone")
	forbid("budget", internalOr(clockworkModule), "it knows no guard")
	forbid("rejection", internalOr(clockworkModule), "it knows errors by their methods alone")
	return bad
}

// reached is every import path outside the standard library that from reaches, sorted.
func reached(imports map[string]map[string]bool, from string) []string {
	seen := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		for p := range imports[dir] {
			if standard(p) || seen[p] {
				continue
			}
			seen[p] = true
			if next, ok := inModule(p); ok {
				visit(next)
			}
		}
	}
	visit(from)
	return slices.Sorted(maps.Keys(seen))
}
