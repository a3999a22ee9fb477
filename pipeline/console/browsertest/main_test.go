package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// browser is one Chromium for all tests, each in a profile of its own. It starts with the first.
var browser struct {
	sync.Once
	ctx  context.Context
	err  error
	stop func()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(run{m}) }

// run ends the browser before goroutines are counted.
type run struct{ m *testing.M }

func (r run) Run() int {
	code := r.m.Run()
	if browser.stop != nil {
		browser.stop()
	}
	return code
}

func find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser: want chromium, chromium-browser or google-chrome on the PATH (apt-get install chromium, or make tools)")
}

func start() {
	path, err := find()
	if err != nil {
		browser.err = err
		return
	}
	dir, err := os.MkdirTemp("", "console-browser")
	if err != nil {
		browser.err = err
		return
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(dir),
		// There is no network but this machine's own: no other name can be found, and what would go elsewhere meets a closed port.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.ProxyServer("http://127.0.0.1:1"),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-background-networking", true))
	allocated, release := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(allocated)
	browser.ctx, browser.err = ctx, chromedp.Do(ctx)
	browser.stop = func() {
		ending, done := context.WithTimeout(ctx, 10*time.Second)
		defer done()
		_ = chromedp.Cancel(ending) // the tests are over: what is left of it is killed
		cancel()
		release()
		for range 50 { // its helpers may still write there for a moment
			if os.RemoveAll(dir) == nil {
				return
			}
			<-time.After(100 * time.Millisecond)
		}
	}
}

func chromium(t *testing.T) context.Context {
	t.Helper()
	browser.Do(start)
	require.NoError(t, browser.err)
	return browser.ctx
}
