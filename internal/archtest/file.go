package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Module is the path of the root module.
const Module = "github.com/fairlead/fairlead"

// File is one Go file.
type File struct {
	Path   string // from the module's root, with slashes
	Lines  int
	Syntax *ast.File
	Nested bool // it belongs to a module of its own below the root

	fset *token.FileSet
}

// Parse reads one file; name is its path from the module's root.
func Parse(name string, src []byte) (File, error) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, err
	}
	lines := strings.Count(string(src), "\n")
	if len(src) > 0 && src[len(src)-1] != '\n' {
		lines++
	}
	return File{Path: name, Lines: lines, Syntax: syntax, fset: fset}, nil
}

// Load reads every Go file under root, as the go command would find them: no testdata, nothing hidden.
func Load(root string) ([]File, error) {
	var files []File
	nested := map[string]bool{} // directories of modules of their own
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if base := d.Name(); rel != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			nested[rel] = rel != "." && (err == nil || nested[path.Dir(rel)])
			return nil
		}
		if path.Ext(rel) != ".go" {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := Parse(rel, src)
		if err != nil {
			return err
		}
		f.Nested = nested[path.Dir(rel)]
		files = append(files, f)
		return nil
	})
	return files, err
}

// Dir is the file's directory from the root: its package's path in the module, "." for the root.
func (f File) Dir() string { return path.Dir(f.Path) }

// Test says whether it is a test file.
func (f File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Imports is its import paths.
func (f File) Imports() []string {
	paths := make([]string, 0, len(f.Syntax.Imports))
	for _, spec := range f.Syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// at is a place in the file, for a violation.
func (f File) at(n ast.Node) string {
	return f.Path + ":" + strconv.Itoa(f.fset.Position(n.Pos()).Line)
}

// inModule is an import path from the module's root; ok is false for what lies outside.
func inModule(importPath string) (dir string, ok bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}

// standard says whether an import path is of the standard library: its first element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
