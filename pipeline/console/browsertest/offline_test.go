package browsertest

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline/console"
)

// "no external request (a test with the network refused)": this browser reaches the service's address and nothing else, neither
// by name nor by number, and the page is whole all the same. So it is in every other test here.
func TestThePageWorksWithTheNetworkRefused(t *testing.T) {
	p, _ := billing(time.Hour)
	s := serve(t, console.Pipelines(p))
	for url, want := range map[string]string{
		"http://localhost" + s.addr[len("127.0.0.1"):] + "/ops/": "net::ERR_NAME_NOT_RESOLVED", // the very service, by a name
		"http://192.0.2.1/":           "net::ERR_PROXY_CONNECTION_FAILED",
		"https://fonts.example/a.css": "net::ERR_PROXY_CONNECTION_FAILED",
	} {
		ctx, cancel := chromedp.NewContext(chromium(t), chromedp.WithNewBrowserContext())
		require.ErrorContains(t, chromedp.Do(ctx, chromedp.Navigate(url)), want, url)
		cancel()
	}
	trip(t, p)
	page := open(t, s.origin, "/ops/#/billing", wide)
	page.until(`document.querySelector("#why").innerText.startsWith('breaker "bank" is open: 5 failures in a row')`, "the page is whole")
	page.until(`document.querySelectorAll("#curves svg").length > 0 && document.querySelector(".countdown b")`, "with its curves and its countdown")
	require.Equal(t, "complete", eval[string](page, `document.readyState`))
	require.Empty(t, eval[[]string](page, `[...document.styleSheets, ...document.images].map((e) => e.href ?? e.src).filter((u) => !u.startsWith(location.origin))`))
}
