package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/registry"
)

func anyone(*http.Request) bool { return true }

func TestWhatIsWrongWithTheArgumentsIsSaidAtOnce(t *testing.T) {
	_, err := Handler(nil, nil, AllowControl(nil), WithJournal(nil), WithErrorText(nil))
	for _, want := range []string{
		"console: source is nil: want a registry, or console.Pipelines(…)", "console: an option is nil", "AllowControl's authorize is nil: want a function",
		"WithJournal's journal is nil", "WithErrorText's text is nil",
	} {
		require.ErrorContains(t, err, want)
	}
	c, err := Handler(Pipelines(pipeline.For("p").MustBuild(), nil))
	require.Nil(t, c, "nothing to mount by mistake, nor to close")
	require.ErrorContains(t, err, "console: pipeline 2 is nil: want a pipeline")
	var none *registry.Registry
	_, err = Handler(none)
	require.ErrorContains(t, err, "source is a nil *registry.Registry")
}

// "strict CSP, embedded assets only, no external request"
func TestEveryAnswerHasTheStrictPolicy(t *testing.T) {
	c := started(t, Pipelines())
	for _, target := range []string{"/", "/main.js", "/state.json", "/series.json", "/settings.json", "/control", "/no-such-thing"} {
		h := get(c, target).Header()
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "+
			"form-action 'self'; frame-ancestors 'none'", h.Get("Content-Security-Policy"), target)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
	}
}

// A file that is missing, or inline code that the policy would stop, would leave the page empty.
func TestThePagesOwnFilesAreAllThereAndNothingIsInline(t *testing.T) {
	c := started(t, Pipelines(), AllowControl(anyone))
	page := get(c, "/").Body.String()
	require.NotRegexp(t, regexp.MustCompile(`(?i)\son[a-z]+=|\sstyle=|<style|javascript:|https?://`), page)
	links := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(page, -1)
	require.Greater(t, len(links), 5)
	seen := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		require.NotContains(t, name, "/", "flat and relative, so that any prefix does")
		w := get(c, "/x/"+name)
		require.Equal(t, http.StatusOK, w.Code, name)
		if path.Ext(name) == ".js" {
			for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
				follow(m[1])
			}
		}
	}
	for _, l := range links {
		follow(l[1])
	}
	entries, err := assets.ReadDir("assets")
	require.NoError(t, err)
	for _, e := range entries {
		if path.Ext(e.Name()) == ".html" {
			continue
		}
		assert.True(t, seen[e.Name()], "%s is embedded and not used", e.Name())
		b, err := assets.ReadFile("assets/" + e.Name())
		require.NoError(t, err)
		assert.LessOrEqual(t, strings.Count(string(b), "\n"), 400, e.Name())
		assert.NotRegexp(t, regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function`), string(b), e.Name())
		assert.NotRegexp(t, regexp.MustCompile(`https?://`), strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", ""), e.Name())
	}
}

func TestItIsMountedUnderAnyPrefix(t *testing.T) {
	c := started(t, Pipelines())
	mux := http.NewServeMux()
	mux.Handle("/debug/fairlead/", c)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", c))
	mux.Handle("/bare", http.StripPrefix("/bare", c))
	for _, target := range []string{"/debug/fairlead/", "/stripped/"} {
		require.Contains(t, get(mux, target).Body.String(), "<title>Fairlead console</title>")
		require.Contains(t, get(mux, target+"main.js").Body.String(), "import")
		require.Equal(t, "application/json; charset=utf-8", get(mux, target+"state.json").Header().Get("Content-Type"))
	}
	require.Equal(t, "/debug/fairlead/", get(mux, "/debug/fairlead").Header().Get("Location"))
	w := get(mux, "/bare")
	require.Equal(t, http.StatusPermanentRedirect, w.Code)
	require.Equal(t, "./bare/", w.Header().Get("Location"), "relative links need the slash")
}

