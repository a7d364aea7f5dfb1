package builtins

import (
	"fmt"
	"reflect"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// statistics is the value `stats`: an engine's counts.
type statistics struct{ mad.Stats }

var (
	_ starlark.HasAttrs = statistics{}
	_ factual           = statistics{}
)

var statsBuiltin = Builtin{
	Name:  "stats",
	Group: groupRest,
	Doc: `Returns how many MADs went out and came in so far.
Counts are never part of other values, which are the same in every run.`,
	Example: `
> stats().timed_out
0
`,
	fn: func(c *call) (starlark.Value, error) {
		e, err := c.engine()
		if err != nil {
			return nil, err
		}
		return statistics{e.Stats()}, nil
	},
}

func (s statistics) String() string {
	return fmt.Sprintf("stats(sent=%d, answered=%d, timed_out=%d)", s.Sent, s.Answered, s.TimedOut)
}
func (s statistics) Type() string          { return "stats" }
func (s statistics) Freeze()               {}
func (s statistics) Truth() starlark.Bool  { return true }
func (s statistics) Hash() (uint32, error) { return hashUint64(s.Sent), nil }
func (s statistics) schema() string        { return "stats/1" }

// facts are the fields of mad.Stats under their names in snake case.
func (s statistics) facts() []fact {
	v := reflect.ValueOf(s.Stats)
	out := make([]fact, v.NumField())
	for i := range out {
		out[i] = fact{name: mad.SnakeName(v.Type().Field(i).Name), value: starlark.MakeUint64(v.Field(i).Uint())}
	}
	return out
}

func (s statistics) Attr(name string) (starlark.Value, error) {
	for _, f := range s.facts() {
		if f.name == name {
			return f.value, nil
		}
	}
	return nil, nil
}

func (s statistics) AttrNames() []string { return columnsOf([][]fact{s.facts()}) }
