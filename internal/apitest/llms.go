package apitest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// packageLine begins each block of declarations: package retry // import "github.com/fairlead/fairlead/leaf/retry"
var packageLine = regexp.MustCompile(`^package \w+ // import "([^"]+)"\n`)

// Declared is the API that a text declares: each of its go blocks begins with a package line and goes on with declarations without
// bodies, which are type-checked against the real packages. Imports are implied. A package may have several blocks.
func (p *Project) Declared(markdown string) (API, error) {
	fset := token.NewFileSet()
	files := map[string][]*ast.File{}
	for _, f := range FencesOf(markdown, "go") {
		m := packageLine.FindStringSubmatch(f.Text)
		if m == nil {
			return nil, fmt.Errorf("line %d: a go block has to begin with: package name // import \"path\"", f.Line)
		}
		syntax, err := p.parse(fset, m[1], f)
		if err != nil {
			return nil, err
		}
		files[m[1]] = append(files[m[1]], syntax)
	}
	api := API{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		pkg, err := check(fset, path, files[path], p)
		if err != nil {
			return nil, err
		}
		api[Dir(pkg)] = Lines(pkg)
	}
	return api, nil
}

// parse gives a block the imports that it implies: of what the real package imports, those whose names it uses.
func (p *Project) parse(fset *token.FileSet, path string, f Fence) (*ast.File, error) {
	first, rest, _ := strings.Cut(f.Text, "\n")
	imports := ""
	if real := p.Package(strings.TrimPrefix(path, Module+"/")); real != nil {
		for _, used := range imported(real) {
			if regexp.MustCompile(`\b` + used.Name() + `\.[A-Z]`).MatchString(rest) {
				imports += fmt.Sprintf("import %q\n", used.Path())
			}
		}
	}
	src := fmt.Sprintf("%s\n%s//line line:%d\n%s", first, imports, f.Line+1, rest)
	return parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
}

// imported is the packages that pkg's exported declarations name.
func imported(pkg *types.Package) []*types.Package {
	seen := map[string]*types.Package{}
	qualify := func(other *types.Package) string {
		if other != pkg {
			seen[other.Path()] = other
		}
		return ""
	}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		types.ObjectString(obj, qualify)
		if named, ok := obj.Type().(*types.Named); ok {
			for i := range named.NumMethods() {
				types.ObjectString(named.Method(i), qualify)
			}
		}
	}
	var all []*types.Package
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, seen[path])
	}
	return all
}

// Untold compares what a text declares with the API: a package or a line that only one of them has. Struct tags are left out.
func (api API) Untold(declared API) []string {
	var bad []string
	for _, dir := range slices.Sorted(maps.Keys(api)) {
		if _, ok := declared[dir]; !ok {
			bad = append(bad, dir+": the package is missing")
			continue
		}
		for _, d := range Diff(untagged(declared[dir]), untagged(api[dir])) {
			bad = append(bad, dir+": "+d)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(declared)) {
		if _, ok := api[dir]; !ok {
			bad = append(bad, dir+": there is no such package")
		}
	}
	return bad
}

func untagged(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, tagMark) })
}
