package registry

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// shown is a name in a message or on a page: as it is, unless it would be read as something else there.
func shown(name string) string { return printable(veiledName(name)) }

// printable is a short text without anything that would be read as what is around it.
func printable(long string) string {
	text := shorten(long)
	for _, r := range text {
		if !unicode.IsPrint(r) || strings.ContainsRune(`[],"`, r) {
			return strconv.Quote(text)
		}
	}
	if text != strings.TrimSpace(text) {
		return strconv.Quote(text)
	}
	return text
}

// listed is the first names of several.
func listed(names []string, most int) string {
	texts := make([]string, min(len(names), most))
	for i := range texts {
		texts[i] = shown(names[i])
	}
	return joined(texts, len(names)-most)
}

func joined(texts []string, more int) string {
	list := strings.Join(texts, ", ")
	if more > 0 {
		list += fmt.Sprintf(", and %d more", more)
	}
	return list
}

func number(n int) string { return strconv.Itoa(n) }

func float(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// span2text is a duration as a document may say it.
func span2text(d time.Duration) string {
	if d == -1 {
		return "off"
	}
	return d.String()
}
