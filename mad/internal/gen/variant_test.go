package gen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// varied is sound, with an attribute of two versions and names, and a variant.
const varied = `package mad

// Box is an attribute.
//
//mad:attr class=SubnAdm id=0x0011 alias=OldBox,Chest methods=Get,GetTable v1=Get,GetBulk modifier=mode:0:8 size=12 section=1.2.3 state
//mad:source alpha a.h box
//mad:source beta b.c box
type Box struct {
	// Kind says what is inside.
	Kind uint16 ` + "`mad:\"0:16\"`" + `
	_    uint16 ` + "`mad:\"16:16\"`" + `
	// Inside is that.
	Inside [8]byte ` + "`mad:\"32:64,bytes\"`" + `
}

// Ball is inside.
//
//mad:header size=4 section=1.2.4
//mad:variant of=Box.Inside name=ball when=Kind:1-3|7,modifier.mode:2
//mad:source alpha a.h ball
//mad:source beta b.c ball
type Ball struct {
	// Size is a number.
	Size uint32 ` + "`mad:\"0:32\"`" + `
}
`

// TestVaried: the directives' words arrive in the tables and on the page.
func TestVaried(t *testing.T) {
	files, err := generate(t, varied)
	if err != nil {
		t.Fatal(err)
	}
	code, page := string(files["zthing.go"]), string(files["ATTRIBUTES.md"])
	for _, want := range []string{
		`[]string{"OldBox", "Chest"}`, "[]Method{MethodGet, MethodGetTable}", "[]Method{MethodGet, MethodGetBulk}",
		"{[2]uint64{0x1, 0x3}, [2]uint64{0x7, 0x7}}", `"ball"`, "LayoutBall", "State:",
	} {
		if !strings.Contains(code, want) {
			t.Errorf("the code lacks %s:\n%s", want, code)
		}
	}
	for _, want := range []string{"OldBox", "Chest", "GetBulk", "ball", "Size"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
}

func TestVariedRefusals(t *testing.T) {
	for _, test := range []struct {
		name, old, new string
		want           string // the error's lines
	}{
		{"unknown old method", "v1=Get,GetBulk", "v1=Get,GetMulti", `thing.go:5:1: Box: unknown method "GetMulti"`},
		{"no such layout", "of=Box.", "of=Bag.", "thing.go:19:1: Ball: a variant needs of=Layout.Field and name="},
		{"no such field", "of=Box.Inside", "of=Box.Outside", "thing.go:19:1: Ball: unknown field Box.Outside"},
		{"no field", "of=Box.Inside", "of=Box", "thing.go:19:1: Ball: \"of=Box\" is invalid\nthing.go:19:1: Ball: unknown field Box."},
		{"no name", " name=ball", "", "thing.go:19:1: Ball: a variant needs of=Layout.Field and name="},
		{"unknown word", "name=ball", "name=ball also=1", `thing.go:19:1: Ball: "also=1" is invalid`},
		{"bad range", "1-3", "3-1", `thing.go:19:1: Ball: "when=Kind:3-1|7,modifier.mode:2" is invalid`},
		{"unknown number", "when=Kind:", "when=Sort:", `thing.go:19:1: Ball: Box has no number "Sort"`},
		{"unknown part of the modifier", "modifier.mode:", "modifier.way:", `thing.go:19:1: Ball: the modifiers of Box have no part "way"`},
		{"too long", "size=4 section=1.2.4", "size=12 section=1.2.4", "thing.go:19:1: Ball: does not fit in Box.Inside"},
		{"only for another", "name=ball", "name=ball only=Bag", "thing.go:19:1: Ball: Box has no attribute Bag"},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := strings.Replace(varied, test.old, test.new, 1)
			if source == varied {
				t.Fatal("nothing was broken")
			}
			_, err := generate(t, source)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
