package lang

import (
	"testing"

	"go.starlark.net/starlark"
)

// TestCheck: a builtin whose parameters and fields disagree is found before it
// is called.
func TestCheck(t *testing.T) {
	type args struct {
		Target starlark.Value
		InPort *int
	}
	fn := func(*Call, *args) (starlark.Value, error) { return starlark.None, nil }
	target := Param{Name: "target", Kind: KindAny}
	for _, test := range []struct {
		name   string
		params []Param
		want   string
	}{
		{"agree", []Param{target, {Name: "in_port", Kind: KindInt, Default: "None"}}, ""},
		{"misspelt", []Param{target, {Name: "inport", Kind: KindInt, Default: "None"}}, "x: no field of lang.args takes the parameter inport"},
		{"another type", []Param{target, {Name: "in_port", Kind: KindText, Default: "None"}}, "x: the field InPort of lang.args is a *int, but the parameter in_port converts to a string"},
		{"always given", []Param{target, {Name: "in_port", Kind: KindInt, Default: "0"}}, "x: the field InPort of lang.args is a *int, but the parameter in_port converts to a int"},
		{"a field too many", []Param{target}, "x: no parameter for the field InPort of lang.args"},
	} {
		b := &Builtin{Name: "x", Params: test.params, Run: Do(fn)}
		got := ""
		if err := b.Check(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestSnake: the field of a parameter has its words.
func TestSnake(t *testing.T) {
	for field, want := range map[string]string{"X": "x", "InPort": "in_port", "LIDs": "lids", "MgmtClass": "mgmt_class", "SL2VL": "sl2vl", "FN": "fn", "SL": "sl", "DLIDRange": "dlid_range"} {
		if got := snake(field); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
}
