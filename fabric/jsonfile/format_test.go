package jsonfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/jsonfile"
	"fabsh/fabric/jsonfile/jsonfiletest"
)

// all has a member of each type.
type all struct {
	Kind   string        `json:"kind"`
	Small  uint8         `json:"small"`
	Large  uint64        `json:"large"`
	Signed int           `json:"signed" max:"100"`
	Wait   time.Duration `json:"wait"`
	OK     bool          `json:"ok"`
	At     time.Time     `json:"at"`
	Data   []byte        `json:"data"`
	One    *one          `json:"one"`
	Embedded
	Some []*one `json:"some,omitempty" optional:"there are none"`
	Sum  int    `json:"sum,omitempty" when:"kind=sum|both"`
}

type Embedded struct {
	Pairs [][2]int `json:"pairs" max:"3"`
}

type one struct {
	Name string `json:"name"`
}

var (
	strict = jsonfile.New[all](jsonfile.Limits{Text: 100, List: 5})
	later  = jsonfile.New[all](jsonfile.Limits{Unknown: true, Null: true})
)

const example = `{"kind": "sum", "small": 255, "large": 18446744073709551615, "signed": 100, "wait": 1000, "ok": true,
 "at": "2026-01-02T03:04:05Z", "data": "AAEC", "pairs": [[1,2],[3,4]], "one": {"name": "\u00e4\ud83d\ude00\n\"é"},
 "some": [{"name": "a"}], "sum": 7}`

func TestRead(t *testing.T) {
	var want, got, slow all
	if err := json.Unmarshal([]byte(example), &want); err != nil {
		t.Fatal(err)
	}
	if err := strict.Read(strings.NewReader(example), &got); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	if err := strict.Read(iotest.OneByteReader(strings.NewReader(example)), &slow); err != nil || !cmp.Equal(slow, want) {
		t.Errorf("byte by byte: %v\n%s", err, cmp.Diff(want, slow))
	}
}

func TestMembers(t *testing.T) {
	load := func(text []byte) error { return strict.Unmarshal(text, new(all)) }
	jsonfiletest.Members(t, strict.Members(), load, []byte(example))
}

