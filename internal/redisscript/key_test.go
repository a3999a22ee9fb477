package redisscript

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyIsReadableAndItsNameIsTheHashTag(t *testing.T) {
	long := strings.Repeat("long/", 2048)
	for _, c := range []struct{ prefix, name, want string }{
		{"", "billing", "fairlead:limit:{billing}"},
		{"app:prod", "GET /orders", "app:prod:limit:{GET%20/orders}"},
		{"a{b}%", "x", "a%7Bb%7D%25:limit:{x}"},
		{"", "", "fairlead:limit:{%}"},
		{"", "%", "fairlead:limit:{%25}"},
		{"", "a{b}c:d\x00\n", "fairlead:limit:{a%7Bb%7Dc%3Ad%00%0A}"},
		{"", "überweisung", "fairlead:limit:{überweisung}"},
		{"", strings.Repeat("n", 128), "fairlead:limit:{" + strings.Repeat("n", 128) + "}"},
		{"", long, "fairlead:limit:{" + long[:40] + "%sha256-}"},
	} {
		got := Key(c.prefix, "limit", c.name)
		if c.name == long { // the digest is the standard's, the rest is checked
			c.want = c.want[:len("fairlead:limit:{")+40+len("%sha256-")]
			require.Regexp(t, `^\Q`+c.want+`\E[0-9a-f]{64}}$`, got)
			continue
		}
		require.Equal(t, c.want, got)
	}
}

// hashTag is what Redis Cluster hashes: between the first brace and the next closing one, if there is anything.
func hashTag(key string) string {
	_, rest, ok := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if !ok || !closed || tag == "" {
		return key
	}
	return tag
}

func FuzzKey(f *testing.F) {
	names := []string{"", "%", "a", "a:b", "a{b", "{", "}", "{}", "%25", "\x00", "%sha256-", strings.Repeat("x", 127), strings.Repeat("x", 129), strings.Repeat(":", 43)}
	for _, a := range names {
		for _, b := range names {
			f.Add("p", a, b)
		}
	}
	f.Fuzz(func(t *testing.T, prefix, a, b string) {
		if one, two := Key(prefix, "limit", a), Key(prefix, "limit", b); (one == two) != (a == b) {
			t.Fatalf("%q and %q: %q and %q", a, b, one, two)
		}
		if prefix != DefaultPrefix && prefix != "" && Key(prefix, "limit", a) == Key("", "limit", a) {
			t.Fatalf("prefix %q is lost", prefix)
		}
		// The longest escape is the one before the digest, or head bytes and the digest.
		key := Key(prefix, "limit", a)
		if tag := hashTag(key); len(tag) > 3*head+8+64 || tag == key || hashTag(key+":second") != tag {
			t.Fatalf("%q: the name is not its hash tag", key)
		}
		if strings.ContainsAny(key, "\x00\n\r") {
			t.Fatalf("%q: control characters", key)
		}
	})
}
