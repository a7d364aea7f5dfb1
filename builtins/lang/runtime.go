package lang

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Runtime is the state that all code of a session shares: streams, clock, files, and
// the state of each vocabulary. One evaluation runs at a time.
type Runtime struct {
	Stdout, Stderr io.Writer
	Format         Format // of show
	View           View   // of the tables that are shown
	Documents      bool   // the reader of FormatJSON takes several documents
	Quiet          bool   // no warnings
	Progress       func(string)
	// Width returns the current maximum of columns in a line of text; 0 or nil:
	// unlimited.
	Width func() int
	// Whole is how the user sees the columns that a table leaves out on a narrow terminal.
	Whole string
	// Shown receives each value that is shown; nil: none does. It is not for work that runs at
	// the same time.
	Shown func(starlark.Value)
	// Shaded reports whether text may have runes of Cell; nil: it may not.
	Shaded func() bool
	// Measure receives the values shown in FormatProm.
	Measure func(starlark.Value) error
	Clock   Clock
	Files   *Files
	// DidYouMean returns " (did you mean x?)" with the candidate nearest to name, "" if
	// none is near. Nil: no hints.
	DidYouMean func(name string, candidates []string) string
	// IsMeasure reports whether a word stands for a measure, such as a speed, so that its order is not
	// that of the alphabet. Nil: no word does.
	IsMeasure func(word string) bool
	// Comparisons returns the comparisons of a script that always have the same result;
	// globals are the names that the script does not define. Nil: none is known.
	Comparisons func(f *syntax.File, globals starlark.StringDict) []WrongWord
	// Load runs the load statement.
	Load func(t *starlark.Thread, module string) (starlark.StringDict, error)

	// Typed is the statement that a user types at a terminal, while it runs; nil: none.
	Typed *Typed

	Activity *Activity // whether it waits, writes or computes

	Account Account // of code outside catch
	refused bool    // a change was refused, even if the script continued
	warned  map[string]bool
	// evaluations is the number of started fibers that do not belong to another.
	evaluations int
	shown       int // documents, of FormatJSON
	state       map[reflect.Type]any
}

// Beside returns a runtime for work that runs at the same time as r. It has the settings
// and streams of r, but none of its state.
func (r *Runtime) Beside() *Runtime {
	return &Runtime{
		Stdout: r.Stdout, Stderr: r.Stderr, Format: r.Format, View: r.View, Documents: r.Documents, Quiet: r.Quiet, Progress: func(string) {}, Width: r.Width, Whole: r.Whole, Shaded: r.Shaded,
		Measure: r.Measure, Clock: r.Clock, Files: r.Files, DidYouMean: r.DidYouMean, IsMeasure: r.IsMeasure, Comparisons: r.Comparisons, Load: r.Load, Activity: r.Activity,
	}
}

// StateOf returns the state of type T that a vocabulary keeps as long as the session, initially
// zero. The state of a run is a value of WithRun.
func StateOf[T any](r *Runtime) *T {
	key := reflect.TypeFor[T]()
	if r.state[key] == nil {
		if r.state == nil {
			r.state = map[reflect.Type]any{}
		}
		r.state[key] = new(T)
	}
	return r.state[key].(*T)
}

// runKey is the key of the state of type T in a context.
type runKey[T any] struct{}

// runState is a state of type T, and the runtime of the run.
type runState[T any] struct {
	runtime *Runtime
	state   *T
}

// WithRun returns a context for a run, a part of the work of the session r: RunOf returns state in
// the fibers of r with that context, unless state is nil.
func WithRun[T any](ctx context.Context, r *Runtime, state *T) context.Context {
	return context.WithValue(ctx, runKey[T]{}, runState[T]{r, state})
}

// RunOf returns the state of type T of the run that f belongs to, nil without one. Fibers of
// a runtime beside it do not belong to the run.
func RunOf[T any](f *Fiber) *T {
	if x, ok := f.Context.Value(runKey[T]{}).(runState[T]); ok && x.runtime == f.Runtime {
		return x.state
	}
	return nil
}

// Refuse records that a change was refused, for the exit status, and returns the
// refusal.
func (r *Runtime) Refuse(reason string) error {
	r.refused = true
	return &RefusalError{Reason: reason}
}

// Join records in r the refusals of b, a runtime beside it, and what b has shown.
func (r *Runtime) Join(b *Runtime) {
	r.refused = r.refused || b.refused
	r.shown = max(r.shown, b.shown)
}

// Refused reports whether a change was refused.
func (r *Runtime) Refused() bool { return r.refused }

// Unanswered returns the number of requests of scripts that were not answered, outside
// catch.
func (r *Runtime) Unanswered() int { return r.Account.Unanswered }

// Emit writes to one of the session's streams.
func (r *Runtime) Emit(st Stream, text string) error {
	r.Activity.Note()
	w := r.Stdout
	if st == Stderr {
		w = r.Stderr
	}
	_, err := io.WriteString(w, text)
	return err
}

// People returns the stream for text that is not structured output.
func (r *Runtime) People() Stream {
	if r.Format == FormatText {
		return Stdout
	}
	return Stderr
}

// Print writes text for people, as print of scripts does, broken at words. The only error
// is a closed pipe, which ends the process.
func (r *Runtime) Print(text string) {
	if columns := r.Columns(); columns > 0 {
		text = WrapWords(text, columns)
	}
	r.Emit(r.People(), text)
}

// Warn writes a warning to stderr, unless the session is quiet.
func (r *Runtime) Warn(format string, args ...any) {
	if !r.Quiet {
		r.Emit(Stderr, "warning: "+fmt.Sprintf(format, args...)+"\n")
	}
}

// WarnOnce writes a warning unless the session has already written it.
func (r *Runtime) WarnOnce(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.warned == nil {
		r.warned = map[string]bool{}
	}
	if !r.warned[text] {
		r.warned[text] = true
		r.Warn("%s", text)
	}
}

// hint returns the result of DidYouMean, if it is set.
func (r *Runtime) hint(name string, candidates []string) string {
	if r.DidYouMean == nil {
		return ""
	}
	return r.DidYouMean(name, candidates)
}
