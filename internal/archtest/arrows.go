package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// What lies outside the module and the standard library, and may be imported somewhere.
const (
	clockworkModule = "github.com/jonboulle/clockwork"
	goRedisModule   = "github.com/redis/go-redis/v9"
	yamlModule      = "go.yaml.in/yaml/v3"
	testifyModule   = "github.com/stretchr/testify"
	goleakModule    = "go.uber.org/goleak"
)

// layer is what the packages that match it may import besides the standard library.
type layer struct {
	match   string   // a pattern of path.Match, or a prefix with /...
	module  []string // patterns of packages of the module; "^" is the package that contains it
	outside []string // modules
	tests   []string // patterns of what its tests may import besides
}

// layers is section 1 of the design; the first match counts. A package that no row matches is a violation:
// a new one has to be placed.
var layers = []layer{
	{match: "leaf", module: []string{"internal/..."}},
	{match: "leaf/guardtest", module: []string{"leaf", "rejection", "internal/..."}, outside: []string{clockworkModule}, tests: []string{"leaf/..."}},
	{match: "leaf/retry", module: []string{"leaf", "budget", "internal/..."}, outside: []string{clockworkModule}},
	{match: "leaf/*", module: []string{"leaf", "internal/..."}, outside: []string{clockworkModule}},
	{match: "leaf/*/redis*", module: []string{"^", "leaf", "internal/..."}, outside: []string{clockworkModule, goRedisModule}},
	{match: "budget", module: []string{"internal/..."}, outside: []string{clockworkModule}},
	{match: "rejection", module: []string{"internal/..."}, outside: []string{clockworkModule}},
	{match: "pipeline", module: []string{"leaf", "leaf/retry", "leaf/timeout", "budget", "rejection", "internal/..."}, outside: []string{clockworkModule}, tests: []string{"leaf/..."}},
	{match: "pipeline/registry", module: belowPipeline, outside: []string{clockworkModule, goRedisModule, yamlModule}},
	{match: "pipeline/console/browsertest", module: public}, // a module of its own, which knows what a user knows
	{match: "pipeline/*", module: belowPipeline, outside: []string{clockworkModule}},
	{match: "internal/redisscript", module: []string{"leaf", "internal/..."}, outside: []string{clockworkModule, goRedisModule}},
	{match: "internal/redistest", module: []string{"internal/..."}, outside: []string{goRedisModule}},
	{match: testServers, module: []string{"internal/..."}, outside: []string{goRedisModule}},
	{match: "internal/...", module: []string{"leaf", "internal/..."}, outside: []string{clockworkModule}},
	// Examples show what a user can do, and a user has no internal packages.
	{match: "examples/fleet", module: slices.Concat(public, []string{"examples/..."}), outside: []string{clockworkModule, goRedisModule}},
	{match: "examples/readme", module: slices.Concat(public, []string{"examples/..."}), outside: []string{clockworkModule, goRedisModule}},
	{match: "examples/...", module: slices.Concat(public, []string{"examples/..."}), outside: []string{clockworkModule}},
	{match: "."}, // tests alone
}

// testServers imports testing, and starts processes.
const testServers = "internal/redistest"

// What a user may import, and with what the module itself may: all that a package beside the pipeline can use.
var (
	public        = []string{"pipeline/...", "leaf/...", "budget", "rejection"}
	belowPipeline = slices.Concat(public, []string{"internal/..."})
)

// inTests is what any test may import besides: tests speak of refusals, run the conformance suite, and check themselves.
var inTests = layer{
	module:  []string{"leaf/guardtest", "rejection", "internal/..."},
	outside: []string{clockworkModule, testifyModule, goleakModule},
}

// Arrows finds imports that point the wrong way.
func Arrows(files []File) []string {
	var bad []string
	for _, f := range files {
		l, ok := layerOf(f.Dir())
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: no layer has a place for package %s", f.Path, f.Dir()))
			continue
		}
		for _, p := range f.Imports() {
			if !l.allows(f, p) {
				bad = append(bad, fmt.Sprintf("%s: %s may not import %s", f.Path, f.Dir(), p))
			}
		}
	}
	return bad
}

func layerOf(dir string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return matches(l.match, dir) })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

func (l layer) allows(f File, importPath string) bool {
	if standard(importPath) {
		return true
	}
	dir, ok := inModule(importPath)
	if !ok {
		// A module of its own has its own go.mod to answer for what lies outside.
		return f.Nested || within(l.outside, importPath) || f.Test() && within(inTests.outside, importPath)
	}
	if dir == f.Dir() { // an external test
		return f.Test()
	}
	if dir == testServers && !f.Test() {
		return false
	}
	allowed := l.module
	if f.Test() {
		allowed = slices.Concat(allowed, inTests.module, l.tests)
	}
	return slices.ContainsFunc(allowed, func(pattern string) bool {
		if pattern == "^" {
			pattern = path.Dir(f.Dir())
		}
		return matches(pattern, dir)
	})
}

// matches knows path.Match and the go command's trailing /... .
func matches(pattern, dir string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == prefix || strings.HasPrefix(dir, prefix+"/")
	}
	ok, err := path.Match(pattern, dir)
	return ok && err == nil
}

// within says whether importPath belongs to one of the modules.
func within(modules []string, importPath string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return importPath == m || strings.HasPrefix(importPath, m+"/")
	})
}
