package console

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// "path only, keep the query": whoever asks without the slash gets the page with it, after one redirect.
func TestThePageIsFoundWithoutItsSlash(t *testing.T) {
	c := started(t, Pipelines())
	mux := http.NewServeMux()
	for _, prefix := range []string{"/console", "/debug/live", "/odd%20name"} {
		at := http.StripPrefix(prefix, c)
		if prefix == "/odd%20name" {
			at = http.StripPrefix("/odd name", c)
		}
		mux.Handle(prefix, at)
		mux.Handle(prefix+"/", at)
	}
	mux.Handle("/whole/", http.StripPrefix("/whole/", c))
	for target, want := range map[string]string{
		"/console":                  "/console/",
		"/console?x=1":              "/console/?x=1",
		"/console?from=a/b&to=/c/?": "/console/?from=a/b&to=/c/?",
		"/debug/live?":              "/debug/live/",
		"/odd%20name?x":             "/odd%20name/?x",
		"http://example.com/console?u=http://example.com/": "/console/?u=http://example.com/",
	} {
		first := httptest.NewRequest(http.MethodGet, target, nil)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, first)
		require.Equal(t, http.StatusPermanentRedirect, w.Code, target)
		to, err := first.URL.Parse(w.Header().Get("Location"))
		require.NoError(t, err)
		require.Equal(t, want, to.RequestURI(), target)
		require.Equal(t, first.URL.Host, to.Host)
		require.Equal(t, http.StatusOK, get(mux, to.RequestURI()).Code, target)
	}
	require.Equal(t, http.StatusOK, get(mux, "/whole/?x=1").Code, "a prefix that takes the slash along")
}
