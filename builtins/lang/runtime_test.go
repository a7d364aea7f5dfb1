package lang

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// TestBeside: a runtime beside another has all its settings, and keeps for itself.
func TestBeside(t *testing.T) {
	r := &Runtime{
		Stdout: io.Discard, Stderr: io.Discard, Format: FormatJSON, View: View{Where: "x"}, Documents: true, Quiet: true, Progress: func(string) {}, Width: func() int { return 7 }, Whole: "-o json", Shaded: func() bool { return true },
		Measure: func(starlark.Value) error { return nil }, Clock: RealClock{}, Files: new(Files), DidYouMean: func(string, []string) string { return "" },
		IsMeasure:   func(string) bool { return false },
		Comparisons: func(*syntax.File, starlark.StringDict) []WrongWord { return nil },
		Load:        func(*starlark.Thread, string) (starlark.StringDict, error) { return nil, nil }, Activity: new(Activity),
	}
	*StateOf[int](r) = 7
	b := r.Beside()
	was, is := reflect.ValueOf(r).Elem(), reflect.ValueOf(b).Elem()
	for i := range is.NumField() {
		switch f := is.Type().Field(i); {
		case f.Name == "Account" || f.Name == "Typed" || f.Name == "Shown" || !f.IsExported(): // of the evaluation
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

// TestRun: the state of a run is that of the fibers with its context, and of no others.
func TestRun(t *testing.T) {
	type reported struct{ n int }
	r, outer := new(Runtime), new(reported)
	clock := NewVirtualClock()
	ctx := WithClock(WithRun(t.Context(), r, outer), r, clock)
	inner := WithRun(ctx, r, &reported{1})
	f := &Fiber{Runtime: r, Context: ctx}
	if RunOf[reported](f) != outer || f.Clock() != Clock(clock) || RunOf[int](f) != nil {
		t.Error("the fiber does not belong to the run")
	}
	f.Within(inner, func() error {
		if RunOf[reported](f).n != 1 || f.Clock() != Clock(clock) {
			t.Error("the fiber does not belong to the inner run")
		}
		return nil
	})
	if RunOf[reported](f) != outer {
		t.Error("the inner run has not ended")
	}
	for _, other := range []*Fiber{{Runtime: r, Context: t.Context()}, {Runtime: r.Beside(), Context: ctx}, {Runtime: r, Context: WithRun[reported](ctx, r, nil)}} {
		if RunOf[reported](other) != nil {
			t.Error("a fiber outside of the run belongs to it")
		}
	}
	if beside := (&Fiber{Runtime: r.Beside(), Context: ctx}); beside.Clock() != nil {
		t.Error("a runtime beside has the clock of the run")
	}
}

// TestWithinCanceled: a thread is canceled while its fiber changes its context (race detector).
func TestWithinCanceled(t *testing.T) {
	for range 100 {
		ctx, cancel := context.WithCancelCause(t.Context())
		f := &Fiber{Runtime: new(Runtime), Context: ctx, Sink: Discard{}, Account: new(Account)}
		thread, release := NewThread(f, "test")
		cancel(errors.New("stopped"))
		f.Within(context.WithoutCancel(ctx), func() error { return nil })
		if _, err := starlark.ExecFileOptions(&syntax.FileOptions{TopLevelControl: true, While: true}, thread, "test.star", "while True: pass", nil); err == nil || !strings.Contains(err.Error(), "stopped") {
			t.Fatal(err)
		}
		release()
	}
}
