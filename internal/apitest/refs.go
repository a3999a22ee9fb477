package apitest

import (
	"go/types"
	"regexp"
)

// reference is a name as prose writes it: retry.New, breaker.Config.Window, rejection.Is(err).
var reference = regexp.MustCompile(`(?:^|[^\w.])([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// Dangling is the names in the text's inline code that begin with a package of the project and are not there.
func (p *Project) Dangling(markdown string) []string {
	byName := map[string]*types.Package{}
	for _, pkg := range p.packages {
		byName[pkg.Name()] = pkg
	}
	var bad []string
	for _, span := range Spans(markdown) {
		for _, m := range reference.FindAllStringSubmatch(span, -1) {
			if pkg := byName[m[1]]; pkg != nil && !exists(pkg, m[2], m[3]) {
				bad = append(bad, span)
			}
		}
	}
	return bad
}

// exists says whether pkg exports name, and member of it where member is not empty.
func exists(pkg *types.Package, name, member string) bool {
	obj := pkg.Scope().Lookup(name)
	if obj == nil || member == "" {
		return obj != nil
	}
	found, _, _ := types.LookupFieldOrMethod(obj.Type(), true, pkg, member)
	return found != nil
}
