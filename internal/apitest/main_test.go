package apitest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// project is loaded once: it asks the go command.
var project = sync.OnceValues(func() (*Project, error) { return Load("../..") })

func loaded(t *testing.T) *Project {
	t.Helper()
	p, err := project()
	require.NoError(t, err)
	return p
}

// compiled is a package that was never written to a disk.
func compiled(t *testing.T, path, src string, imports types.Importer) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", src, 0)
	require.NoError(t, err)
	pkg, err := check(fset, path, []*ast.File{f}, imports)
	require.NoError(t, err)
	return pkg
}
