package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline/console"
)

// hurried is a console whose seconds take a millisecond, until there were as many as the test asks for: made of one real state, in which
// each second changes every row, a failure's text and the journal.
type hurried struct {
	console http.Handler
	wanted  atomic.Uint64
	seq     atomic.Uint64
}

func (h *hurried) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/stream"):
		h.stream(w, r)
	case strings.HasSuffix(r.URL.Path, "/series.json"):
		curves := h.ask(r.URL.Path + "?" + r.URL.RawQuery)
		curves["seq"] = h.seq.Load()
		_ = json.NewEncoder(w).Encode(curves)
	default:
		h.console.ServeHTTP(w, r)
	}
}

func (h *hurried) ask(target string) (out map[string]any) {
	w := httptest.NewRecorder()
	h.console.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		panic(err)
	}
	return out
}

func (h *hurried) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	frame := h.ask("/state.json")
	seq := h.seq.Add(1)
	for idle := 0; r.Context().Err() == nil; {
		frame["seq"] = seq
		text, _ := json.Marshal(frame)
		if _, err := fmt.Fprintf(w, "event: second\ndata: %s\n\n", text); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		for idle = 0; h.seq.Load() >= h.wanted.Load() && idle < 200 && r.Context().Err() == nil; idle++ {
			<-time.After(5 * time.Millisecond)
		}
		<-time.After(time.Millisecond)
		frame["from"], seq = seq, h.seq.Add(1)
		h.change(frame, seq)
	}
}

func (h *hurried) change(frame map[string]any, seq uint64) {
	frame["time"] = frame["time"].(float64) + 1000
	frame["journal"] = []any{map[string]any{"n": seq, "at": frame["time"], "kind": "breaker", "name": fmt.Sprint("b", seq%50), "from": "closed", "to": "open", "text": fmt.Sprint("failure ", seq)}}
	for i, r := range frame["rows"].([]any) {
		row := r.(map[string]any)
		delete(row, "spark")
		for _, name := range []string{"last", "totals", "recent"} {
			row[name].(map[string]any)["calls"] = (seq*7 + uint64(i)) % 1000
			row[name].(map[string]any)["failed"] = seq % 13
		}
		row["latency"] = []any{float64(seq%50) / 1000, float64(seq%90) / 1000, float64(seq%200) / 1000}
		row["level"] = []string{"ok", "warn", "bad"}[(seq/10+uint64(i))%3]
		row["why"] = []any{fmt.Sprint("failure ", seq)}
		row["errors"] = []any{map[string]any{"at": frame["time"], "from": "call", "text": fmt.Sprint("failure ", seq)}}
	}
}

// The page can stay open for hours: it keeps no more of 2,700 seconds than of 700.
func TestThePageDoesNotGrowWithTheSecondsThatItShows(t *testing.T) {
	p, _ := billing(time.Hour)
	trip(t, p)
	c, err := console.Handler(console.Pipelines(append(many(4), p)...))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	h := &hurried{console: c}
	server := httptest.NewServer(h)
	defer server.Close()
	page := open(t, server.URL, "/ops/#/billing", wide)
	defer page.leave()
	call(page, performance.Enable, performance.EnableParams{})
	after := func(seconds uint64) map[string]float64 {
		h.wanted.Store(seconds)
		page.until(fmt.Sprintf(`import("/ops/store.js").then((m) => { window.at = m.state.seq; window.upTo = m.state.series?.seq }), window.at >= %d && window.upTo === window.at`, seconds), "the seconds are drawn, with the curves")
		call(page, heapprofiler.CollectGarbage, cdp.Empty{})
		kept := map[string]float64{}
		for _, m := range call(page, performance.GetMetrics, cdp.Empty{}).Metrics {
			kept[m.Name] = m.Value
		}
		return kept
	}
	first := after(700) // by then everything that it remembers is full
	after(1700)
	last := after(2700)
	for name, most := range map[string]float64{"JSHeapUsedSize": 150 << 10, "Nodes": 50, "JSEventListeners": 5} {
		t.Logf("%s: %v, then %v", name, first[name], last[name])
		require.Positive(t, first[name], name)
		require.LessOrEqual(t, last[name]-first[name], most, name)
	}
}
