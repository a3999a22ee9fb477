package redisscript

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// DefaultPrefix is Options.Prefix's default.
const DefaultPrefix = "fairlead"

// longest is how many bytes of an escaped name stand in a key. A longer name is cut to head bytes of itself and its digest,
// so that an operator still recognises it.
const (
	longest = 128
	head    = 40
)

// Key is prefix:kind:{name}, the one key of an instance; "" as prefix is [DefaultPrefix]. kind holds no colon and no brace.
//
// The name is escaped so that no two names share a key, whatever they hold: as in a URL, a percent sign and two hex digits
// stand for a brace, a colon, a percent sign, a space or a control character; the empty name, whose hash tag would be none, is
// a lone percent sign; a long one ends in its SHA-256. A percent sign is never followed by anything else in an escaped name,
// so that these forms meet nobody's. The braces make the name the hash tag: a key that continues this one lies in its slot.
func Key(prefix, kind, name string) string {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	return escape(prefix, "{}%") + ":" + kind + ":{" + tag(name) + "}"
}

func tag(name string) string {
	if name == "" {
		return "%"
	}
	escaped := escape(name, "{}%: ")
	if len(escaped) <= longest {
		return escaped
	}
	digest := sha256.Sum256([]byte(name))
	return escape(name[:head], "{}%: ") + "%sha256-" + hex.EncodeToString(digest[:])
}

// escape writes the bytes of special, and control characters, as % and two hex digits.
func escape(s, special string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c < 0x20 || c == 0x7f || strings.IndexByte(special, c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
