package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
)

// press posts as the page does; change makes it another request.
func press(t *testing.T, c http.Handler, cmd any, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	text, ok := cmd.(string)
	if !ok {
		b, err := json.Marshal(cmd)
		require.NoError(t, err)
		text = string(b)
	}
	r := httptest.NewRequest(http.MethodPost, "http://ops.internal/console/control", strings.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://ops.internal")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

func controlled(t *testing.T) (*Console, *breaker.Breaker, command) {
	p, b := bank(nil)
	c := started(t, Pipelines(p), AllowControl(anyone))
	return c, b, command{Boot: c.boot, ID: 1, Circuit: 1, Action: "force-open"}
}

// "force-open, force-closed, auto, reset; POST only, same origin"
func TestControlForcesCircuitsAndLetsThemGo(t *testing.T) {
	c, b, cmd := controlled(t)
	w := press(t, c, cmd)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.JSONEq(t, `{"state":"open"}`, w.Body.String())
	require.True(t, b.Snapshot().Forced)
	for action, want := range map[string]breaker.State{"force-closed": breaker.Closed, "auto": breaker.Closed, "reset": breaker.Closed} {
		cmd.Action = action
		require.Equal(t, http.StatusOK, press(t, c, cmd).Code)
		require.Equal(t, want, b.State(), action)
	}
	notes, _ := c.journal.after(0)
	require.Equal(t, "force-open from this console", notes[0].Text, "who looks later sees that somebody did it")
}

func TestControlIsForThePagesOwnOriginAndThoseWhoMay(t *testing.T) {
	c, b, cmd := controlled(t)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			if r.Header.Set(name, value); value == "" {
				r.Header.Del(name)
			}
		}
	}
	for name, change := range map[string][]func(*http.Request){
		"another site":                  {set("Sec-Fetch-Site", "cross-site"), set("Origin", "http://evil.example")},
		"another subdomain":             {set("Sec-Fetch-Site", "same-site"), set("Origin", "http://evil.internal")},
		"an old browser, another site":  {set("Sec-Fetch-Site", ""), set("Origin", "http://evil.example")},
		"no origin at all":              {set("Sec-Fetch-Site", ""), set("Origin", "")},
		"the null origin of a sandbox":  {set("Sec-Fetch-Site", "cross-site"), set("Origin", "null")},
		"an old browser, a null origin": {set("Sec-Fetch-Site", ""), set("Origin", "null")},
		"typed by hand":                 {set("Sec-Fetch-Site", "none"), set("Origin", "")},
	} {
		require.Equal(t, http.StatusForbidden, press(t, c, cmd, change...).Code, name)
	}
	require.Equal(t, http.StatusOK, press(t, c, cmd, set("Sec-Fetch-Site", "")).Code, "an old browser, this origin")
	require.NoError(t, b.Reset(bg))

	get := httptest.NewRequest(http.MethodGet, "/control", nil)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, get)
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "POST", w.Header().Get("Allow"))

	p, b := bank(nil)
	nobody := started(t, Pipelines(p), AllowControl(func(*http.Request) bool { return false }))
	require.Equal(t, http.StatusForbidden, press(t, nobody, command{nobody.boot, 1, 1, "force-open"}).Code)
	require.Equal(t, breaker.Closed, b.State())
}

// "without AllowControl they are not even in the page"
func TestWithoutAllowControlThereIsNothingToPress(t *testing.T) {
	p, b := bank(nil)
	c := started(t, Pipelines(p))
	require.Equal(t, http.StatusForbidden, press(t, c, command{c.boot, 1, 1, "force-open"}).Code)
	require.Equal(t, breaker.Closed, b.State())
	for _, where := range []*Console{c, started(t, Pipelines(p), AllowControl(func(*http.Request) bool { return false }))} {
		page := get(where, "/").Body.String()
		require.NotContains(t, page, "control.js")
		require.NotContains(t, page, "<dialog")
		require.NotContains(t, page, "<!-- control -->")
	}
	require.Equal(t, http.StatusNotFound, get(c, "/control.js").Code)
	require.Equal(t, http.StatusNotFound, get(c, "/control.html").Code)
	require.Contains(t, get(started(t, Pipelines(p), AllowControl(anyone)), "/").Body.String(), "<dialog")
}

