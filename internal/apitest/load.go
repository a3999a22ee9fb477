package apitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the path of the root module.
const Module = "github.com/fairlead/fairlead"

// Project is the exported side of a module, and of what it depends on.
type Project struct {
	Root     string
	packages []*types.Package
	exports  map[string]string // an import path's file of export data
	importer types.Importer
}

// Load asks the go command in root for the export data of every package and its dependencies (it compiles what is not in
// the build cache), so that nothing is parsed or guessed here.
func Load(root string) (*Project, error) {
	cmd := exec.Command("go", "list", "-e", "-export", "-deps", "-json=ImportPath,Name,Export,GoFiles,Error,DepsErrors", "./...")
	cmd.Dir = root
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n%s", root, err, &problems)
	}
	p := &Project{Root: root, exports: map[string]string{}}
	p.importer = importer.ForCompiler(token.NewFileSet(), "gc", p.open)
	var public []string
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath, Name, Export string
			GoFiles                  []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		p.exports[pkg.ImportPath] = pkg.Export
		if Public(pkg.ImportPath) && len(pkg.GoFiles) > 0 {
			public = append(public, pkg.ImportPath)
		}
	}
	slices.Sort(public)
	for _, path := range public {
		pkg, err := p.importer.Import(path)
		if err != nil {
			return nil, fmt.Errorf("%w (does it compile?)\n%s", err, &problems)
		}
		p.packages = append(p.packages, pkg)
	}
	return p, nil
}

// open is the file of export data that the importer asks for.
func (p *Project) open(path string) (io.ReadCloser, error) {
	file := p.exports[path]
	if file == "" {
		return nil, fmt.Errorf("no export data for %s", path)
	}
	return os.Open(file)
}

// Import implements types.Importer.
func (p *Project) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return p.importer.Import(path)
}

// Public says whether a user may import the package: it is the module's, not internal, and no example.
func Public(importPath string) bool {
	dir, ok := strings.CutPrefix(importPath, Module+"/")
	return ok && !slices.Contains(strings.Split(dir, "/"), "internal") && !strings.HasPrefix(dir, "examples/")
}

// Packages is the public packages, sorted by path.
func (p *Project) Packages() []*types.Package { return p.packages }

// Package is the public package of that directory, or nil.
func (p *Project) Package(dir string) *types.Package {
	i := slices.IndexFunc(p.packages, func(pkg *types.Package) bool { return Dir(pkg) == dir })
	if i < 0 {
		return nil
	}
	return p.packages[i]
}

// Dir is a package's directory from the module's root, with slashes.
func Dir(pkg *types.Package) string { return strings.TrimPrefix(pkg.Path(), Module+"/") }

// GoldenPath is where the package's golden is.
func (p *Project) GoldenPath(pkg *types.Package) string {
	return filepath.Join(p.Root, filepath.FromSlash(Dir(pkg)), "testdata", "api.txt")
}
