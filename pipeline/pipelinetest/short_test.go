package pipelinetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// "each a test of under 20 lines": the recipes are short enough to be copied.
func TestTheRecipesAreShorterThan20Lines(t *testing.T) {
	tests := 0
	for _, name := range []string{"recipes_test.go", "fakeclock_test.go"} {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			tests++
			if lines := files.Position(fn.End()).Line - files.Position(fn.Pos()).Line + 1; lines >= 20 {
				t.Errorf("%s has %d lines", fn.Name.Name, lines)
			}
		}
	}
	if tests != 9 {
		t.Errorf("%d recipes", tests)
	}
}
