package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"fabsh/shell/session"
)

// Tool is what an agent can call.
type Tool struct {
	Name   string
	Title  string // one line
	Doc    string // what it does, besides the title
	Params []Param
	// Run runs the tool in a session. What it shows is its result. Nil: Help is set.
	Run func(ctx context.Context, s *session.Session, a Arguments) error
	// IsText reports whether it shows a text, and not JSON. Nil: it never does.
	IsText func(a Arguments) bool
	// Help returns a text that needs no fabric.
	Help func(a Arguments) (string, error)
	// Set is the set of tools that can be switched off with it.
	Set string
	// NoFabric means that it reads no fabric; Fresh, that it always sweeps.
	NoFabric, Fresh bool

	more bool // it reads an earlier result
}

// Parameters that the server adds to tools.
var (
	rowsParam = Param{Name: "rows", Kind: KindNumber, Doc: "per list (default 20)"}
	ageParam  = Param{Name: "max_age", Kind: KindNumber, Doc: "s (default 60)"}
	fromParam = Param{Name: "from", Kind: KindNumber, Doc: "first element or byte, from 0"}
)

// all returns the parameters of a tool with those that the server adds.
func (t *Tool) all() []Param {
	list := slices.Clone(t.Params)
	switch {
	case t.more:
		return list
	case t.Run == nil:
		return append(list, fromParam)
	case !t.NoFabric && !t.Fresh:
		list = append(list, ageParam)
	}
	return append(list, rowsParam)
}

// moreTool returns what an answer has left out.
func moreTool() Tool {
	return Tool{
		Name: "more", Title: "Show more of an earlier answer", more: true, NoFabric: true,
		Doc: "Reads nothing again: pages through a list or a text that cut names. Use it instead of calling the tool again.",
		Params: []Param{
			{Name: "at", Kind: KindText, Required: true, Doc: "a place of cut: values[0].findings"},
			{Name: "result", Kind: KindText, Doc: "the result of the answer (default: the latest)"},
			fromParam, {Name: "rows", Kind: KindNumber, Doc: "how many (default: 20)"},
		},
		Run: func(context.Context, *session.Session, Arguments) error { return nil },
	}
}

// number returns an argument of KindNumber that is positive, 0 if it is not given.
func (a Arguments) number(name string) int {
	x, _ := a[name].(float64)
	return int(min(max(x, 0), allRows))
}

// maxAge returns how old a sweep may be that a call uses.
func (a Arguments) maxAge(t *Tool) time.Duration {
	switch {
	case a.Has("max_age"):
		return time.Duration(a.number("max_age")) * time.Second
	case t.Fresh:
		return -1
	}
	return DefaultMaxAge
}

// Param is a parameter of a tool.
type Param struct {
	Name, Doc string
	Kind      ParamKind
	Words     []string // the possible values of KindText and KindTexts; nil: any
	Required  bool
}

// ParamKind is the type of a parameter in JSON.
type ParamKind uint8

const (
	KindText    ParamKind = iota // a string
	KindBool                     // true or false
	KindNumber                   // an integer
	KindTexts                    // an array of strings
	KindOptions                  // an object: options of scripts, by name
)

// FlagParam returns the parameter that sets a flag of a command. Its kind is that of the flag's
// type: bool, int, or for one that may be repeated, "...Array".
func FlagParam(f *pflag.Flag) Param {
	p := Param{Name: paramName(f.Name)}
	_, p.Doc = pflag.UnquoteUsage(f)
	switch kind := f.Value.Type(); {
	case kind == "bool":
		p.Kind = KindBool
	case kind == "int":
		p.Kind = KindNumber
	case strings.HasSuffix(kind, "Array"):
		p.Kind = KindTexts
	}
	return p
}

// paramName returns the name of the parameter for a flag.
func paramName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// flagName returns the flag for the name of a parameter.
func flagName(param string) string { return strings.ReplaceAll(param, "_", "-") }

// Limits of arguments.
const (
	maxText  = 1 << 20 // bytes of all
	maxItems = 1000    // of a list
)

// schema returns the JSON schema of a parameter.
func (p *Param) schema() map[string]any {
	text := map[string]any{"type": "string"}
	if p.Words != nil {
		text["enum"] = p.Words
	}
	s := text
	switch p.Kind {
	case KindBool:
		s = map[string]any{"type": "boolean"}
	case KindNumber:
		s = map[string]any{"type": "integer"}
	case KindTexts:
		s = map[string]any{"type": "array", "items": text}
	case KindOptions:
		single := []string{"string", "number", "boolean"}
		s = map[string]any{"type": "object", "additionalProperties": map[string]any{
			"type": slices.Concat(single, []string{"array"}), "items": map[string]any{"type": single},
		}}
	}
	s["description"] = p.Doc
	return s
}

