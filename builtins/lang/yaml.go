package lang

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.yaml.in/yaml/v3"
)

// YAMLModule is the module yaml: the part of YAML that corresponds to JSON.
var YAMLModule = &starlarkstruct.Module{
	Name: "yaml",
	Members: starlark.StringDict{
		"decode": NewFunction(&YAMLDecode),
		"encode": NewFunction(&YAMLEncode),
	},
}

// YAMLEncode is yaml.encode.
var YAMLEncode = Builtin{
	Name:   "yaml.encode",
	Group:  GroupOutput,
	Params: []Param{{Name: "x", Kind: KindAny, Doc: "dicts, lists, strings, numbers, bools, None"}},
	Doc: `Returns a value as a YAML document.
Dicts keep their order. A string that readers would take for another type, such as "no" or "1e3", is quoted.`,
	Example: `
> yaml.encode({"switch": "leaf-1", "nodes": "node[1-4]", "on": "no", "width": 4})
switch: leaf-1
nodes: node[1-4]
"on": "no"
width: 4
`,
	Run: Do(func(c *Call, a *struct{ X starlark.Value }) (starlark.Value, error) {
		node, err := yamlNode(a.X, 0)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		e := yaml.NewEncoder(&out)
		e.SetIndent(2)
		if err := errors.Join(e.Encode(node), e.Close()); err != nil {
			return nil, err
		}
		return starlark.String(out.String()), nil
	}),
}

// YAMLDecode is yaml.decode.
var YAMLDecode = Builtin{
	Name:    "yaml.decode",
	Group:   GroupOutput,
	Returns: "list",
	Params:  []Param{{Name: "text", Kind: KindText, Doc: "documents, separated by ---"}},
	Doc: `Returns the values of the documents in a YAML stream, as a list.
	Scalars other than numbers, bools and null, such as dates, become strings. Keys are strings.`,
	Example: `
> yaml.decode("- switch: leaf-1\n  nodes: [a, 1, null]\n")
[[{"switch": "leaf-1", "nodes": ["a", 1, None]}]]
`,
	Run: Do(func(c *Call, a *struct{ Text string }) (starlark.Value, error) {
		docs := new(starlark.List)
		d := yaml.NewDecoder(strings.NewReader(a.Text))
		budget := maxYAMLNodes
		for {
			var node yaml.Node
			switch err := d.Decode(&node); {
			case errors.Is(err, io.EOF):
				return docs, nil
			case err != nil:
				return nil, ParamError("text", "%w", err)
			}
			v, err := yamlValue(&node, 0, &budget)
			if err != nil {
				return nil, ParamError("text", "%w", err)
			}
			docs.Append(v)
		}
	}),
}

const (
	maxYAMLDepth = 100
	maxYAMLNodes = 4 << 20 // with aliases expanded
)

// yamlNode returns v as a part of a document.
func yamlNode(v starlark.Value, depth int) (*yaml.Node, error) {
	if depth > maxYAMLDepth {
		return nil, fmt.Errorf("cannot encode as YAML: more than %d levels of nesting", maxYAMLDepth)
	}
	scalar := func(tag, text string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}, nil
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return scalar("!!null", "null")
	case starlark.Bool:
		return scalar("!!bool", strings.ToLower(v.String()))
	case starlark.Int:
		return scalar("!!int", v.String())
	case starlark.Float:
		return scalar("!!float", strings.Replace(strings.Replace(strings.TrimPrefix(v.String(), "+"), "inf", ".inf", 1), "nan", ".nan", 1))
	case starlark.String:
		node, _ := scalar("!!str", strings.ToValidUTF8(string(v), "\uFFFD"))
		if !isPlainYAML(node.Value) {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node, nil
	case starlark.IterableMapping:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, kv := range v.Items() {
			key, ok := starlark.AsString(kv[0])
			if !ok {
				return nil, fmt.Errorf("cannot encode as YAML: got a key of type %s, want string", kv[0].Type())
			}
			k, _ := yamlNode(starlark.String(key), depth+1)
			x, err := yamlNode(kv[1], depth+1)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, k, x)
		}
		return node, nil
	case starlark.Iterable:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for _, x := range Collect(v) {
			item, err := yamlNode(x, depth+1)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, item)
		}
		return node, nil
	}
	return nil, fmt.Errorf("cannot encode %s as YAML", v.Type())
}

// isPlainYAML reports whether every reader takes the text for a string without quotes.
// The library follows YAML 1.2; for readers of 1.1, as in Kubernetes, "no" is false and
// 1:30 is a number.
func isPlainYAML(text string) bool {
	switch strings.ToLower(text) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	c := text[0] | 0x20
	return 'a' <= c && c <= 'z'
}

// yamlValue returns the value of a part of a document. budget is the number of further
// parts that are allowed.
func yamlValue(n *yaml.Node, depth int, budget *int) (starlark.Value, error) {
	if *budget--; *budget < 0 || depth > maxYAMLDepth {
		return nil, fmt.Errorf("YAML line %d: too large; limits: %d parts, %d levels of nesting", n.Line, maxYAMLNodes, maxYAMLDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 1 {
			return yamlValue(n.Content[0], depth, budget)
		}
	case yaml.AliasNode:
		return yamlValue(n.Alias, depth+1, budget)
	case yaml.SequenceNode:
		list := make([]starlark.Value, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := yamlValue(c, depth+1, budget)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return starlark.NewList(list), nil
	case yaml.MappingNode:
		d := starlark.NewDict(len(n.Content) / 2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("YAML line %d: a key is not a string", k.Line)
			}
			if _, found, _ := d.Get(starlark.String(k.Value)); found {
				return nil, fmt.Errorf("YAML line %d: duplicate key %.60q", k.Line, k.Value)
			}
			v, err := yamlValue(n.Content[i+1], depth+1, budget)
			if err != nil {
				return nil, err
			}
			d.SetKey(starlark.String(k.Value), v)
		}
		return d, nil
	case yaml.ScalarNode:
		return yamlScalar(n)
	}
	return starlark.None, nil
}

// yamlScalar returns the value of a scalar.
func yamlScalar(n *yaml.Node) (starlark.Value, error) {
	var x any
	switch n.ShortTag() {
	case "!!null":
		return starlark.None, nil
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&x); err != nil {
			return nil, err
		}
	}
	switch x := x.(type) {
	case bool:
		return starlark.Bool(x), nil
	case int:
		return starlark.MakeInt(x), nil
	case int64:
		return starlark.MakeInt64(x), nil
	case uint64:
		return starlark.MakeUint64(x), nil
	case float64:
		return starlark.Float(x), nil
	}
	return starlark.String(n.Value), nil
}
