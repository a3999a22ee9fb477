package registry

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// at is a place in a document: every message begins with its path. YAML, JSON and Go maps all become these nodes, so that
// there is one decoder.
type at struct {
	path   string
	node   *yaml.Node
	secret bool // nothing of what stands here is shown, since it may be a password
}

// into is the place below a, under a key that stands in the document. Below one that is secret a plain scalar is where it belongs,
// and is shown; for anything else somebody may have mistaken what is secret.
func (a at) into(key string, n *yaml.Node) at {
	if a.secret {
		key = veiled(key)
	}
	below := at{path: join(a.path, key), node: deref(n)}
	_, plain := below.plain()
	below.secret = a.secret && !plain
	return below
}

// join is a path in a message. A key that would read as several is quoted.
func join(path, key string) string {
	key = veiledName(key)
	if key == "" || strings.ContainsAny(key, ".[]\" \t\n:") || !strconv.CanBackquote(key) {
		return path + "[" + strconv.Quote(shorten(key)) + "]"
	}
	return path + "." + shorten(key)
}

// absent is where a message speaks of a key that does not stand in the document.
var absent = &yaml.Node{}

// deref follows an alias. Documents whose aliases do not end were refused before.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// null says that nothing stands here.
func (a at) null() bool {
	return a.node.Kind == yaml.ScalarNode && a.node.Tag == "!!null" && !tagged(a.node)
}

// plain is a scalar's text where it is not null and has no tag of its own.
func (a at) plain() (text string, ok bool) {
	n := a.node
	return n.Value, n.Kind == yaml.ScalarNode && n.Tag != "!!null" && !tagged(n)
}

// tagged says that the document gives n a tag: what it would mean depends on the reader, so that no tag is understood.
func tagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 }

// merging says that n is the key << of YAML 1.1, unquoted.
func merging(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!merge" && !tagged(n) }

// text is what stands here, for a message: as it was written, cut where it is long.
func (a at) text() string {
	n := a.node
	switch n.Kind {
	case 0:
		return "absent"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if items := a.items(); !a.secret && len(items) <= 8 && scalars(items) {
			texts := make([]string, len(items))
			for i, item := range items {
				texts[i] = item.text()
			}
			return "[" + strings.Join(texts, ", ") + "]"
		}
		return "a list"
	}
	if a.secret && !a.null() {
		return "a text"
	}
	text := shorten(veiled(n.Value))
	switch {
	case tagged(n):
		return shorten(veiled(n.Tag)) + " " + text
	case text == concealment:
		return text
	case n.Style&yaml.SingleQuotedStyle != 0 && strconv.CanBackquote(text):
		return "'" + text + "'"
	case n.Style&^yaml.FlowStyle != 0, n.Value == "" && n.Tag != "!!null":
		return strconv.Quote(text)
	case n.Value == "":
		return "null"
	}
	return text
}

// shorten keeps a message readable, and small where the document is not.
func shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// items is the entries of a list.
func (a at) items() []at {
	items := make([]at, len(a.node.Content))
	for i, n := range a.node.Content {
		items[i] = at{path: fmt.Sprintf("%s[%d]", a.path, i), node: deref(n), secret: a.secret}
	}
	return items
}

func scalars(items []at) bool {
	for _, i := range items {
		if i.node.Kind != yaml.ScalarNode {
			return false
		}
	}
	return true
}
