package builtins

import "go.starlark.net/starlark"

// Format is how show renders values.
type Format string

const (
	FormatText  Format = "text"  // for people
	FormatJSON  Format = "json"  // one document a value
	FormatJSONL Format = "jsonl" // one line an element
	FormatCSV   Format = "csv"   // one line an element, a heading before them
)

// Formats are all formats.
var Formats = []Format{FormatText, FormatJSON, FormatJSONL, FormatCSV}

// Show renders v on the session's stdout, as the prompt does.
func (s *Session) Show(v starlark.Value) error {
	if f, ok := v.(*function); ok && f.bare != nil {
		return f.bare(s)
	}
	text, err := s.render(v)
	if err != nil {
		return err
	}
	return s.emit(stdout, text)
}

// show is Show from within an evaluation.
func (s *Session) show(t *starlark.Thread, v starlark.Value) error {
	if f, ok := v.(*function); ok && f.bare != nil {
		return f.bare(s)
	}
	text, err := s.render(v)
	if err != nil {
		return err
	}
	return fiberOf(t).sink.emit(stdout, text)
}

// render gives v in the session's format.
func (s *Session) render(v starlark.Value) (string, error) {
	return v.String() + "\n", nil
}

// brief is a value in a message: its repr, cut where it is long.
func brief(v starlark.Value) string {
	text := []rune(v.String())
	if len(text) > 60 {
		return string(text[:57]) + "..."
	}
	return string(text)
}
