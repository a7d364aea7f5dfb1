package shell

import "strings"

// What a terminal that is asked to puts around what is pasted, so that a
// program can tell it from what is typed: xterm's bracketed paste, private mode
// 2004 (invisible-island.net/xterm/ctlseqs, "Bracketed Paste Mode").
const (
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// pastedBlank is a blank line that was pasted: it does not end a block. The
// character, a space without width, keeps the line apart on its way through
// the editor.
const pastedBlank = "\u200b"

// paste takes the brackets off pasted text.
type paste struct {
	open  bool
	blank bool   // the pasted line is, so far
	held  string // what may become a bracket
}

// keys is what the editor gets for what the terminal sent.
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
			p.lines(&b, part)
		} else {
			b.WriteString(keyNames.Replace(part))
		}
		if !found {
			return b.String()
		}
		p.open, p.blank, text = !p.open, false, rest
	}
}

// lines marks blank lines. A tab behind other text would ask for proposals.
func (p *paste) lines(b *strings.Builder, text string) {
	for _, c := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case c == '\r' || c == '\n':
			if p.blank {
				b.WriteString(pastedBlank)
			}
			b.WriteByte('\r')
			p.blank = true
			continue
		case c == '\t' && !p.blank:
			c = ' '
		case c < ' ' && c != '\t':
			continue // no key: it was text
		}
		p.blank = p.blank && (c == ' ' || c == '\t')
		b.WriteRune(c)
	}
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
