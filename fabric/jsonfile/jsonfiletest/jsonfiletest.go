// Package jsonfiletest tests formats of files: whether a file without any one of its members is
// refused, or is documented to be valid.
package jsonfiletest

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/fabric/jsonfile"
)

// Members deletes each member of each object in the examples in turn. The examples must have all
// declared members. load reads a text. Without a required member it must return an error that names
// the member; without another one, this or no error.
func Members(t *testing.T, declared []jsonfile.Member, load func(text []byte) error, examples ...[]byte) {
	t.Helper()
	refused := map[string]bool{} // by path; false: found
	for _, example := range examples {
		if err := load(example); err != nil {
			t.Errorf("the example: %v\n%s", err, example)
		}
		for path, text := range Without(example) {
			i := slices.IndexFunc(declared, func(m jsonfile.Member) bool { return m.Path == path })
			if i < 0 {
				t.Errorf("%s is not declared", path)
				continue
			}
			name := strconv.Quote(path[strings.LastIndexByte(path, '.')+1:])
			err := load(text)
			switch {
			case err == nil && declared[i].Required:
				t.Errorf("without %s: no error", path)
			case err != nil && !strings.Contains(err.Error(), "missing "+name):
				t.Errorf("without %s: %v; want missing %s", path, err, name)
			}
			refused[path] = refused[path] || err != nil
		}
	}
	for _, m := range declared {
		switch without, found := refused[m.Path]; {
		case !found:
			t.Errorf("no example has %s", m.Path)
		case !without && m.When != "":
			t.Errorf("%s is never required, want when %s", m.Path, m.When)
		}
	}
}

// Without yields the text of a JSON value without one member, for each member of each object in it,
// and the path of the member without numbers: sets[].new.
func Without(text []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		w := walker{text: text, d: json.NewDecoder(bytes.NewReader(text)), yield: yield}
		w.d.UseNumber()
		w.value("")
	}
}

type walker struct {
	text  []byte
	d     *json.Decoder
	yield func(string, []byte) bool
	ended bool
}

func (w *walker) value(path string) {
	token, err := w.d.Token()
	if err != nil {
		if err != io.EOF {
			panic(err)
		}
		return
	}
	switch token {
	case json.Delim('['):
		for w.d.More() {
			w.value(path + "[]")
		}
		w.d.Token()
	case json.Delim('{'):
		for n := 0; w.d.More(); n++ {
			before := int(w.d.InputOffset()) // a comma follows, except before the first member
			name, _ := w.d.Token()
			at := strings.TrimPrefix(path+"."+name.(string), ".")
			w.value(at)
			after := int(w.d.InputOffset())
			if n == 0 && w.d.More() {
				after += bytes.IndexByte(w.text[after:], ',') + 1
			}
			if !w.ended {
				w.ended = !w.yield(at, slices.Concat(w.text[:before], w.text[after:]))
			}
		}
		w.d.Token()
	}
}
