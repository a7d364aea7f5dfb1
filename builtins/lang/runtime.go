package lang

import (
	"fmt"
	"io"
	"reflect"

	"go.starlark.net/starlark"
)

// Runtime is what all code of one session shares: streams, clock, files, and
// the state of each vocabulary. One evaluation runs at a time.
type Runtime struct {
	Stdout, Stderr io.Writer
	Format         Format // of show
	Quiet          bool   // no warnings
	Progress       func(string)
	// Width is how many columns a line of text may have, at the moment; 0, or nil:
	// there is no limit.
	Width func() int
	// Blocks tells whether text may have runes of Cells; nil: it may not.
	Blocks func() bool
	// Measure takes what is shown in FormatProm.
	Measure func(starlark.Value) error
	Clock   Clock
	Files   *Files
	// DidYouMean is " (did you mean x?)" with the candidate nearest to name, "" where
	// none is near. Nil: nobody knows.
	DidYouMean func(name string, candidates []string) string
	// FieldWords are the words that attributes of a name may be; false: they may
	// be anything. Nil: that is so of all.
	FieldWords func(name string) (FieldWords, bool)
	// Load carries out the load statement; the loads under way are given.
	Load func(t *starlark.Thread, module string) (starlark.StringDict, error)

	Activity *Activity // when it did something else than compute

	Account Account // of what runs outside catch
	refused bool    // a change was refused, whatever became of the script
	warned  map[string]bool
	// evaluations is how many fibers began that are none of another's.
	evaluations int
	shown       int // documents, of FormatJSON
	state       map[reflect.Type]any
}

// Beside is a runtime for what goes on at the same time as r: with its settings and
// streams, and nothing of what it keeps.
func (r *Runtime) Beside() *Runtime {
	return &Runtime{
		Stdout: r.Stdout, Stderr: r.Stderr, Format: r.Format, Quiet: r.Quiet, Progress: func(string) {}, Width: r.Width, Blocks: r.Blocks,
		Measure: r.Measure, Clock: r.Clock, Files: r.Files, DidYouMean: r.DidYouMean, FieldWords: r.FieldWords, Load: r.Load, Activity: r.Activity,
	}
}

// StateOf is what the vocabulary that declares T keeps with the session; zero
// at first.
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

// Refuse remembers that a change was refused, for the exit status tells of it
// whatever becomes of the script, and gives the refusal.
func (r *Runtime) Refuse(reason string) error {
	r.refused = true
	return &RefusalError{Reason: reason}
}

// Join has r remember what b, which is beside it, was refused.
func (r *Runtime) Join(b *Runtime) { r.refused = r.refused || b.refused }

// Refused: a change was refused.
func (r *Runtime) Refused() bool { return r.refused }

// Unanswered is how many requests of scripts got no answer, but for those that
// catch took note of.
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

// people is the stream of what is not structured output.
func (r *Runtime) People() Stream {
	if r.Format == FormatText {
		return Stdout
	}
	return Stderr
}

// Print writes text for people, as print of scripts does. A closed pipe, the only
// error, ends the process.
func (r *Runtime) Print(text string) { r.Emit(r.People(), text) }

// Warn writes a warning to stderr, unless the session is quiet.
func (r *Runtime) Warn(format string, args ...any) {
	if !r.Quiet {
		r.Emit(Stderr, "warning: "+fmt.Sprintf(format, args...)+"\n")
	}
}

// WarnOnce writes a warning unless the session has written the same before.
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

// hint is what DidYouMean says.
func (r *Runtime) hint(name string, candidates []string) string {
	if r.DidYouMean == nil {
		return ""
	}
	return r.DidYouMean(name, candidates)
}
