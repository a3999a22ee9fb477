package apitest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Source type-checks packages that are there as source alone, bodies ignored: the contract, and the declarations of llms.txt.
type Source struct {
	root    string         // of the packages that are read from a directory
	outside types.Importer // knows everything else
	fset    *token.FileSet
	checked map[string]*types.Package
}

// NewSource reads the packages of the module from the directory root, and everything else from outside.
func NewSource(root string, outside types.Importer) *Source {
	return &Source{root: root, outside: outside, fset: token.NewFileSet(), checked: map[string]*types.Package{}}
}

// Dirs is the directories below the root that hold a package, sorted.
func (s *Source) Dirs() ([]string, error) {
	var dirs []string
	err := fs.WalkDir(os.DirFS(s.root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".go" {
			dirs = append(dirs, path.Dir(name))
		}
		return err
	})
	slices.Sort(dirs)
	return slices.Compact(dirs), err
}

// Import implements types.Importer.
func (s *Source) Import(importPath string) (*types.Package, error) {
	dir, ok := strings.CutPrefix(importPath, Module+"/")
	if !ok {
		return s.external(importPath)
	}
	if pkg := s.checked[importPath]; pkg != nil {
		return pkg, nil
	}
	names, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(dir), "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no package %s under %s", dir, s.root)
	}
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	pkg, err := check(s.fset, importPath, files, s)
	if err != nil {
		return nil, err
	}
	s.checked[importPath] = pkg
	return pkg, nil
}

// external imports from outside. Of go-redis the contract names one type, and it names it before anybody needs the module.
func (s *Source) external(importPath string) (*types.Package, error) {
	pkg, err := s.outside.Import(importPath)
	if err == nil || importPath != goRedis {
		return pkg, err
	}
	if pkg = s.checked[importPath]; pkg == nil {
		pkg = types.NewPackage(importPath, "redis")
		client := types.NewTypeName(token.NoPos, pkg, "UniversalClient", nil)
		types.NewNamed(client, types.NewInterfaceType(nil, nil), nil)
		pkg.Scope().Insert(client)
		pkg.MarkComplete()
		s.checked[importPath] = pkg
	}
	return pkg, nil
}

const goRedis = "github.com/redis/go-redis/v9"

// check type-checks declarations; functions may lack a body.
func check(fset *token.FileSet, importPath string, files []*ast.File, imports types.Importer) (*types.Package, error) {
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil {
				fn.Body = &ast.BlockStmt{} // a generic function must have one
			}
		}
	}
	conf := types.Config{Importer: imports, IgnoreFuncBodies: true, DisableUnusedImportCheck: true}
	return conf.Check(importPath, fset, files, nil)
}