// TestRefused: each text is an error with the line and the member, however it is read.
func TestRefused(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{`"small": 255`, `"small": 256`, "line 1: small: got 256, want a whole number up to 255"},
		{`"small": 255`, `"small": -1`, "line 1: small: got -1, want a whole number up to 255"},
		{`"small": 255`, `"small": 01`, "line 1: small: got 01, want a whole number up to 255"},
		{`"small": 255`, `"small": 1.0`, "line 1: small: got 1.0, want a whole number up to 255"},
		{`"small": 255`, `"small": "1"`, `line 1: small: got "1", want a whole number up to 255`},
		{`"small": 255`, `"small": null`, "line 1: small: got null, want a whole number up to 255"},
		{`"small": 255`, `"small": `, "line 1: small: got ,, want a whole number up to 255"},
		{`"signed": 100`, `"signed": 101`, "line 1: signed: got 101, want a whole number up to 100"},
		{`18446744073709551615`, `18446744073709551616`, "line 1: large: got 18446744073709551616, want a whole number up to 18446744073709551615"},
		{`"ok": true`, `"ok": yes`, "line 1: ok: got yes, want true or false"},
		{`"ok": true`, `"ok": 1`, "line 1: ok: got 1, want true or false"},
		{`"ok": true`, `"ok": true, "ok": true`, `line 1: duplicate "ok"`},
		{`"ok": true`, `"OK": true`, `line 1: unknown member "OK"`},
		{`"ok": true`, `"ok" true`, "line 1: got true, want :"},
		{`"ok": true,`, `"ok": true`, `line 2: got "at", want a comma or }`},
		{`"AAEC"`, `"AAE"`, `line 2: data: got "AAE", want bytes in base64`},
		{`"AAEC"`, `"AA\nEC"`, `line 2: data: got "AA\nEC", want bytes in base64`},
		{`"AAEC"`, `""`, `line 2: data: got "", want bytes in base64`},
		{`"AAEC"`, `null`, `line 2: data: got null, want a string`},
		{`[3,4]`, `[3]`, "line 2: pairs[1]: 1 elements, want 2"},
		{`[3,4]`, `[3,4,5]`, "line 2: pairs[1]: more than 2 elements"},
		{`[3,4]`, `[3,4],[],[],[]`, "line 2: pairs[2]: 0 elements, want 2"},
		{`[3,4]`, `[3,4],[5,6],[7,8]`, "line 2: pairs: more than 3 elements"},
		{`[3,4]`, `[3,4],`, "line 2: pairs[2]: got ], want ["},
		{`[{"name": "a"}]`, `[null]`, "line 3: some[0]: got null, want {"},
		{`[{"name": "a"}]`, `null`, "line 3: some: got null, want ["},
		{`{"name": "a"}`, `{}`, `line 3: some[0]: missing "name"`},
		{`{"name": "a"}`, strings.TrimSuffix(strings.Repeat(`{"name": "a"},`, 6), ","), "line 3: some: more than 5 elements"},
		{`"a"`, `"` + strings.Repeat("a", 98) + `"`, ""},
		{`"a"`, `"` + strings.Repeat("a", 99) + `"`, "line 3: some[0].name: string of more than 100 bytes"},
		{`"a"`, `"` + strings.Repeat(`\n`, 49) + `"`, ""},
		{`"a"`, `"` + strings.Repeat(`\n`, 49) + `a"`, "line 3: some[0].name: string of more than 100 bytes"},
		{`"a"`, `"\x"`, `line 3: some[0].name: invalid escape "\\x" in a string`},
		{`"a"`, `"\u12g4"`, `line 3: some[0].name: invalid \u'g' in a string`},
		{`"a"`, `"\ud800"`, `line 3: some[0].name: half of a character, \ud800, in a string`},
		{`"a"`, `"\ud800udc00"`, `line 3: some[0].name: half of a character, \ud800, in a string`},
		{`"a"`, `"\udc00\ud800"`, `line 3: some[0].name: half of a character, \udc00, in a string`},
		{`"a"`, "\"\xff\"", `line 3: some[0].name: string "\xff": invalid UTF-8`},
		{`"a"`, "\"\n\"", "line 3: some[0].name: control character 0x0a in a string"},
		{`"a"`, "\"a", "line 3: some[0]: got sum, want a comma or }"},
		{`7}`, `7`, "line 3: unexpected EOF"},
		{`7}`, `7}}`, "line 3: unexpected '}' after the end"},
		{`, "sum": 7`, ``, `line 3: missing "sum"`},
		{`"sum", "small"`, `"none", "small"`, ""},
		{`"2026-01-02T03:04:05Z"`, `"2026"`, `line 2: at: parsing time`},
		{`"pairs": `, `"pairs": ` + strings.Repeat(" ", 1<<17), "line 2: pairs: more than 65536 bytes of white space"},
		{`{"kind"`, "\x00", `line 1: got '\x00', want {`},
	} {
		text := strings.Replace(example, x.old, x.new, 1)
		if text == example {
			t.Errorf("%q is not in the example", x.old)
		}
		err := strict.Read(iotest.HalfReader(strings.NewReader(text)), new(all))
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.HasPrefix(err.Error(), x.want)) {
			t.Errorf("%.50q: %v\nwant %s", x.new, err, x.want)
		}
		if err != nil && errors.As(err, new(*jsonfile.Error)) != true {
			t.Errorf("%.50q: %T", x.new, err)
		}
	}
}

