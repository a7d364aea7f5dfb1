package records

import (
	"bytes"
	"testing"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// TestData: a record's bytes are those that came, reserved bits included, but for
// keys, which are zeros.
func TestData(t *testing.T) {
	for _, a := range append(mad.Attributes(), mad.Headers()...) {
		if a.Field("data") != nil {
			continue // a field, of what has no other
		}
		r := New(a, bytes.Repeat([]byte{0xee}, a.Size))
		v, err := r.Attr("data")
		data, ok := v.(starlark.Bytes)
		if err != nil || !ok || len(data) != a.Size {
			t.Errorf("%s.data is %v, %v", a.Name, v, err)
			continue
		}
		if b, err := starlark.Call(new(starlark.Thread), starlark.Universe["bytes"], starlark.Tuple{r}, nil); err != nil || b != v {
			t.Errorf("bytes(%s) is %v, %v", a.Name, b, err)
		}
		for i := range a.Flat() {
			if f := &a.Flat()[i]; f.Key {
				for at := f.Offset / 8; at < fieldEnd(f); at++ {
					if data[at] != 0 {
						t.Errorf("%s.data shows %s", a.Name, f.Script)
						break
					}
				}
			}
		}
		keys := bytes.Count([]byte(data), []byte{0})
		if rest := bytes.Count([]byte(data), []byte{0xee}); rest+keys != a.Size {
			t.Errorf("%s.data: %d bytes as they came and %d of keys, of %d", a.Name, rest, keys, a.Size)
		}
	}
}
