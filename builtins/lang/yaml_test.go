package lang

import (
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// yamlCall is what yaml.decode or yaml.encode gives of x.
func yamlCall(name string, x starlark.Value) (starlark.Value, error) {
	return starlark.Call(new(starlark.Thread), YAMLModule.Members[name], starlark.Tuple{x}, nil)
}

// FuzzYAML: any text is read or refused, and what is read of it is written so that it
// reads the same; the text itself stays one text, as a value and as a key.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{
		"- switch: leaf-1\n  nodes: [a, 1, null, 1.5, true]\n---\nx\n", "a: &a [1]\nb: *a\n", "&a [*a]", "a: &a\n  <<: *a\n",
		"name: [x", "x\n- y: z", "1:30", "0x10", ".nan", "-.inf", "\u2028", "\x85", "# x", "? a\n: b", "!!binary AAAA", "|\n  a\n  b\n", " a", "'", "\ufeffa", "2001-01-01", "1e400", "~",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		valid := starlark.String(strings.ToValidUTF8(text, "\uFFFD"))
		own := starlark.NewDict(1)
		own.SetKey(valid, starlark.NewList([]starlark.Value{valid}))
		values := []starlark.Value{own}
		if docs, err := yamlCall("decode", starlark.String(text)); err == nil {
			values = append(values, Collect(docs.(*starlark.List))...)
		}
		for _, x := range values {
			written, err := yamlCall("encode", x)
			if err != nil {
				t.Fatalf("%v: %v", x, err)
			}
			back, err := yamlCall("decode", written)
			if err != nil {
				t.Fatalf("%v as %q: %v", x, written, err)
			}
			if want := starlark.NewList([]starlark.Value{x}); back.String() != want.String() {
				t.Errorf("%v as %q is %v", want, written, back)
			}
		}
	})
}
