package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead/fairlead/internal/check"
)

// What a document may be. More is refused with an error, before anything is made of it.
const (
	mostBytes = 1 << 20
	mostNames = 1000   // in a section
	mostDepth = 32     // of mappings and lists, aliases followed
	mostNodes = 50_000 // aliases followed: a document within the other limits needs no more
)

// read takes in a text that is not too long.
func read(r io.Reader) ([]byte, error) {
	if check.Nil(r) {
		return nil, errors.New("registry: the reader is nil: want one with a document")
	}
	text, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("registry: reading the document: %w", err)
	case len(text) > mostBytes:
		return nil, fmt.Errorf("registry: the document is longer than %d bytes", mostBytes)
	case bytes.IndexByte(text, 0) < 0 && !utf8.Valid(text):
		return nil, errors.New("registry: the document is not UTF-8")
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil // the mark of UTF-8, which some editors write
}

// digest tells one text from another.
type digest [sha256.Size]byte

func digestOf(text []byte) *digest {
	sum := digest(sha256.Sum256(text))
	return &sum
}

// parseAny is JSON where text is JSON, and else YAML.
func parseAny(text []byte) (*yaml.Node, error) {
	trimmed := bytes.Trim(text, jsonSpace)
	if len(trimmed) == 0 || trimmed[0] == '{' && json.Valid(trimmed) {
		return parseJSON(text)
	}
	return parseYAML(text)
}

// parseYAML makes nodes, without decoding them: the generic decoder expands aliases, and is quadratic in keys.
func parseYAML(text []byte) (*yaml.Node, error) {
	if err := flat(text); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := decodeNode(dec, &doc); {
	case err == io.EOF:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("registry: %w", err)
	}
	if err := decodeNode(dec, &more); err != io.EOF {
		if err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
		return nil, errors.New("registry: there is a second YAML document after ---: want one")
	}
	root := doc.Content[0]
	if err := bounded(root); err != nil {
		return nil, err
	}
	return root, nil
}

// decodeNode turns a panic of the parser's into an error: a configuration must never take the program down.
func decodeNode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: the parser panicked: %v", p)
		}
	}()
	return veiledAnchor(dec.Decode(n))
}

// flat looks at the text alone: brackets that nest too deep, lines of nothing but list dashes, and very many values cost the
// parser more than they are long.
func flat(text []byte) error {
	depth, separators := 0, 0
	for line := range bytes.FieldsFuncSeq(text, ends) {
		separators++
		if dashes(line) > mostDepth {
			return errDeep
		}
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			case ',', ':':
				separators++
			}
		}
		// Brackets in comments and quoted texts count as well: generous, so that no document that a person wrote is refused.
		if depth > 64*mostDepth {
			return errDeep
		}
		if separators > 2*mostNodes {
			return errBig
		}
	}
	return nil
}

// ends says that r ends a line of YAML.
func ends(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// dashes is how many lists a line opens, also in UTF-16.
func dashes(line []byte) (n int) {
	for _, c := range line {
		switch c {
		case '-', '?':
			n++
		case ' ', '\t', 0, 0xFE, 0xFF:
		default:
			return n
		}
	}
	if n > 0 && bytes.HasPrefix(bytes.TrimSpace(line), []byte("---")) {
		return 0 // a document's separator, or a rule that the parser knows to refuse
	}
	return n
}

var (
	errDeep = fmt.Errorf("registry: the document nests deeper than %d", mostDepth)
	errBig  = fmt.Errorf("registry: the document has more than %d values, aliases followed", mostNodes)
)

// bounded walks the nodes, aliases followed, as far as the limits allow: then no later walk can run away.
func bounded(root *yaml.Node) error {
	nodes := 0
	var walk func(n *yaml.Node, depth int) error
	walk = func(n *yaml.Node, depth int) error {
		if nodes++; nodes > mostNodes {
			return errBig
		}
		if depth > mostDepth {
			return errDeep
		}
		if n.Kind == yaml.AliasNode {
			return walk(n.Alias, depth+1)
		}
		for _, c := range n.Content {
			if err := walk(c, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root, 0)
}
