package apitest

import (
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// SourceAPI is what the packages below root export; outside knows what they import from elsewhere.
func SourceAPI(root string, outside types.Importer) (API, error) {
	src := NewSource(root, outside)
	dirs, err := src.Dirs()
	if err != nil {
		return nil, err
	}
	api := API{}
	for _, dir := range dirs {
		pkg, err := src.Import(Module + "/" + dir)
		if err != nil {
			return nil, err
		}
		api[dir] = Lines(pkg)
	}
	return api, nil
}

// ReadContract reads what WriteContract wrote to dir: a file of lines per package.
func ReadContract(dir string) (API, error) {
	api := API{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		pkg, ok := strings.CutSuffix(name, ".txt")
		if err != nil || !ok {
			return err
		}
		api[pkg], err = ReadLines(filepath.Join(dir, filepath.FromSlash(name)))
		return err
	})
	return api, err
}

// WriteContract writes api to dir.
func WriteContract(dir string, api API) error {
	for pkg, lines := range api {
		if err := WriteLines(filepath.Join(dir, filepath.FromSlash(pkg)+".txt"), lines); err != nil {
			return err
		}
	}
	return nil
}

// Breaches is what the contract promises and api does not keep. More may be exported, nothing less. A package of a guard that
// is shared through Redis counts once it exists.
func (contract API) Breaches(api API) []string {
	var bad []string
	for _, dir := range slices.Sorted(maps.Keys(contract)) {
		lines, ok := api[dir]
		if !ok {
			if !strings.HasPrefix(path.Base(dir), "redis") {
				bad = append(bad, dir+": the package does not exist")
			}
			continue
		}
		for _, l := range contract[dir] {
			if !slices.Contains(lines, l) {
				bad = append(bad, dir+": the contract has "+l)
			}
		}
	}
	return bad
}
