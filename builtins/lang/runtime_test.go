package lang

import (
	"io"
	"reflect"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// TestBeside: a runtime beside another has all its settings, and keeps for itself.
func TestBeside(t *testing.T) {
	r := &Runtime{
		Stdout: io.Discard, Stderr: io.Discard, Format: FormatJSON, View: View{Where: "x"}, Documents: true, Quiet: true, Progress: func(string) {}, Width: func() int { return 7 }, Blocks: func() bool { return true },
		Measure: func(starlark.Value) error { return nil }, Clock: RealClock{}, Files: new(Files), DidYouMean: func(string, []string) string { return "" },
		Comparisons: func(*syntax.File, starlark.StringDict) []WrongWord { return nil },
		Load:        func(*starlark.Thread, string) (starlark.StringDict, error) { return nil, nil }, Activity: new(Activity),
	}
	*StateOf[int](r) = 7
	b := r.Beside()
	was, is := reflect.ValueOf(r).Elem(), reflect.ValueOf(b).Elem()
	for i := range is.NumField() {
		switch f := is.Type().Field(i); {
		case f.Name == "Account" || f.Name == "Typed" || !f.IsExported(): // of the evaluation
		case was.Field(i).IsZero():
			t.Errorf("%s is not tested", f.Name)
		case is.Field(i).IsZero():
			t.Errorf("%s is not handed on", f.Name)
		}
	}
	if *StateOf[int](b) != 0 {
		t.Error("it has the state of the other")
	}
}

// TestPart: a part shares the state of its runtime, except for its own.
func TestPart(t *testing.T) {
	type shared struct{ n int }
	type own struct{ n int }
	r := new(Runtime)
	clock := NewVirtualClock()
	p := r.Part(clock, &own{1})
	StateOf[shared](p).n = 2
	StateOf[own](r).n = 3
	if got := [...]int{StateOf[shared](r).n, StateOf[own](p).n, StateOf[own](r).n}; got != [...]int{2, 1, 3} || p.Clock != Clock(clock) || r.Clock != nil {
		t.Errorf("got %v, clocks %v, %v", got, p.Clock, r.Clock)
	}
	p.refused = true
	if r.Join(p); !r.Refused() {
		t.Error("the refusal of a part is lost")
	}
}
