package apitest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = "# Title\n\nSee `retry.New` and `x`.\n\n```go\nfunc f() {\n}\n```\n\ntext\n\n```\n`not a span`\n```\n\n`rejection.Is(err)` ends.\n"

func TestFencesKeepTheirTextToTheByte(t *testing.T) {
	assert.Equal(t, []Fence{
		{Lang: "go", Line: 6, Text: "func f() {\n}\n"},
		{Lang: "", Line: 13, Text: "`not a span`\n"},
	}, Fences(page))
	assert.Len(t, FencesOf(page, "go"), 1)
}

func TestSpansAreInlineCodeAlone(t *testing.T) {
	assert.Equal(t, []string{"retry.New", "x", "rejection.Is(err)"}, Spans(page))
}

func TestDanglingFindsNamesThatAreNotThere(t *testing.T) {
	p := loaded(t)
	assert.Empty(t, p.Dangling("`retry.New` `retry.Config.MaxAttempts` `*retry.Error` `pipeline.Do(ctx, p, fn)` `leaf.Permit.Settle` "+
		"`http.NoBody` `some.Thing` `v1.retry.Nothing` retry.Gone"))
	assert.Equal(t, []string{"retry.Gone", "retry.Config.Gone", "errors.Is(err, breaker.ErrGone)"},
		p.Dangling("`retry.Gone` `retry.Config.Gone` `errors.Is(err, breaker.ErrGone)`"))
}

// declared is what a text with one block declares; the block begins with the package line of rejection.
func declared(t *testing.T, declarations string) (API, error) {
	t.Helper()
	return loaded(t).Declared("```go\npackage rejection // import \"" + Module + "/rejection\"\n" + declarations + "```\n")
}

func TestDeclaredReadsDeclarationsWithoutBodies(t *testing.T) {
	api, err := declared(t, "func Is(err error) bool // one\n\nfunc RetryAfter(err error) (time.Duration, bool)\nfunc SetHeader(h http.Header, err error) bool\n")
	require.NoError(t, err)
	assert.Equal(t, API{"rejection": {
		"func Is(error) bool", "func RetryAfter(error) (time.Duration, bool)", "func SetHeader(http.Header, error) bool",
	}}, api)
}

func TestDeclaredSaysWhereATextIsNoGo(t *testing.T) {
	_, err := declared(t, "func Is(err error) bool\nfunc Is2(\n")
	assert.ErrorContains(t, err, "line:4: ")
	_, err = declared(t, "func Is(err Error) bool\n")
	assert.ErrorContains(t, err, "line:3: ")
	_, err = loaded(t).Declared("```go\nfunc Is(err error) bool\n```\n")
	assert.ErrorContains(t, err, "line 2")
}

func TestUntoldFindsBothSides(t *testing.T) {
	api := API{"leaf": {"func Do()", "type S struct, A int", "type S struct, A" + tagMark + "`json:\"a\"`"}, "budget": {"func Left()"}}
	assert.Empty(t, api.Untold(API{"leaf": {"func Do()", "type S struct, A int"}, "budget": {"func Left()"}}), "tags are left out")
	assert.Equal(t, []string{"budget: the package is missing", "leaf: - func Gone()", "leaf: + func Do()", "old: there is no such package"},
		api.Untold(API{"leaf": {"func Gone()", "type S struct, A int"}, "old": {}}))
}

func TestLinksAreFilesAlone(t *testing.T) {
	assert.Equal(t, []string{"llms.txt", "leaf/doc.go"},
		Links("[a](llms.txt), [b](leaf/doc.go#L3), [c](https://example.org/x), [d](#here)\n```go\nf[int](x)\n```\n`g[int](y)`"))
}
