package browsertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/console"
)

func row(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#rows a")].find((a) => a.querySelector(".name").textContent === %q)`, name)
}

func fact(label string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".facts dt")].find((d) => d.textContent === %q).nextElementSibling.textContent`, label)
}

func card(kind string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".card")].find((c) => c.querySelector(".kind").firstChild.data === %q)`, kind)
}

// "clicking through, asserting values that a scripted fault must show": it opens, says why, counts down and refuses, and recovers,
// while nothing on the page moves.
func TestAScriptedFaultIsSeenFromItsBeginningToItsEnd(t *testing.T) {
	p, b := billing(8 * time.Second)
	s := serve(t, console.Pipelines(pipeline.For("aaa calm").MustBuild(), p))
	page := open(t, s.origin, "/ops/", wide)
	page.until(row("billing")+`.dataset.level === "idle"`, "nothing has happened")
	page.until(`document.querySelector("#name").textContent === "aaa calm"`, "something is chosen")
	require.NoError(t, p.Run(bg, succeed))

	trip(t, p)
	for range 9 {
		require.ErrorIs(t, p.Run(bg, succeed), breaker.ErrOpen)
	}
	page.until(row("billing")+`.dataset.level === "bad"`, "trouble")
	page.until(`document.querySelector("#rows a .name").textContent === "billing"`, "trouble comes first")
	page.click(`#rows a`)
	page.until(`document.querySelector("#name").textContent === "billing"`, "it is chosen")
	page.until(`document.querySelector("#why").innerText.startsWith('breaker "bank" is open: 5 failures in a row')`, "why")
	require.Contains(t, page.text("#word"), "Trouble for ")
	require.Equal(t, "open", eval[string](page, `document.querySelector("[data-here]").dataset.node`))
	require.Contains(t, eval[string](page, fact("Tripped")), "5 failures in a row, at ")
	require.Contains(t, eval[string](page, fact("Since")), " s)")
	require.Contains(t, eval[string](page, fact("Opens when")), "5 failures in a row")
	require.Contains(t, page.text(".countdown"), "until the next probe")
	first := eval[float64](page, `parseFloat(document.querySelector(".countdown b").textContent)`)
	page.until(fmt.Sprintf(`parseFloat(document.querySelector(".countdown b").textContent) < %g - 0.5`, first), "it counts down")

	page.until(card("Breaker")+`.getAttribute("aria-label").includes("6 admitted, 10 refused")`, "nine calls, and one retry")
	page.until(card("Retry")+`.getAttribute("aria-label").includes("2 retries")`, "retries")
	page.until(card("fn")+`.getAttribute("aria-label").includes("6 runs, 5 failed")`, "runs")
	page.until(`document.querySelector("#errors .message").textContent.length > 10`, "errors")
	require.Contains(t, page.text("#errors"), "bank: <b>503</b> & more", "as text")
	require.Contains(t, page.text("#stops"), "attempts exhausted")
	page.until(`document.querySelector("#journal .message").textContent.includes("closed → open, 5 failures in a row")`, "the journal")
	page.until(`[...document.querySelectorAll(".chart")].some((c) => c.getAttribute("aria-label").startsWith("Refused") && c.getAttribute("aria-label").endsWith("highest in five minutes 9"))`, "the curve of refusals")

	page.until(`document.querySelector("[data-here]").dataset.node === "half-open"`, "the open time is over")
	require.NoError(t, p.Run(bg, succeed))
	require.Equal(t, breaker.Closed, b.State())
	page.until(`document.querySelector("[data-here]").dataset.node === "closed"`, "it is back")
	require.Contains(t, eval[string](page, fact("Tripped")), "5 failures in a row", "what it was is still told")
	shifts := eval[[]string](page, shiftsSeen)
	require.Empty(t, shifts, "no layout shift")
}

// shiftsSeen is every layout shift that no input of the user explains.
const shiftsSeen = `new Promise((done) => {
	const all = [];
	new PerformanceObserver((list) => all.push(...list.getEntries())).observe({ type: "layout-shift", buffered: true });
	setTimeout(() => done(all.filter((e) => !e.hadRecentInput).map((e) => e.value + " " + e.sources.map((s) => (s.node?.id || s.node?.className || s.node?.nodeName) + ' ' + s.node?.textContent?.slice(0, 20) + ' ' + s.node?.parentNode?.className + ' ' + JSON.stringify(s.previousRect) + JSON.stringify(s.currentRect)).join('; '))), 200);
})`

// "survives 200 pipelines": all are there, trouble first, and what is looked for is found.
func TestTwoHundredPipelinesAreAListThatCanBeFiltered(t *testing.T) {
	all := many(200)
	s := serve(t, console.Pipelines(all...))
	traffic(t, 40*time.Millisecond, all...)
	page := open(t, s.origin, "/ops/", wide)
	page.until(`document.querySelectorAll("#rows li:not([hidden])").length === 200`, "all are there")
	page.until(`document.querySelector("#tally").innerText.includes("trouble")`, "the tally")
	page.until(`(() => { const l = [...document.querySelectorAll("#rows li:not([hidden]) a")].map((a) => ({bad: 0, warn: 1, ok: 2, idle: 3})[a.dataset.level]); return l[0] === 0 && l.every((v, i) => i === 0 || l[i - 1] <= v) })()`, "trouble first")
	page.until(`document.querySelector("#tally li[data-level=bad] b").textContent === "29"`, "every seventh, from the fourth on")
	page.click("#filter")
	page.press("service-12")
	page.until(`document.querySelectorAll("#rows li:not([hidden])").length === 10`, "filtered")
	page.press("zzz")
	page.until(`!document.querySelector("#none").hidden`, "nothing matches")
	took := eval[float64](page, `(async () => {
		const {drawOverview} = await import("/ops/overview.js");
		document.querySelector("#filter").value = "";
		const t = performance.now();
		for (let i = 0; i < 20; i++) drawOverview(null);
		return (performance.now() - t) / 20;
	})()`)
	t.Logf("drawing 200 rows takes the page %.1f ms", took)
	require.Less(t, took, 250.0, "of a second")
}

// "reconnects": the page says that it is cut off, and comes back by itself to a service that knows nothing of before.
func TestThePageComesBackAfterARestart(t *testing.T) {
	p, _ := billing(time.Hour)
	s := serve(t, console.Pipelines(p))
	page := open(t, s.origin, "/ops/#/billing", wide)
	page.until(`document.querySelector("#link-text").textContent === "Live"`, "live")
	page.away()
	s.stop()
	page.until(`document.querySelector("#link").dataset.state === "lost"`, "lost")
	require.Contains(t, page.text("#link"), "as of ")
	trip(t, p)
	s.start()
	page.until(`document.querySelector("#link").dataset.state === "live"`, "live again")
	page.until(`document.querySelector("#name").textContent === "billing" && document.querySelector("#head").dataset.level === "bad"`, "what it missed")
	page.until(`document.querySelector("#announce").textContent.includes("restarted")`, "it is said")
	require.Contains(t, eval[string](page, fact("Tripped")), "5 failures in a row, at ", "which happened before the new console was made")
}
