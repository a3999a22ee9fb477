package slogx_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// pad is a handler that keeps lines: level, message, attributes.
type pad struct {
	least slog.Level
	with  string
	*lines
}

type lines struct {
	mu  sync.Mutex
	got []string
}

func newPad(least slog.Level) *pad { return &pad{least: least, lines: &lines{}} }

func (p *pad) Enabled(_ context.Context, level slog.Level) bool { return level >= p.least }
func (p *pad) WithGroup(string) slog.Handler                    { panic("not asked for") }

func (p *pad) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &pad{least: p.least, with: p.with + fmt.Sprint(" ", attrs[0]), lines: p.lines}
}

func (p *pad) Handle(_ context.Context, r slog.Record) error {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %s%s", r.Level, r.Message, p.with)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&s, " %v", a)
		return true
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, s.String())
	return errors.New("nobody asked")
}

// taken is what was written since the last time.
func (p *pad) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}

func steady(change ...func(*retry.Config)) *retry.Retry {
	cfg := retry.Config{Backoff: retry.Constant(100 * time.Millisecond), Jitter: retry.None, NoBudget: true}
	for _, f := range change {
		f(&cfg)
	}
	return retry.MustNew(cfg)
}

// fails is a callback that fails n times.
func fails(n int, err error) func(context.Context) (string, error) {
	runs := 0
	return func(context.Context) (string, error) {
		if runs++; runs <= n {
			return secret, err
		}
		return secret, nil
	}
}

// secret is what every callback here returns.
const secret = "the callback's result"

// later is a failure that asks for a wait.
type later struct{ wait time.Duration }

func (*later) Error() string                       { return "later" }
func (e *later) RetryAfter() (time.Duration, bool) { return e.wait, true }

var took = regexp.MustCompile(`took=\S+`)

// withoutTook is lines whose times, on the real clock, are 0s.
func withoutTook(lines []string) []string {
	for i := range lines {
		lines[i] = took.ReplaceAllString(lines[i], "took=0s")
	}
	return lines
}