func TestAStalePageChangesNothing(t *testing.T) {
	c, b, right := controlled(t)
	for name, change := range map[string]func(*command){
		"from before a restart":      func(cmd *command) { cmd.Boot = "another" },
		"of a pipeline that is gone": func(cmd *command) { cmd.ID = 7 },
		"of no circuit":              func(cmd *command) { cmd.Circuit = 0 },
		"of another circuit":         func(cmd *command) { cmd.Circuit = 2 },
	} {
		cmd := right
		change(&cmd)
		w := press(t, c, cmd)
		require.Equal(t, http.StatusConflict, w.Code, name)
		require.Contains(t, w.Body.String(), "nothing was changed")
	}
	require.Equal(t, breaker.Closed, b.State())
}

// "Compare the instance shown": after a reload there may be another circuit of its name in its place.
func TestAStalePageReachesTheInstanceThatItShowedOrNone(t *testing.T) {
	for _, name := range []string{"", "bank"} {
		seen, other := breaker.MustNew(breaker.Config{Name: name}), breaker.MustNew(breaker.Config{Name: name})
		p := pipeline.For("p").With(seen).MustBuild()
		c := started(t, Pipelines(p), AllowControl(anyone))
		cmd := command{c.boot, 1, state(t, c).row(t, "p").layer(t, "guard").Breaker.ID, "force-open"}

		require.NoError(t, p.Update(pipeline.For("p").With(other).With(seen)))
		require.Equal(t, http.StatusOK, press(t, c, cmd).Code, "it is still there, though not in its place")
		require.Equal(t, breaker.Open, seen.State())
		require.Equal(t, breaker.Closed, other.State())

		require.NoError(t, seen.Reset(bg))
		require.NoError(t, p.Update(pipeline.For("p").With(other)))
		w := press(t, c, cmd)
		require.Equal(t, http.StatusConflict, w.Code)
		require.Contains(t, w.Body.String(), "no such circuit any more: nothing was changed")
		c.sample(time.Now())
		require.Equal(t, http.StatusConflict, press(t, c, cmd).Code, "nor once the console has seen it")
		require.Equal(t, breaker.Closed, other.State())
		require.Equal(t, breaker.Closed, seen.State())
	}
}

func TestACommandThatCannotBeReadIsSaidToBeOne(t *testing.T) {
	c, b, cmd := controlled(t)
	cmd.Action = "explode"
	require.Contains(t, press(t, c, cmd).Body.String(), `action is \"explode\": want force-open, force-closed, auto or reset`)
	for _, body := range []string{"", "{", `{"odd":1}`, `[]`, `{"action":"reset"} {}`, `{"boot":"` + strings.Repeat("x", 2*longestCommand) + `"}`} {
		require.Equal(t, http.StatusBadRequest, press(t, c, body).Code, body)
	}
	w := press(t, c, cmd, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	require.Equal(t, http.StatusUnsupportedMediaType, w.Code, "a form of another page could send that without asking")
	require.Equal(t, breaker.Closed, b.State())
}

// remote is a circuit whose store cannot be reached.
type remote struct{ *breaker.Breaker }

func (remote) ForceOpen(context.Context) error { return errors.New("store: <down>") }

func TestACircuitThatCannotBeReachedIsNoSuccess(t *testing.T) {
	p := pipeline.For("p").Breaker(remote{breaker.MustNew(breaker.Config{Name: "far"})}).MustBuild()
	c := started(t, Pipelines(p), AllowControl(anyone))
	w := press(t, c, command{c.boot, 1, 1, "force-open"})
	require.Equal(t, http.StatusBadGateway, w.Code)
	require.Contains(t, w.Body.String(), "force-open was not done: store: ")
	require.NotContains(t, w.Body.String(), "<")
	var _ leaf.Guard = remote{}
}
