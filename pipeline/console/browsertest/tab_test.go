package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const patience = 30 * time.Second // of a machine that has much else to do

// tab is one page. Whatever the test is about, it fails where a request left the origin, the policy stopped something, or a
// script failed.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	problems []string
	lost     bool // the service is away on purpose: connections may fail
}

type look struct {
	width, height int64
	theme, motion string
}

var wide = look{width: 1600, height: 1000}

func open(t *testing.T, origin, path string, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium(t), chromedp.WithNewBrowserContext())
	p := &tab{t: t, ctx: ctx, origin: origin}
	t.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.problems)
	})
	require.NoError(t, chromedp.Listen(ctx, p.hear))
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: l.theme}, {Name: "prefers-reduced-motion", Value: l.motion},
	}})
	p.do(chromedp.EmulateViewport(l.width, l.height), chromedp.Navigate(origin+path))
	p.until(`document.querySelector("#split") && !document.querySelector("#split").hidden`, "the first second is drawn")
	return p
}

func (p *tab) hear(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, p.origin+"/") {
			p.problem("a request left the origin: %s", u)
		}
	case *log.EventEntryAdded:
		p.problem("log: %s %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		p.problem("script: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	}
}

func (p *tab) problem(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !p.lost || !strings.Contains(text, "ERR_") {
		p.problems = append(p.problems, text)
	}
}

// away says that the service goes on purpose.
func (p *tab) away() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
}

// leave closes the page before its test ends, so that a server can.
func (p *tab) leave() {
	p.away()
	p.do(chromedp.Navigate("about:blank"))
}

func call[P, R any](p *tab, c cdp.Command[P, R], params P) R {
	p.t.Helper()
	out, err := chromedp.Call(p.ctx, c, params)
	require.NoError(p.t, err)
	return out
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, steps...))
}

// eval is what an expression is worth in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	out, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return out
}

// until waits for a condition in the page.
func (p *tab) until(condition, meaning string) {
	p.t.Helper()
	end := time.After(patience)
	often := time.NewTicker(30 * time.Millisecond)
	defer often.Stop()
	for {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean(("+condition+"))"))
		if err == nil && ok {
			return
		}
		select {
		case <-end:
			p.t.Fatalf("%s: not in %v: %s (%v)\n%s", meaning, patience, condition, err, eval[string](p, `document.body.innerText`))
		case <-often.C:
		}
	}
}

// text is what an element says.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? "no such element"`, selector))
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

func (p *tab) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// node is one of the accessibility tree, as a screen reader gets it.
type node struct{ role, name string }

func (p *tab) tree() (all []node) {
	p.t.Helper()
	call(p, accessibility.Enable, cdp.Empty{})
	for _, n := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if !n.Ignored {
			all = append(all, node{value(n.Role), value(n.Name)})
		}
	}
	return all
}

func value(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	_ = json.Unmarshal(v.Value, &text) // a name is a string; what is none is no name
	return text
}

func names(all []node, role string) (out []string) {
	for _, n := range all {
		if n.role == role {
			out = append(out, n.name)
		}
	}
	return out
}
