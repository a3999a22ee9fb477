package console

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// policy lets the page use its own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'"

// ServeHTTP serves the page and its files, state.json, series.json?id=…, settings.json, the stream, and control where it is allowed.
// The last segment of the path decides.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if c.life.Err() != nil {
		http.Error(w, "console: it is closed", http.StatusServiceUnavailable)
		return
	}
	_, name := path.Split(r.URL.Path)
	if name == "control" {
		c.control(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	switch name {
	case "state.json":
		c.mu.Lock()
		b := c.frame(0)
		c.mu.Unlock()
		writeJSON(w, http.StatusOK, b)
	case "series.json":
		c.curves(w, r)
	case "settings.json":
		c.settings(w)
	case "stream":
		if r.Method == http.MethodHead {
			h.Set("Content-Type", "text/event-stream; charset=utf-8")
			return
		}
		c.stream(w, r)
	case "":
		if to := withSlash(r); to != "" {
			h.Set("Location", to)
			w.WriteHeader(http.StatusPermanentRedirect)
			return
		}
		c.page(w, r)
	default:
		c.pages.serve(w, r, name, c.authorize != nil)
	}
}

// withSlash is where the page is if StripPrefix left nothing of a path without a slash, which relative links need; "" = here.
func withSlash(r *http.Request) string {
	asked, err := url.ParseRequestURI(r.RequestURI)
	if r.URL.Path != "" || err != nil || asked.Path == "" || strings.HasSuffix(asked.Path, "/") {
		return ""
	}
	to := url.URL{RawQuery: r.URL.RawQuery}
	return "./" + path.Base(asked.EscapedPath()) + "/" + to.String()
}

func (c *Console) page(w http.ResponseWriter, r *http.Request) {
	controls := c.authorize != nil && c.authorize(r)
	c.pages.index(controls).serve(w, r)
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	http.Error(w, "console: the method is not allowed here: want "+allow, http.StatusMethodNotAllowed)
}

func writeJSON(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client's to notice
}

// problem is an error as JSON.
func problem(w http.ResponseWriter, status int, format string, args ...any) {
	writeJSON(w, status, encode(map[string]string{"error": fmt.Sprintf(format, args...)}))
}

// curves is five minutes of one pipeline.
func (c *Console) curves(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("id")
	id, err := strconv.Atoi(text)
	if err != nil {
		problem(w, http.StatusBadRequest, "id is %q: want a pipeline's number from state.json", clip(text, longestName))
		return
	}
	if out, ok := c.curvesOf(id); ok {
		writeJSON(w, http.StatusOK, encode(out))
		return
	}
	problem(w, http.StatusNotFound, "id is %d: there is no such pipeline now", id)
}

func (c *Console) curvesOf(id int) (out curves, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.rows {
		if s.row.ID == id {
			out = s.series.curves()
			out.ID, out.Boot, out.Seq = id, c.boot, c.seq
			return out, true
		}
	}
	return out, false
}

// setting is one key of one instance.
type setting struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Key     string `json:"key"`
	Value   string `json:"value"`
	Default bool   `json:"default"`
}

// settings is what the source says of them; [] where it says nothing.
func (c *Console) settings(w http.ResponseWriter) {
	all := []setting{}
	if s, ok := c.source.(settler); ok {
		if failed := guarded(func() {
			s.EachSetting(func(section, name, key, value string, byDefault bool) bool {
				all = append(all, setting{section, name, key, value, byDefault})
				return true
			})
		}); failed != "" {
			problem(w, http.StatusInternalServerError, "the settings cannot be had: %s", failed)
			return
		}
	}
	writeJSON(w, http.StatusOK, encode(all))
}
