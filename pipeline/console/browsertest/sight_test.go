package browsertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/console"
)

// contrast is every visible text whose contrast with what it stands on is below AA: 4.5, or 3 where it is large.
const contrast = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const rgba = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1); const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
	const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3]));
	const behind = (el) => { if (!el) return [255, 255, 255]; const c = rgba(getComputedStyle(el).backgroundColor); return c[3] === 1 ? c.slice(0, 3) : over(c, behind(el.parentElement)); };
	const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const bad = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const el = walker.currentNode.parentElement;
		if (!walker.currentNode.data.trim() || !el.checkVisibility({visibilityProperty: true}) || el.closest(".sr, .skip, noscript, script")) continue;
		const style = getComputedStyle(el);
		const below = behind(el);
		const ink = over(rgba(el.closest("svg") ? style.fill : style.color), below);
		const [a, b] = [light(ink), light(below)].sort((x, y) => y - x);
		const size = parseFloat(style.fontSize);
		const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
		if ((a + 0.05) / (b + 0.05) < least) bad.push(walker.currentNode.data.trim().slice(0, 30) + " " + ((a + 0.05) / (b + 0.05)).toFixed(2) + " " + el.className);
	}
	return bad;
})()`

// "works in light and dark, at 360 and 1600 px wide": nothing is cut off at the side, every text can be read, and nothing moves.
func TestItCanBeReadAtBothWidthsInBothThemes(t *testing.T) {
	opened, _ := billing(time.Hour)
	trip(t, opened)
	all := append(many(12), opened)
	for _, l := range []look{{360, 800, "light", ""}, {360, 800, "dark", ""}, {1600, 1000, "light", ""}, {1600, 1000, "dark", ""}} {
		t.Run(fmt.Sprint(l.width, " ", l.theme), func(t *testing.T) {
			s := serve(t, console.Pipelines(all...), console.AllowControl(anyone))
			traffic(t, 50*time.Millisecond, all...)
			page := open(t, s.origin, "/ops/", l)
			if l.width < 1000 {
				page.until(`document.querySelector("#detail").checkVisibility() === false`, "the list alone")
				require.Empty(t, eval[[]string](page, contrast))
				page.click(`#rows a[href="#/billing"]`)
				page.until(`document.querySelector("nav.overview").checkVisibility() === false`, "then the pipeline alone")
				page.until(focused+` === "name"`, "and the focus with it")
			} else {
				page.click(`#rows a[href="#/billing"]`)
			}
			page.until(`document.querySelectorAll(".actions button").length === 4`, "the pipeline is drawn")
			page.until(`document.querySelector("#head").dataset.level === "bad"`, "and in trouble")
			seq := eval[float64](page, `import("/ops/store.js").then((m) => m.state.seq)`)
			page.until(fmt.Sprintf(`import("/ops/store.js").then((m) => { window.now = m.state.seq }), window.now >= %g`, seq+3), "some seconds")
			assert.Empty(t, eval[[]string](page, contrast), "contrast AA")
			assert.Empty(t, eval[[]string](page, shiftsSeen), "no layout shift")
			assert.LessOrEqual(t, eval[float64](page, `document.documentElement.scrollWidth`), float64(l.width), "nothing is wider than the page")
			page.click(`[data-action="force-open"]`)
			page.until(`document.querySelector("dialog[open]")`, "it asks")
			assert.Empty(t, eval[[]string](page, contrast), "of the dialog, too")
			page.click("#confirm-no")
			if l.width < 1000 {
				page.click("#back")
				page.until(`document.querySelector("#detail").checkVisibility() === false`, "back at the list")
				page.until(focused+` === "billing"`, "where it was left")
			}
		})
	}
}

// "prefers-reduced-motion"
func TestNothingGlidesForWhoAsksForLessMotion(t *testing.T) {
	p, _ := billing(time.Hour)
	trip(t, p)
	s := serve(t, console.Pipelines(p))
	for motion, want := range map[string]string{"reduce": "0s", "no-preference": "0.4s"} {
		page := open(t, s.origin, "/ops/#/billing", look{1600, 1000, "light", motion})
		page.until(`document.querySelector(".circuit .bar-fill")`, "drawn")
		require.Equal(t, want, eval[string](page, `getComputedStyle(document.querySelector(".circuit .bar-fill")).transitionDuration`))
	}
}

// A name is a text, wherever the page shows it.
func TestHostileNamesRunNothing(t *testing.T) {
	hostile := `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'/%00#~`
	s := serve(t, console.Pipelines(pipeline.For(hostile).MustBuild(), pipeline.For(hostile).MustBuild()))
	page := open(t, s.origin, "/ops/", wide)
	page.until(`document.querySelectorAll("#rows li").length === 2`, "both of the same name")
	for i := range 2 {
		page.click(fmt.Sprintf("#rows li:nth-child(%d) a", i+1))
		page.until(fmt.Sprintf(`document.querySelectorAll("#rows a")[%d].getAttribute("aria-current") === "true"`, i), "each can be chosen")
		require.Equal(t, hostile, eval[string](page, `document.querySelector("#name").textContent`))
	}
	eval[bool](page, `location.hash = "#/%E0%A4%A", true`)
	page.until(`document.querySelector("#name").textContent.startsWith("<img")`, "an address that is none does no harm")
	eval[bool](page, `location.hash = "#/nobody", true`)
	page.until(`document.querySelector("#name").textContent === "nobody" && document.querySelector("#word").textContent === "not there now"`, "nor does one of nobody")
	require.False(t, eval[bool](page, `"hacked" in window`))
}
