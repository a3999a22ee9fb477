package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLongFindsTheFirstLineTooMuch(t *testing.T) {
	long := func(path string, lines int) []File {
		return []File{file(t, path, "package p\n"+strings.Repeat("\n", lines-1))}
	}
	assert.Empty(t, Long(long("leaf/a.go", MaxLines)))
	assert.Equal(t, []string{"leaf/a.go: 401 lines, at most 400"}, Long(long("leaf/a.go", MaxLines+1)))
	assert.Empty(t, Long(long("leaf/a_test.go", MaxLines+1)))
	unended := file(t, "leaf/a.go", "package p\n"+strings.Repeat("\n", MaxLines-1)+"//")
	assert.Len(t, Long([]File{unended}), 1, "a last line without an end is a line")
}

func TestUndocumentedWantsOneCommentPerPackage(t *testing.T) {
	doc := file(t, "leaf/doc.go", "// Package leaf is one.\npackage leaf\n")
	other := file(t, "leaf/a.go", "package leaf\n")
	detached := file(t, "budget/a.go", "// A comment of the file.\n\npackage budget\n")
	inTest := file(t, "rejection/a_test.go", "// Package rejection is only tests here.\npackage rejection\n")
	assert.Empty(t, Undocumented([]File{other, doc}))
	assert.Empty(t, Undocumented([]File{inTest}), "a package of tests alone documents nothing")
	assert.Equal(t, []string{"budget: no package comment", "leaf: no package comment"}, Undocumented([]File{other, detached}))
}

func TestLeakyWantsATestMainThatLooks(t *testing.T) {
	some := file(t, "leaf/a_test.go", "package leaf\nfunc TestA(t *testing.T) {}\n")
	looks := file(t, "leaf/main_test.go", "package leaf\nfunc TestMain(m *testing.M) { goleak.VerifyTestMain(m) }\n")
	blind := file(t, "leaf/main_test.go", "package leaf\nfunc TestMain(m *testing.M) { m.Run() }\n")
	method := file(t, "leaf/main_test.go", "package leaf\nfunc (s) TestMain(m *testing.M) { goleak.VerifyTestMain(m) }\n")
	want := []string{"leaf: tests without a TestMain that calls goleak.VerifyTestMain"}
	assert.Empty(t, Leaky([]File{some, looks}))
	assert.Empty(t, Leaky([]File{file(t, "leaf/a.go", "package leaf\n")}), "no tests, nothing to watch")
	assert.Equal(t, want, Leaky([]File{some}))
	assert.Equal(t, want, Leaky([]File{some, blind}))
	assert.Equal(t, want, Leaky([]File{some, method}))
}

func TestHabitsFindSleepsAndSkips(t *testing.T) {
	body := func(path, call string) []File {
		return []File{file(t, path, "package p\nfunc f() {\n\t"+call+"\n}\n")}
	}
	sleep := "time." + "Sleep(1)" // in two parts, so that a search of the sources for it finds sleeps alone
	assert.Equal(t, []string{"p/a_test.go:3: time.Sleep in a test: use virtual time, or wait for the event itself"},
		Habits(body("p/a_test.go", sleep)))
	for _, call := range []string{"Skip()", "SkipNow()", `Skipf("later")`} {
		assert.Equal(t, []string{"p/a_test.go:3: a skipped test hides a hole"}, Habits(body("p/a_test.go", "t."+call)), call)
	}
	assert.Len(t, Habits(body("p/a_test.go", "wait := time."+"Sleep; wait(1)")), 1, "not called, but meant")
	assert.Empty(t, Habits(body("p/a.go", sleep)), "a program may sleep")
	assert.Empty(t, Habits(body("p/a_test.go", "budget.Sleep(ctx, clock, 1)")))
	assert.Empty(t, Habits(body("p/a_test.go", "s := `"+sleep+"`")))
}

func TestStrayFindsWhatTheLayoutDoesNotKnow(t *testing.T) {
	assert.Empty(t, Stray([]string{"go.mod", "leaf", "pipeline", "README.md", ".ci", "arch_test.go"}, nil))
	assert.Empty(t, Stray([]string{"cpu.prof"}, []string{"*.prof"}))
	assert.Equal(t, []string{"util: the top level has no place for it", "doc.go: the top level has no place for it"},
		Stray([]string{"util", "go.sum", "doc.go"}, []string{"*.prof"}))
}

func TestLoadReadsThisPackageAsTheGoCommandDoes(t *testing.T) {
	files, err := Load("../..")
	require.NoError(t, err)
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
		assert.NotContains(t, f.Path, "testdata")
	}
	assert.Contains(t, paths, "internal/archtest/file.go")
	assert.Contains(t, paths, "internal/archtest/files_test.go")
}

func TestLoadKnowsAModuleBelowTheRoot(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m", "a.go": "package a",
		"own/go.mod": "module own", "own/b.go": "package b", "own/sub/c.go": "package c",
		".hidden/d.go": "package d", "testdata/e.go": "package e", "_old/f.go": "package f",
	} {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	files, err := Load(root)
	require.NoError(t, err)
	nested := map[string]bool{}
	for _, f := range files {
		nested[f.Path] = f.Nested
	}
	assert.Equal(t, map[string]bool{"a.go": false, "own/b.go": true, "own/sub/c.go": true}, nested)
}

func TestParseSaysWhatIsNoGo(t *testing.T) {
	_, err := Parse("leaf/a.go", []byte("package"))
	assert.ErrorContains(t, err, "leaf/a.go")
}
