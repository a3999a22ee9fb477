package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// jsonSpace is what JSON takes for nothing.
const jsonSpace = " \t\r\n"

// parseJSON makes the same nodes of JSON: token by token, so that repeated keys are seen and numbers keep their text.
func parseJSON(text []byte) (*yaml.Node, error) {
	if len(bytes.Trim(text, jsonSpace)) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	j := jsonReader{dec: dec}
	root, err := j.value(0)
	if err != nil {
		return nil, fmt.Errorf("registry: JSON at byte %d: %w", dec.InputOffset(), unexpected(err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("registry: JSON at byte %d: there is more after the document's end", dec.InputOffset())
	}
	return root, nil
}

// unexpected: the end of the text within a value is not the end of a stream.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

type jsonReader struct {
	dec   *json.Decoder
	nodes int
}

func (j *jsonReader) value(depth int) (*yaml.Node, error) {
	t, err := j.dec.Token()
	if err != nil {
		return nil, err
	}
	if j.nodes++; j.nodes > mostNodes {
		return nil, errBig
	}
	if depth > mostDepth {
		return nil, errDeep
	}
	switch t := t.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if t == '{' {
			n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		for j.dec.More() { // a key and its value, or one entry: the decoder keeps the grammar
			c, err := j.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		_, err := j.dec.Token()
		return n, err
	case string:
		return quoted(t), nil
	case json.Number:
		return scalar("!!float", t.String()), nil
	case bool:
		return scalar("!!bool", fmt.Sprint(t)), nil
	}
	return scalar("!!null", "null"), nil
}

func scalar(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

func quoted(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
}
