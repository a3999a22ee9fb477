package console

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	textsPerSecond = 4   // of a pipeline: what a failure costs beside its counters
	errorsKept     = 10  // different texts of a pipeline, numbers in them aside
	longestText    = 300 // bytes
)

// errorLog is the last different errors of a pipeline, as texts: an error itself might keep a whole response alive. Texts are
// taken where the error is, so that nobody reads it later from another goroutine.
type errorLog struct {
	allowed atomic.Int64 // texts left in this second; the sampler fills it up

	mu   sync.Mutex
	seen []failure // the newest last
}

// failure is one text.
type failure struct {
	From  string `json:"from"` // attempt, call, or the kind of the guard that refused
	Text  string `json:"text"`
	First int64  `json:"first"` // Unix milliseconds
	Last  int64  `json:"last"`

	key string // the text without numbers
}

func (l *errorLog) refill() { l.allowed.Store(textsPerSecond) }

func (l *errorLog) add(from string, err error, text func(error) string) {
	if l.allowed.Load() <= 0 || l.allowed.Add(-1) < 0 {
		return
	}
	t := textOf(err, text)
	if t == "" {
		return
	}
	now := time.Now().UnixMilli()
	f := failure{From: from, Text: t, First: now, Last: now, key: withoutNumbers(t)}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.seen {
		if l.seen[i].From == from && l.seen[i].key == f.key {
			f.First = l.seen[i].First
			l.seen = append(l.seen[:i], l.seen[i+1:]...)
			break
		}
	}
	if len(l.seen) == errorsKept {
		l.seen = append(l.seen[:0], l.seen[1:]...)
	}
	l.seen = append(l.seen, f)
}

// latest is the newest first.
func (l *errorLog) latest() []failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]failure, 0, len(l.seen))
	for i := len(l.seen) - 1; i >= 0; i-- {
		out = append(out, l.seen[i])
	}
	return out
}

// withoutNumbers makes one text of those that differ in a wait or a request's number alone: one refusal must not be ten lines. What
// follows a digit at once is its unit.
func withoutNumbers(s string) string {
	var b strings.Builder
	number := false
	for _, r := range s {
		if was := number; r >= '0' && r <= '9' || was && (r == '.' || r >= 'a' && r <= 'z' || r == 'µ') {
			if number = true; !was {
				b.WriteByte('#')
			}
			continue
		}
		number = false
		b.WriteRune(r)
	}
	return b.String()
}

// textOf never panics: a page that shows errors must not make new ones.
func textOf(err error, text func(error) string) (t string) {
	defer func() {
		if p := recover(); p != nil {
			t = clip(fmt.Sprintf("the text of a %T cannot be had: panic of type %T", err, p), longestText)
		}
	}()
	return clip(text(err), longestText)
}

// clip shortens s to n bytes of valid text without control characters; what is cut shows.
func clip(s string, n int) string {
	cut := len(s) > n
	if cut {
		s = s[:n-len("…")]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) { // not in the middle of a character
			s = s[:len(s)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size <= 1 && len(s) > 0 {
			s = s[:len(s)-1]
		}
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' ' // control characters, and those that turn the direction of what follows
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if cut {
		s += "…"
	}
	return s
}
