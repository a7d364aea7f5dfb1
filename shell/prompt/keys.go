package prompt

import (
	"os"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/shell/session"
)

// keys translates a terminal's input into keys that readline knows.
type keys struct {
	*os.File
	ahead *session.TypeAhead // typed before; may be nil
	rest  string             // read, and not taken yet
	paste paste
}

// Readline knows neither the Home and End keys of screen, tmux and the Linux console
// nor those of rxvt. In a list of proposals, and in a search, it takes Ctrl-C only for
// the end of that; after Ctrl-G it works as elsewhere.
var keyNames = strings.NewReplacer(
	"\x1b[1~", "\x01", "\x1b[7~", "\x01",
	"\x1b[4~", "\x05", "\x1b[8~", "\x05",
	"\x03", "\x07\x03",
)

func (k *keys) Read(p []byte) (int, error) {
	for k.rest == "" {
		if k.ahead != nil {
			if text := k.ahead.Take(); text != "" {
				k.rest = k.paste.keys(text)
				continue
			}
		}
		n, err := k.File.Read(p)
		if err != nil {
			return n, err
		}
		k.rest = k.paste.keys(string(p[:n]))
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// A terminal puts these around pasted text if requested, so that a program can
// distinguish it from typed text: xterm's bracketed paste, private mode 2004
// (invisible-island.net/xterm/ctlseqs, "Bracketed Paste Mode").
const (
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// paste takes pasted text out of the terminal's input: the editor gets it as a whole,
// and not key by key.
type paste struct {
	deliver func(text string)
	open    bool
	text    strings.Builder // of the open paste
	held    string          // a possible beginning of a bracket
}

// keys returns the editor's input for the terminal's. Enter follows pasted text that
// ends with a newline.
func (p *paste) keys(text string) string {
	var b strings.Builder
	text = p.held + text
	p.held = ""
	for {
		bracket := pasteBegin
		if p.open {
			bracket = pasteEnd
		}
		part, rest, found := strings.Cut(text, bracket)
		if !found {
			part, p.held = holdBack(text, bracket)
		}
		if p.open {
			p.text.WriteString(part)
		} else {
			b.WriteString(keyNames.Replace(withoutPrivate(part)))
		}
		if !found {
			return b.String()
		}
		if p.open {
			b.WriteString(p.close())
		}
		p.open, text = !p.open, rest
	}
}

// close delivers the pasted text, and returns the keys that represent it.
func (p *paste) close() string {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(p.text.String())
	p.text.Reset()
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' {
			return -1 // pasted text is not a key
		}
		return r
	}, withoutPrivate(text))
	// Other control characters are displayed as in a string literal: the editor writes
	// its line unchanged.
	trimmed := strings.TrimRight(lang.Harmless(text), "\n")
	p.deliver(trimmed)
	if strings.HasSuffix(text, "\n") {
		return string(pasteKey) + "\r"
	}
	return string(pasteKey)
}

// withoutPrivate removes the runes that have a special meaning for the editor.
func withoutPrivate(text string) string {
	return strings.Map(func(r rune) rune {
		if isPrivate(r) {
			return -1
		}
		return r
	}, text)
}

// holdBack cuts off the end of text where it may begin a bracket. Escape alone is a
// key, and is not held back.
func holdBack(text, bracket string) (now, later string) {
	for n := min(len(bracket)-1, len(text)); n > 1; n-- {
		if strings.HasSuffix(text, bracket[:n]) {
			return text[:len(text)-n], text[len(text)-n:]
		}
	}
	return text, ""
}