// TestLater: a format may accept unknown members and lists that are null.
func TestLater(t *testing.T) {
	text := strings.NewReplacer(`"AAEC"`, "null", `[[1,2],[3,4]]`, "null", `{"kind"`, `{"new": [{"x": -1.5e+3, "y": [true, null, "\n"]}, {}, []], "kind"`).Replace(example)
	var v all
	if err := later.Unmarshal([]byte(text), &v); err != nil || v.Data != nil || v.Pairs != nil || v.Sum != 7 {
		t.Errorf("%v: %+v", err, v)
	}
	for _, value := range []string{"01", "1.", "-", "nul", "{]", `{"a"}`, "[1 2]", strings.Repeat("[", 100)} {
		text := strings.Replace(example, `{"kind"`, `{"new": `+value+`, "kind"`, 1)
		if err := later.Unmarshal([]byte(text), new(all)); err == nil || strings.HasPrefix(err.Error(), "line") {
			t.Errorf("%.20q: %v", value, err)
		}
	}
}

// TestRows: rows are passed on as they are read; an error of the function has the place of the row.
func TestRows(t *testing.T) {
	type file struct {
		Rows jsonfile.Rows[one] `json:"rows" max:"3"`
	}
	var names []string
	v := file{func(row *one) error {
		if names = append(names, row.Name); row.Name == "bad" {
			return jsonfile.At("name", errors.New("invalid"))
		}
		return nil
	}}
	f := jsonfile.New[file](jsonfile.Limits{})
	err := f.Read(strings.NewReader("{\"rows\": [{\"name\": \"a\"},\n{\"name\": \"bad\"}]}"), &v)
	if err == nil || err.Error() != "line 2: rows[1].name: invalid" || !slices.Equal(names, []string{"a", "bad"}) {
		t.Errorf("%v, %q", err, names)
	}
	broken := errors.New("broken")
	if err := f.Read(io.MultiReader(strings.NewReader(`{"rows": [`), iotest.ErrReader(broken)), &v); err != broken {
		t.Errorf("%v", err)
	}
}

// The declarations of these structs are incomplete.
type (
	omitted struct {
		A int `json:"a,omitempty"`
	}
	unnamed struct{ A int }
	when    struct {
		A int `json:"a" when:"b=c"`
	}
	untyped struct {
		A any `json:"a"`
	}
	limited struct {
		A int `json:"a" max:"many"`
	}
)

// TestInvalidFormats: New panics for a struct whose declaration is incomplete.
func TestInvalidFormats(t *testing.T) {
	for what, f := range map[string]func(){
		"omitted": func() { jsonfile.New[omitted](jsonfile.Limits{}) },
		"unnamed": func() { jsonfile.New[unnamed](jsonfile.Limits{}) },
		"when":    func() { jsonfile.New[when](jsonfile.Limits{}) },
		"untyped": func() { jsonfile.New[untyped](jsonfile.Limits{}) },
		"limited": func() { jsonfile.New[limited](jsonfile.Limits{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			f()
		}()
	}
}

// FuzzRead: what is accepted is what encoding/json reads, whether all is in memory or not, and
// written again it is accepted.
func FuzzRead(f *testing.F) {
	f.Add([]byte(example))
	for _, text := range jsonfiletest.Without([]byte(example)) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, slow, tolerant, want all
		err := strict.Unmarshal(text, &got)
		slowErr := strict.Read(iotest.OneByteReader(bytes.NewReader(text)), &slow)
		if (err == nil) != (slowErr == nil) || err == nil && !reflect.DeepEqual(got, slow) {
			t.Fatalf("in memory %v, byte by byte %v", err, slowErr)
		}
		if err := later.Unmarshal(text, &tolerant); err == nil && !json.Valid(text) {
			t.Fatal("accepted, and is not valid JSON")
		}
		if err != nil {
			return
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("accepted, and encoding/json: %v", err)
		}
		again, err := json.Marshal(got)
		if other, _ := json.Marshal(want); err != nil || strings.ReplaceAll(string(other), "[]", "null") != strings.ReplaceAll(string(again), "[]", "null") {
			t.Fatalf("%v: got %s, want %s", err, again, other)
		}
	})
}
