package prompt

import (
	"os"
	"strings"

	"fabsh/builtins/lang"
)

// keys is a terminal's input in the terms that readline knows.
type keys struct {
	*os.File
	rest  string // read, and not taken yet
	paste paste
}

// Of Home and End, readline knows neither those of screen, tmux and the Linux
// console nor those of rxvt. It takes Ctrl-C at a list of proposals, and in a
// search, for the end of only that; after Ctrl-G it is what it is elsewhere.
var keyNames = strings.NewReplacer(
	"\x1b[1~", "\x01", "\x1b[7~", "\x01",
	"\x1b[4~", "\x05", "\x1b[8~", "\x05",
	"\x03", "\x07\x03",
)

func (k *keys) Read(p []byte) (int, error) {
	for k.rest == "" {
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

// What a terminal that is asked to puts around what is pasted, so that a
// program can tell it from what is typed: xterm's bracketed paste, private mode
// 2004 (invisible-island.net/xterm/ctlseqs, "Bracketed Paste Mode").
const (
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// paste takes pasted text out of what the terminal sends: the editor gets it at
// once, and not key by key.
type paste struct {
	deliver func(text string)
	open    bool
	text    strings.Builder // of what is open
	held    string          // what may become a bracket
}

// keys is what the editor gets for what the terminal sent. Enter follows pasted
// text that ends with a line.
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

// close delivers what was pasted, and returns the keys that stand for it.
func (p *paste) close() string {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(p.text.String())
	p.text.Reset()
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' {
			return -1 // no key: it was text
		}
		return r
	}, withoutPrivate(text))
	// The rest that the terminal would obey shows as what a string literal has for it: the
	// editor writes its line as it is.
	trimmed := strings.TrimRight(lang.Harmless(text), "\n")
	p.deliver(trimmed)
	if strings.HasSuffix(text, "\n") {
		return string(pasteKey) + "\r"
	}
	return string(pasteKey)
}

// withoutPrivate takes out what means something else to the editor.
func withoutPrivate(text string) string {
	return strings.Map(func(r rune) rune {
		if isPrivate(r) {
			return -1
		}
		return r
	}, text)
}

// holdBack cuts off text's end where it begins a bracket. Escape alone is a
// key, and goes through.
func holdBack(text, bracket string) (now, later string) {
	for n := min(len(bracket)-1, len(text)); n > 1; n-- {
		if strings.HasSuffix(text, bracket[:n]) {
			return text[:len(text)-n], text[len(text)-n:]
		}
	}
	return text, ""
}
