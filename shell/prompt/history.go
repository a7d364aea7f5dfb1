package prompt

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric/format"
	"fabsh/shell/session"
)

// historyLimit is how many statements are remembered.
const historyLimit = 2000

// history has the statements of this session and earlier ones. The file is private to
// the user: statements may contain secrets.
type history struct {
	path       string   // empty: nothing is kept
	statements []string // at the beginning of the session
	last       string   // that was added
}

// lineSeparator represents a line break within a statement (Unicode 23.3): the file has
// one statement per line.
const lineSeparator = "\u2028"

// openHistory reads the file, if it exists. Without a home directory, or if it cannot
// be written, a session has only its own history.
func openHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	data, _ := session.ReadOwn(path)
	lines := strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	if n := len(lines); n > historyLimit {
		lines = lines[n-historyLimit:]
		h.rewrite(lines)
	}
	for _, l := range lines {
		h.last = lang.Harmless(withoutPrivate(strings.ReplaceAll(l, lineSeparator, "\n")))
		h.statements = append(h.statements, h.last)
	}
	return h
}

// add appends a statement, without keys, unless it equals the last one; several
// sessions may do so at once.
func (h *history) add(statement string) {
	if h.path == "" || statement == h.last {
		return
	}
	h.last = statement
	if os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	// If the path is a pipe, do not wait for its reader.
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	f.WriteString(strings.ReplaceAll(records.MaskKeys(statement), "\n", lineSeparator) + "\n")
}

// rewrite keeps the newest lines. The new file has the mode of the old one.
func (h *history) rewrite(lines []string) {
	format.WriteFile(context.Background(), h.path, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
		return err
	})
}
