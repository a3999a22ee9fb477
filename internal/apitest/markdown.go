package apitest

import (
	"regexp"
	"strings"
)

// Fence is one fenced block of a Markdown text.
type Fence struct {
	Lang string
	Line int    // of its first line of text, from 1
	Text string // without the fences, with the last line's end
}

// Fences is the fenced blocks of a text, in order.
func Fences(markdown string) []Fence {
	var all []Fence
	var open *Fence
	n := 0
	for line := range strings.Lines(markdown) {
		n++
		mark, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &Fence{Lang: strings.TrimSpace(mark), Line: n + 1}
		case isFence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.Text += line
		}
	}
	return all
}

// FencesOf is the fenced blocks in one language.
func FencesOf(markdown, lang string) []Fence {
	var some []Fence
	for _, f := range Fences(markdown) {
		if f.Lang == lang {
			some = append(some, f)
		}
	}
	return some
}

var codeSpan = regexp.MustCompile("`([^`\n]+)`")

// Spans is the inline code outside fenced blocks.
func Spans(markdown string) []string { return matches(codeSpan, prose(markdown)) }

var localLink = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// Links is the files that a text links to, by their paths; what has a scheme is none.
func Links(markdown string) []string {
	return matches(localLink, codeSpan.ReplaceAllString(prose(markdown), ""))
}

// prose is the text without its fenced blocks.
func prose(markdown string) string {
	var s strings.Builder
	inside := false
	for line := range strings.Lines(markdown) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		} else if !inside {
			s.WriteString(line)
		}
	}
	return s.String()
}

func matches(re *regexp.Regexp, text string) []string {
	var all []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