// InputSchema returns the JSON schema of the arguments.
func (t *Tool) InputSchema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, p := range t.all() {
		properties[p.Name] = p.schema()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// Arguments are the arguments of a call, which the schema of its tool accepts.
type Arguments map[string]any

// Has reports whether an argument is given.
func (a Arguments) Has(name string) bool { _, ok := a[name]; return ok }

// Text returns an argument of KindText, "" if it is not given.
func (a Arguments) Text(name string) string {
	text, _ := a[name].(string)
	return text
}

// Bool returns an argument of KindBool.
func (a Arguments) Bool(name string) bool {
	is, _ := a[name].(bool)
	return is
}

// Texts returns an argument of KindTexts.
func (a Arguments) Texts(name string) (texts []string) {
	list, _ := a[name].([]any)
	for _, v := range list {
		texts = append(texts, fmt.Sprint(v))
	}
	return texts
}

// SetFlags sets the flags of f that are given.
func (a Arguments) SetFlags(f *pflag.FlagSet) (err error) {
	f.VisitAll(func(flag *pflag.Flag) {
		v, ok := a[paramName(flag.Name)]
		if !ok || err != nil {
			return
		}
		values := []any{v}
		if list, isList := v.([]any); isList {
			values = list
		}
		for _, v := range values {
			if failed := flag.Value.Set(word(v)); failed != nil {
				err = fmt.Errorf("%s: %w", paramName(flag.Name), failed)
				return
			}
		}
	})
	return err
}

// Words returns the options of a script as words of a command line. Each must be among declared,
// such as "--over" and "--no-check".
func (a Arguments) Words(name string, declared []string) (words []string, err error) {
	options, _ := a[name].(map[string]any)
	var names []string
	for option := range options {
		names = append(names, option)
	}
	slices.Sort(names)
	for _, option := range names {
		flag := "--" + flagName(option)
		negated := "--no-" + flag[2:]
		switch on, isBool := options[option].(bool); {
		case isBool && !on && slices.Contains(declared, negated):
			words = append(words, negated)
			continue
		case isBool && on && slices.Contains(declared, negated):
			continue // the default
		case !slices.Contains(declared, flag):
			return nil, fmt.Errorf("unknown option %q; options: %s", option, strings.Join(optionNames(declared), ", "))
		case isBool && !on:
			continue
		case isBool:
			words = append(words, flag)
			continue
		}
		values := []any{options[option]}
		if list, isList := options[option].([]any); isList {
			values = list
		}
		for _, v := range values {
			words = append(words, flag+"="+word(v))
		}
	}
	return words, nil
}

// optionNames returns the names of options for declared flags.
func optionNames(declared []string) (names []string) {
	for _, flag := range declared {
		names = append(names, paramName(strings.TrimPrefix(strings.TrimPrefix(flag, "--no-"), "--")))
	}
	if names == nil {
		names = []string{"none"}
	}
	return names
}

// word returns a value of JSON as a word of a command line.
func word(v any) string {
	if x, ok := v.(float64); ok && x == float64(int64(x)) {
		return fmt.Sprint(int64(x))
	}
	return fmt.Sprint(v)
}

// addTool offers a tool.
func (s *Server) addTool(t *Tool) {
	end := "."
	if strings.HasSuffix(t.Title, "?") {
		end = ""
	}
	doc := t.Title + end + "\n\n" + t.Doc
	offered := &mcp.Tool{
		Name: t.Name, Description: strings.TrimSpace(doc), InputSchema: brief(t.InputSchema()),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}
	schema := resolved(t.InputSchema())
	s.sdk.AddTool(offered, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		a, err := parse(schema, r.Params.Arguments)
		if err != nil {
			return failure(fmt.Errorf("%s: invalid arguments: %w; the tool's inputSchema describes them", t.Name, err)), nil
		}
		return s.callTool(ctx, r, t, a)
	})
}

// maxParamDoc is the maximum length of the description of a parameter in the list of tools, in
// bytes: clients give the whole list to a model. help has the whole description.
const maxParamDoc = 50

// brief returns a schema for the list of tools. Arguments are validated by the whole one.
func brief(schema map[string]any) map[string]any {
	properties := map[string]any{}
	for name, p := range schema["properties"].(map[string]any) {
		short := map[string]any{}
		for k, v := range p.(map[string]any) {
			if k != "additionalProperties" {
				short[k] = v
			}
		}
		if doc, _ := short["description"].(string); len(doc) > maxParamDoc && !strings.Contains(doc, " names of ") && !strings.HasPrefix(doc, "the report: ") {
			doc = doc[:maxParamDoc]
			short["description"] = strings.ToValidUTF8(doc[:max(strings.LastIndexByte(doc, ' '), 1)], "") + " ..."
		}
		properties[name] = short
	}
	list := map[string]any{}
	for k, v := range schema {
		if k != "additionalProperties" {
			list[k] = v
		}
	}
	list["properties"] = properties
	return list
}

// resolved returns a schema that can be applied.
func resolved(schema map[string]any) *jsonschema.Resolved {
	var s jsonschema.Schema
	text, err := json.Marshal(schema)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	r, err2 := s.Resolve(nil)
	if err = errors.Join(err, err2); err != nil {
		panic(err) // it is part of the program
	}
	return r
}

// maxReason is the maximum length of why arguments are invalid, which may repeat them.
const maxReason = 300

// parse returns the arguments in a text that a schema accepts.
func parse(schema *jsonschema.Resolved, text json.RawMessage) (a Arguments, err error) {
	if len(text) == 0 || string(text) == "null" {
		text = json.RawMessage("{}")
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("%d bytes, more than %d", len(text), maxText)
	}
	if err = json.Unmarshal(text, &a); err == nil {
		err = schema.Validate(map[string]any(a))
	}
	for name, v := range a {
		if list, isList := v.([]any); isList && len(list) > maxItems {
			err = fmt.Errorf("%s: %d elements, more than %d", name, len(list), maxItems)
		}
	}
	if err == nil {
		return a, nil
	}
	reason := strings.TrimPrefix(err.Error(), "validating root: ")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "..."
	}
	return nil, errors.New(reason)
}
