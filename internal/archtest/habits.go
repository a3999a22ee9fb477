package archtest

import (
	"go/ast"
	"slices"
)

// Habits finds what a test must not do: wait for real time, which is slow where it is long and wrong where it is short, and
// skip, which hides a hole.
func Habits(files []File) []string {
	var bad []string
	for _, f := range files {
		if !f.Test() {
			continue
		}
		for _, n := range selections(f.Syntax, "time", "Sleep") {
			bad = append(bad, f.at(n)+": time.Sleep in a test: use virtual time, or wait for the event itself")
		}
		for _, n := range selections(f.Syntax, "", "Skip", "Skipf", "SkipNow") {
			bad = append(bad, f.at(n)+": a skipped test hides a hole")
		}
	}
	return bad
}

// selections is every x.name under root, of any x where x is empty.
func selections(root ast.Node, x string, names ...string) []ast.Node {
	var found []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, sel.Sel.Name) {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && (x == "" || id.Name == x) {
			found = append(found, sel)
		}
		return true
	})
	return found
}
