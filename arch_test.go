package fairlead_test

import (
	"flag"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/internal/apitest"
	"github.com/fairlead/fairlead/internal/archtest"
)

var update = flag.Bool("update", false, "write what was found as what is expected: the API goldens, and the contract where ../shared has it")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The rules themselves are tested, on files that break them, in internal/archtest.
func TestArchitecture(t *testing.T) {
	files, err := archtest.Load(".")
	require.NoError(t, err)
	for name, rule := range map[string]func([]archtest.File) []string{
		"imports point down":                    archtest.Arrows,
		"nothing is reached through others":     archtest.Closures,
		"files hold one idea":                   archtest.Long,
		"packages say what they are":            archtest.Undocumented,
		"tests look for leaked goroutines":      archtest.Leaky,
		"tests neither wait for time, nor skip": archtest.Habits,
	} {
		t.Run(name, func(t *testing.T) { assert.Empty(t, rule(files)) })
	}
	t.Run("the top level is the owner's", func(t *testing.T) {
		entries, ignored, err := archtest.Top(".")
		require.NoError(t, err)
		assert.Empty(t, archtest.Stray(entries, ignored))
	})
}

var loadProject = sync.OnceValues(func() (*apitest.Project, error) { return apitest.Load(".") })

func project(t *testing.T) *apitest.Project {
	t.Helper()
	p, err := loadProject()
	require.NoError(t, err)
	return p
}

// The golden of each package changes only on purpose: go test -run TestAPI -update .
func TestAPIIsTheGolden(t *testing.T) {
	p := project(t)
	for _, pkg := range p.Packages() {
		golden, got := p.GoldenPath(pkg), apitest.Lines(pkg)
		if *update {
			require.NoError(t, apitest.WriteLines(golden, got))
		}
		want, err := apitest.ReadLines(golden)
		require.NoError(t, err, "write it with: go test -run TestAPI -update .")
		assert.Empty(t, apitest.Diff(want, got), "%s does not export what its golden says", apitest.Dir(pkg))
	}
}

func TestAPINamesNoInternalPackage(t *testing.T) {
	assert.Empty(t, project(t).API().Leaks())
}

// contract is a copy of what the design promised, so that a clone that is alone checks it too.
var contract = filepath.Join("internal", "apitest", "testdata", "contract")

// Where the design itself lies beside the module, the copy has to be true.
func TestContractIsTheDesigns(t *testing.T) {
	design := filepath.Join("..", "shared", "api")
	if _, err := os.Stat(design); err != nil {
		return // a user's clone: there is nothing to compare with
	}
	promised, err := apitest.SourceAPI(design, project(t))
	require.NoError(t, err)
	if *update {
		require.NoError(t, apitest.WriteContract(contract, promised))
	}
	copied, err := apitest.ReadContract(contract)
	require.NoError(t, err)
	assert.Equal(t, promised, copied, "go test -run TestContract -update .")
}

func TestContractIsKept(t *testing.T) {
	promised, err := apitest.ReadContract(contract)
	require.NoError(t, err)
	require.NotEmpty(t, promised)
	assert.Empty(t, promised.Breaches(project(t).API()))
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

func TestLLMsTextIsTheAPI(t *testing.T) {
	llms := text(t, "llms.txt")
	declared, err := project(t).Declared(llms)
	require.NoError(t, err)
	assert.Empty(t, project(t).API().Untold(declared), "- stands in llms.txt alone, + is exported alone")
	assert.Empty(t, project(t).Dangling(llms), "names in llms.txt that do not exist")
	assert.LessOrEqual(t, strings.Count(llms, "\n"), archtest.MaxLines)
}

// What README.md shows is copied to the byte from examples/readme, which compiles and has tests.
func TestReadmeShowsWhatCompiles(t *testing.T) {
	var sources string
	names, err := filepath.Glob("examples/readme/*.go")
	require.NoError(t, err)
	for _, name := range names {
		sources += text(t, name)
	}
	blocks := apitest.FencesOf(text(t, "README.md"), "go")
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		assert.True(t, strings.Contains(sources, b.Text), "README.md:%d is not in examples/readme:\n%s", b.Line, b.Text)
	}
}

// The first block is a program of 20 lines: all that follows the imports of main.go. What README.md says that it prints is what
// its Example, which go test runs, has to print.
func TestReadmeExampleIsTheProgramThatRuns(t *testing.T) {
	readme := text(t, "README.md")
	block := apitest.FencesOf(readme, "go")[0].Text
	_, program, _ := strings.Cut(text(t, "examples/readme/main.go"), "\n)\n\n")
	assert.Equal(t, program, block)
	lines := 0
	for line := range strings.Lines(block) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	assert.LessOrEqual(t, lines, 20)

	f, err := parser.ParseFile(token.NewFileSet(), "examples/readme/example_test.go", nil, parser.ParseComments)
	require.NoError(t, err)
	examples := doc.Examples(f)
	require.Len(t, examples, 1)
	printed := apitest.FencesOf(readme, "text")
	require.NotEmpty(t, printed)
	assert.Equal(t, examples[0].Output, printed[0].Text)
}

func TestReadmeNamesWhatExists(t *testing.T) {
	readme := text(t, "README.md")
	assert.Empty(t, project(t).Dangling(readme))
	for _, command := range []string{"make test", "go run ./examples/quickstart"} {
		assert.Contains(t, readme, command)
	}
	for _, link := range apitest.Links(readme) {
		_, err := os.Stat(link)
		assert.NoError(t, err, "README.md links to it")
	}
}
