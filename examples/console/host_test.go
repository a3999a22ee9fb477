package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
)

// DNS rebinding: the name of somebody else's page leads here by now. To the browser it is of our origin, and it comes from this machine.
func TestAPageWhoseNameLeadsHereMayNothing(t *testing.T) {
	s, err := newShop()
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	h := s.handler()
	ask := func(method, origin, path, body, from string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, origin+path, strings.NewReader(body))
		r.RemoteAddr = from
		r.Header.Set("Origin", origin)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const own, here = "http://127.0.0.1:8090", "127.0.0.1:4711"
	state := ask(http.MethodGet, own, "/console/state.json", "", here).Body.String()
	boot := regexp.MustCompile(`"boot":"([^"]+)"`).FindStringSubmatch(state)[1]
	circuit := regexp.MustCompile(`"breaker":{"id":(\d+),`).FindStringSubmatch(state)[1]
	pressed := func(origin, from string) int {
		for id := range 10 { // of whichever pipeline has it
			command := fmt.Sprintf(`{"boot":%q,"id":%d,"circuit":%s,"action":"force-open"}`, boot, id+1, circuit)
			if code := ask(http.MethodPost, origin, "/console/control", command, from).Code; code != http.StatusConflict {
				return code
			}
		}
		return http.StatusConflict
	}
	forced := func() int {
		all := map[any]bool{} // pipelines share them
		for _, p := range s.reg.Pipelines() {
			for _, item := range p.Layers() {
				if c, ok := item.(breaker.Circuit); ok && c.Snapshot().Forced {
					all[item] = true
				}
			}
		}
		return len(all)
	}
	for _, origin := range []string{"http://evil.test:8090", "http://evil.test", "http://localhost.evil.test:8090", "http://10.0.0.1:8090", "http://127.0.0.1.evil.test"} {
		require.Equal(t, http.StatusMisdirectedRequest, ask(http.MethodGet, origin, "/console/state.json", "", here).Code, origin)
		require.Equal(t, http.StatusMisdirectedRequest, ask(http.MethodPost, origin, "/faults", `{"name":"bank","fault":"outage"}`, here).Code, origin)
		require.Equal(t, http.StatusMisdirectedRequest, pressed(origin, here), origin)
	}
	require.Equal(t, Healthy, s.downstream("bank").Fault())
	require.Equal(t, http.StatusForbidden, pressed(own, "10.0.0.7:4711"), "nor from elsewhere by our own name")
	require.Zero(t, forced())
	for _, origin := range []string{own, "http://localhost:8090", "http://[::1]:8090", "http://LOCALHOST", "http://[::1]"} {
		require.Equal(t, http.StatusOK, pressed(origin, here), origin)
	}
	require.Equal(t, http.StatusOK, pressed(own, "[::1]:4711"))
	require.Equal(t, 1, forced())
}
