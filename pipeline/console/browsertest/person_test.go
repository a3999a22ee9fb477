package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/console"
)

const focused = `(document.activeElement?.id || document.activeElement?.dataset.action || document.activeElement?.querySelector?.(".name")?.textContent || document.activeElement?.nodeName)`

func (p *tab) focusIs(want string) {
	p.t.Helper()
	p.until(focused+fmt.Sprintf(" === %q", want), "the focus is at "+want)
}

// tabTo presses the tab key until the focus is there.
func (p *tab) tabTo(want string) {
	p.t.Helper()
	for range 60 {
		if eval[string](p, focused) == want {
			return
		}
		p.press(kb.Tab)
	}
	p.t.Fatalf("the tab key never comes to %s", want)
}

// "by keyboard alone": find a pipeline, open it, force its circuit, and let go of it.
func TestEverythingCanBeDoneWithTheKeyboardAlone(t *testing.T) {
	p, b := billing(time.Hour)
	s := serve(t, console.Pipelines(pipeline.For("a").MustBuild(), p, pipeline.For("c").MustBuild()), console.AllowControl(anyone))
	page := open(t, s.origin, "/ops/", wide)
	// One event, as a keyboard sends it: the driver's KeyEvent sends the character anyway, whatever the page made of the key.
	call(page, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/"})
	page.focusIs("filter")
	page.press(kb.ArrowDown)
	page.focusIs("a")
	page.press(kb.ArrowDown)
	page.focusIs("billing")
	page.press(kb.End)
	page.focusIs("c")
	page.press(kb.Home)
	page.press(kb.ArrowUp)
	page.focusIs("filter")
	page.press("bill")
	page.until(`document.querySelectorAll("#rows li:not([hidden])").length === 1`, "filtered")
	page.press(kb.ArrowDown)
	page.focusIs("billing")
	page.press(kb.Enter)
	page.until(`document.querySelector("#name").textContent === "billing"`, "chosen")

	page.tabTo("force-open")
	page.press(kb.Enter)
	page.until(`document.querySelector("dialog[open] h2").textContent === "Force open: circuit “bank”?"`, "it asks")
	page.focusIs("confirm-no") // what Enter does by mistake is nothing
	page.press(kb.Escape)
	page.until(`!document.querySelector("dialog[open]")`, "it is left")
	page.focusIs("force-open")
	require.Equal(t, breaker.Closed, b.State())
	page.press(kb.Enter)
	page.tabTo("confirm-yes")
	page.press(kb.Enter)
	page.until(`document.querySelector(".countdown b").textContent === "forced open"`, "done")
	require.True(t, b.Snapshot().Forced)
	page.tabTo("reset")
	page.press(kb.Enter)
	page.tabTo("confirm-yes")
	page.press(kb.Enter)
	page.until(`document.querySelector(".countdown b").textContent === "closed"`, "let go")

	page.tabTo("curves")
	page.press(kb.ArrowLeft)
	page.press(kb.ArrowLeft)
	page.until(`document.querySelector("#curves-at").textContent === "2 s ago"`, "the curves are read second by second")
	page.press(kb.Escape)
	page.until(`document.querySelector("#curves-at").textContent === "now"`, "and now again")
}

// "Controls only with AllowControl", "confirmed in the page", and the pipeline that they belong to.
func TestControlsAreConfirmedAndMissingWhereTheyAreNotAllowed(t *testing.T) {
	p, b := billing(time.Hour)
	s := serve(t, console.Pipelines(p), console.AllowControl(anyone))
	page := open(t, s.origin, "/ops/#/billing", wide)
	page.until(`document.querySelectorAll(".actions button").length === 4`, "four things to press")
	page.click(`[data-action="force-open"]`)
	page.until(`document.querySelector("dialog[open]")`, "it asks")
	require.Contains(t, page.text("dialog"), "Every call that meets it is refused")
	page.click("#confirm-no")
	page.until(`!document.querySelector("dialog[open]")`, "cancelled")
	require.Equal(t, breaker.Closed, b.State())
	page.click(`[data-action="force-open"]`)
	page.click("#confirm-yes")
	page.until(`document.querySelector("#head").dataset.level === "bad"`, "it is told as trouble")
	require.Equal(t, breaker.Open, b.State())
	page.until(`document.querySelector("#journal").innerText.includes("force-open from this console")`, "the journal says who did it")

	readOnly := serve(t, console.Pipelines(p))
	page = open(t, readOnly.origin, "/ops/#/billing", wide)
	page.until(`document.querySelector(".circuit")`, "drawn")
	require.Zero(t, eval[float64](page, `document.querySelectorAll("button, dialog").length`))
}

// A page from before a restart changes nothing, and says so.
func TestACommandThatFailsIsToldInTheDialog(t *testing.T) {
	p, b := billing(time.Hour)
	s := serve(t, console.Pipelines(p), console.AllowControl(anyone))
	page := open(t, s.origin, "/ops/#/billing", wide)
	page.until(`document.querySelectorAll(".actions button").length === 4`, "drawn")
	page.away() // the browser logs a 409 as well
	page.click(`[data-action="force-open"]`)
	eval[bool](page, `(async () => { const {state} = await import("/ops/store.js"); const f = window.fetch; window.fetch = (u, o) => f(u, {...o, body: o?.body?.replace(state.boot, "of before")}); return true })()`)
	page.click("#confirm-yes")
	page.until(`document.querySelector("#confirm-error").textContent.includes("restarted since the page was loaded: nothing was changed")`, "it is told")
	require.Equal(t, breaker.Closed, b.State())
	page.mu.Lock()
	defer page.mu.Unlock()
	require.Len(t, page.problems, 1)
	require.Contains(t, page.problems[0], "409 (Conflict)")
	page.problems = nil
}

// "a screen reader's tree that names every state"
func TestTheAccessibilityTreeNamesEveryState(t *testing.T) {
	opened, b := billing(time.Hour)
	forced := pipeline.For("forced").Breaker(func() *breaker.Breaker {
		b := breaker.MustNew(breaker.Config{Name: "f"})
		_ = b.ForceClosed(bg)
		return b
	}()).MustBuild()
	half := breaker.MustNew(breaker.Config{Name: "h", Consecutive: 1, OpenFor: time.Millisecond})
	probing := pipeline.For("probing").Breaker(half).MustBuild()
	_ = probing.Run(bg, down)
	trip(t, opened)
	require.Equal(t, breaker.Open, b.State())
	s := serve(t, console.Pipelines(opened, forced, probing, pipeline.For("quiet").MustBuild()), console.AllowControl(anyone))
	page := open(t, s.origin, "/ops/#/billing", wide)
	page.until(`document.querySelectorAll(".actions button").length === 4`, "drawn")
	page.until(row("probing")+`.getAttribute("aria-label").includes("half-open")`, "all states are there")
	tree := page.tree()
	links := strings.Join(names(tree, "link"), "\n")
	for _, want := range []string{
		`billing: Trouble, breaker "bank" is open: 5 failures in a row`, `forced: Attention, breaker "f" is forced closed`,
		`probing: Attention, breaker "h" is half-open: probing`, `quiet: Idle, no calls in the last minute`,
	} {
		assert.Contains(t, links, want)
	}
	groups := strings.Join(names(tree, "group"), "\n")
	for _, want := range []string{
		"Timeout “billing”: limit 5.0 s", "Retry “patient”: up to 2", "Breaker “bank”: open", "Rate limit “provider”: nobody waits", "Bulkhead “slots”: nobody waits",
		"Attempt timeout “attempt”: limit 2.0 s", "The function: ",
	} {
		assert.Contains(t, groups, want)
	}
	images := strings.Join(names(tree, "image"), "\n")
	assert.Contains(t, images, "Circuit “bank” is open since ")
	assert.Contains(t, images, "Latency, of calls, last 10 s: p50 ")
	assert.Contains(t, strings.Join(names(tree, "meter"), "\n"), "bulkhead “slots”, in use")
	assert.Contains(t, strings.Join(names(tree, "status"), "\n")+fmt.Sprint(tree), "Live")
	for _, n := range tree {
		switch n.role {
		case "link", "button", "textbox", "searchbox", "meter", "image", "heading", "group", "dialog", "navigation":
			assert.NotEmpty(t, n.name, "a %s without a name", n.role)
		}
	}
}

// "aria-live polite for state changes and not for each tick"
func TestScreenReadersAreToldChangesAndNoTicks(t *testing.T) {
	p, b := billing(time.Hour)
	s := serve(t, console.Pipelines(p))
	traffic(t, 20*time.Millisecond, p)
	page := open(t, s.origin, "/ops/#/billing", wide)
	page.until(row("billing")+`.dataset.level === "ok"`, "traffic")
	eval[bool](page, `(() => {
		window.said = [];
		for (const node of document.querySelectorAll("[aria-live], [role=status], [role=alert]")) new MutationObserver(() => window.said.push(node.textContent)).observe(node, {childList: true, subtree: true, characterData: true});
		return true;
	})()`)
	seq := eval[float64](page, `import("/ops/store.js").then((m) => m.state.seq)`)
	page.until(fmt.Sprintf(`window.ticks ||= 0, import("/ops/store.js").then((m) => { window.ticks = m.state.seq }), window.ticks >= %g`, seq+4), "four seconds")
	require.Empty(t, eval[[]string](page, `window.said`), "ticks are not read out")
	require.NoError(t, b.ForceOpen(bg))
	page.until(`window.said.length > 0`, "a change is")
	require.Contains(t, eval[[]string](page, `window.said`)[0], `billing: Trouble, breaker "bank" is forced open`)
}
