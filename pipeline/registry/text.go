package registry

import (
	"strconv"
	"time"
)

func number(n int) string { return strconv.Itoa(n) }

func float(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// span2text is a duration as a document may say it.
func span2text(d time.Duration) string {
	if d == -1 {
		return "off"
	}
	return d.String()
}
