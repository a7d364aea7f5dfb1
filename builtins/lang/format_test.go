package lang

import (
	"testing"

	"go.starlark.net/starlark"
)

// FuzzFormat: no format panics or makes endless text.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"5d", "<8.3", "*^+#010,.2f", "%", "=", "日<5"} {
		f.Add(s, int64(-5), 2.5, "x")
	}
	f.Fuzz(func(t *testing.T, spec string, n int64, x float64, s string) {
		for _, v := range []starlark.Value{starlark.MakeInt64(n), starlark.Float(x), starlark.String(s)} {
			if out, err := formatValue(spec, v); err == nil && len(out) > 10*maxFormatWidth+len(s)+400 {
				t.Errorf("fmt(%q, %v) gives %d bytes", spec, v, len(out))
			}
		}
	})
}
