package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// parseMap makes the same nodes of Go values: maps with string keys, slices, strings, booleans, numbers, time.Duration and nil.
func parseMap(m map[string]any) (*yaml.Node, error) {
	if len(m) == 0 {
		return nil, nil
	}
	g := goReader{}
	return g.value("", reflect.ValueOf(m), 0)
}

type goReader struct{ nodes int }

var durationType = reflect.TypeFor[time.Duration]()

func (g *goReader) value(path string, v reflect.Value, depth int) (*yaml.Node, error) {
	if g.nodes++; g.nodes > mostNodes {
		return nil, errBig
	}
	if depth > mostDepth { // a map that contains itself ends here
		return nil, errDeep
	}
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		if v.IsNil() {
			return scalar("!!null", "null"), nil
		}
		if depth++; depth > mostDepth {
			return nil, errDeep
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return scalar("!!null", "null"), nil
	}
	if v.Type() == durationType {
		return scalar("!!str", nanoseconds(v.Int())), nil
	}
	if v.Type() == reflect.TypeFor[json.Number]() {
		return scalar("!!float", v.String()), nil
	}
	switch v.Kind() {
	case reflect.String:
		return quoted(v.String()), nil
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool())), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return scalar("!!int", strconv.FormatInt(v.Int(), 10)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return scalar("!!int", strconv.FormatUint(v.Uint(), 10)), nil
	case reflect.Float32, reflect.Float64:
		return scalar("!!float", strconv.FormatFloat(v.Float(), 'f', -1, v.Type().Bits())), nil
	case reflect.Slice, reflect.Array:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			c, err := g.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i), depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		return n, nil
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			return g.mapping(path, v, depth)
		}
	}
	return nil, fmt.Errorf("registry: %s is a %v: want a map with string keys, a slice, a string, a boolean, a number or a time.Duration",
		cmp.Or(path, "the map"), v.Type())
}

// mapping sorts the keys: what comes of a map must not hang on its order.
func (g *goReader) mapping(path string, v reflect.Value, depth int) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, k := range keys {
		below := k.String()
		if path != "" {
			below = join(path, below)
		}
		c, err := g.value(below, v.MapIndex(k), depth+1)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, quoted(k.String()), c)
	}
	return n, nil
}

// nanoseconds is a time.Duration as text that parseDuration reads back exactly, or refuses (a negative one).
func nanoseconds(ns int64) string { return strconv.FormatInt(ns, 10) + "ns" }
