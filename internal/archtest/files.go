package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
)

// MaxLines is how long a file may be that is no test.
const MaxLines = 400

// Long finds files that hold more than one idea.
func Long(files []File) []string {
	var bad []string
	for _, f := range files {
		if !f.Test() && f.Lines > MaxLines {
			bad = append(bad, fmt.Sprintf("%s: %d lines, at most %d", f.Path, f.Lines, MaxLines))
		}
	}
	return bad
}

// Undocumented finds packages without a package comment.
func Undocumented(files []File) []string {
	documented := map[string]bool{}
	for _, f := range files {
		if f.Test() {
			continue
		}
		documented[f.Dir()] = documented[f.Dir()] || f.Syntax.Doc != nil
	}
	var bad []string
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			bad = append(bad, dir+": no package comment")
		}
	}
	return bad
}

// Leaky finds packages with tests whose TestMain does not look for leaked goroutines.
func Leaky(files []File) []string {
	watched := map[string]bool{}
	for _, f := range files {
		if f.Test() {
			watched[f.Dir()] = watched[f.Dir()] || watches(f)
		}
	}
	var bad []string
	for _, dir := range slices.Sorted(maps.Keys(watched)) {
		if !watched[dir] {
			bad = append(bad, dir+": tests without a TestMain that calls goleak.VerifyTestMain")
		}
	}
	return bad
}

func watches(f File) bool {
	return slices.ContainsFunc(f.Syntax.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Name.Name == "TestMain" && fn.Recv == nil && len(selections(fn, "goleak", "VerifyTestMain")) > 0
	})
}
