package apitest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLoadFindsThePublicPackagesAlone(t *testing.T) {
	p := loaded(t)
	var dirs []string
	for _, pkg := range p.Packages() {
		dirs = append(dirs, Dir(pkg))
	}
	assert.Contains(t, dirs, "leaf")
	assert.Contains(t, dirs, "leaf/retry")
	assert.Contains(t, dirs, "pipeline")
	for _, dir := range dirs {
		assert.NotRegexp(t, `^(internal|examples)(/|$)`, dir)
	}
	assert.Nil(t, p.Package("internal/apitest"))
}

func TestPublicIsWhatAUserMayImport(t *testing.T) {
	for path, want := range map[string]bool{
		Module + "/leaf":                 true,
		Module + "/pipeline/httpx":       true,
		Module + "/internal/clock":       false,
		Module + "/leaf/internal/x":      false,
		Module + "/examples/quickstart":  false,
		Module:                           false,
		"github.com/jonboulle/clockwork": false,
		"context":                        false,
	} {
		assert.Equal(t, want, Public(path), path)
	}
}