func TestFilesAreKeptByTheBrowserAndAskedForAgain(t *testing.T) {
	c := started(t, Pipelines())
	first := get(c, "/main.js")
	tag := first.Header().Get("ETag")
	require.NotEmpty(t, tag)
	require.Equal(t, "no-cache, private", first.Header().Get("Cache-Control"))
	again := httptest.NewRequest(http.MethodGet, "/main.js", nil)
	again.Header.Set("If-None-Match", tag)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, again)
	require.Equal(t, http.StatusNotModified, w.Code)
	require.Empty(t, w.Body.String())
	require.Equal(t, "no-store", get(c, "/state.json").Header().Get("Cache-Control"))
}

func TestOtherMethodsAreNotAllowed(t *testing.T) {
	c := started(t, Pipelines())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "ODD"} {
		for _, target := range []string{"/", "/state.json", "/stream", "/main.js"} {
			w := httptest.NewRecorder()
			c.ServeHTTP(w, httptest.NewRequest(method, target, nil))
			require.Equal(t, http.StatusMethodNotAllowed, w.Code, "%s %s", method, target)
			require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
		}
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/stream", nil))
	require.Equal(t, http.StatusOK, w.Code, "a HEAD ends")
}

// What comes from outside is JSON's text, and JSON's text cannot become markup either.
func TestHostileNamesAreTexts(t *testing.T) {
	hostile := "<script>alert(1)</script>\x00\u202e\"'&" + strings.Repeat("x", 5000) + "\xff"
	c := started(t, Pipelines(pipeline.For(hostile).MustBuild()))
	body := get(c, "/state.json").Body.String()
	require.NotContains(t, body, "<")
	require.NotContains(t, body, "\u202e", "nothing turns the direction of what follows")
	row := parse(t, []byte(body)).Rows[0]
	require.True(t, strings.HasPrefix(row.Name, "<script>alert(1)</script>"))
	require.LessOrEqual(t, len(row.Name), longestName)
	require.True(t, strings.HasSuffix(row.Name, "…"))
}

func TestCurvesAreAskedForByNumber(t *testing.T) {
	c := started(t, Pipelines(pipeline.For("p").MustBuild()))
	require.Equal(t, http.StatusOK, get(c, "/series.json?id=1").Code)
	for target, want := range map[string]int{"/series.json": 400, "/series.json?id=x": 400, "/series.json?id=7": 404} {
		w := get(c, target)
		require.Equal(t, want, w.Code, target)
		require.Contains(t, w.Body.String(), `{"error":"id is`)
	}
	var got map[string]any
	require.NoError(t, json.Unmarshal(get(c, "/series.json?id=1").Body.Bytes(), &got))
	require.Len(t, got["calls"], kept)
	require.Len(t, got["p99"], kept)
}

// "Registry settings if a registry is given."
func TestARegistryIsShownWithItsSettings(t *testing.T) {
	reg, err := registry.LoadYAML(strings.NewReader("resilience:\n  bulkhead: { db: { max-concurrent: 3 } }\n  pipelines: { b: { bulkhead: db }, a: { timeout: 1s } }\n"))
	require.NoError(t, err)
	defer func() { require.NoError(t, reg.Close()) }()
	c := started(t, reg)
	rows := state(t, c).Rows
	require.Equal(t, []string{"a", "b"}, []string{rows[0].Name, rows[1].Name})
	var got []setting
	require.NoError(t, json.Unmarshal(get(c, "/settings.json").Body.Bytes(), &got))
	require.Contains(t, got, setting{"bulkhead", "db", "max-concurrent", "3", false})
	require.Contains(t, got, setting{"pipelines", "a", "timeout", "1s", false})
	require.Contains(t, got, setting{"bulkhead", "db", "max-wait", "0s", true})
	n := 0
	reg.EachSetting(func(string, string, string, string, bool) bool { n++; return n < 3 })
	require.Equal(t, 3, n, "until it is told to stop")
	require.Equal(t, "[]", get(started(t, Pipelines()), "/settings.json").Body.String())
}

func TestAClosedConsoleSaysSo(t *testing.T) {
	c, err := Handler(Pipelines(pipeline.For("p").MustBuild()))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "it is idempotent")
	require.Equal(t, http.StatusServiceUnavailable, get(c, "/").Code)
}
