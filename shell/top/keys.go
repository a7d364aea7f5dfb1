package top

import (
	"slices"
	"strings"
	"unicode/utf8"

	"fabsh/fabric/picture"
)

// keys separates typed bytes into keys. A terminal sends a key such as an arrow as a
// sequence of bytes that begins with ESC (ECMA-48), in one read or in several; an
// incomplete sequence is returned as rest.
func keys(typed string) (list []string, rest string) {
	for typed != "" {
		n := 1
		switch {
		case typed[0] == '\x1b' && len(typed) > 1 && (typed[1] == '[' || typed[1] == 'O'):
			end := strings.IndexFunc(typed[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				if len(typed) > maxSequence {
					return list, ""
				}
				return list, typed
			}
			n = 2 + end + 1
		case !utf8.FullRuneInString(typed):
			return list, typed
		default:
			_, n = utf8.DecodeRuneInString(typed)
		}
		list = append(list, typed[:n])
		typed = typed[n:]
	}
	return list, ""
}

// maxSequence is longer than the sequence of any key.
const maxSequence = 32

// press does what a key requests; quit is true for the keys that end the table,
// including Ctrl-C.
func (s *screen) press(key string) (quit, interrupted bool) {
	if key == "\x03" {
		return true, true
	}
	if s.typing {
		s.typeFilter(key)
		return false, false
	}
	if s.help {
		s.help = false
		return key == "q" || key == "Q", false
	}
	page := max(1, s.rows())
	switch key {
	case "q", "Q", "\x04", "\x1b[21~": // F10, as in htop
		return true, false
	case "w", "d", "e", "b":
		s.sort(By(strings.Index("wdeb", key)))
	case ">", "\x1b[17~": // F6
		s.sort((s.table.By + 1) % numBy)
	case "<":
		s.sort((s.table.By + numBy - 1) % numBy)
	case "t":
		words := append([]string{""}, picture.TierWords...)
		s.table.Tier = words[(slices.Index(words, s.table.Tier)+1)%len(words)]
		s.table.arrange()
		s.from = 0
	case "?", "h", "\x1bOP", "\x1b[11~": // F1
		s.help = true
	case "/", "\\", "\x1bOS", "\x1b[14~": // F4
		s.typing, s.old = true, s.table.Filter
	case "\x1b": // no filter
		s.filter("")
	case "\x1b[A", "\x1bOA", "k":
		s.from--
	case "\x1b[B", "\x1bOB", "j":
		s.from++
	case "\x1b[5~":
		s.from -= page
	case "\x1b[6~", " ":
		s.from += page
	case "\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "g":
		s.from = 0
	case "\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "G":
		s.from = len(s.table.shown)
	}
	s.from = max(0, min(s.from, len(s.table.shown)-page))
	return false, false
}

func (s *screen) sort(by By) {
	s.table.By = by
	s.table.arrange()
	s.from = 0
}

// maxFilter is the maximum length of a filter, in bytes: names have at most 64.
const maxFilter = 128

// typeFilter is press while the filter is typed, which applies at once.
func (s *screen) typeFilter(key string) {
	filter := s.table.Filter
	switch {
	case key == "\r" || key == "\n":
		s.typing = false
	case key == "\x1b":
		s.typing = false
		s.filter(s.old)
	case key == "\x7f" || key == "\b":
		_, n := utf8.DecodeLastRuneInString(filter)
		s.filter(filter[:len(filter)-n])
	case key == "\x15": // Ctrl-U
		s.filter("")
	case key[0] >= ' ' && utf8.ValidString(key) && len(filter)+len(key) <= maxFilter:
		s.filter(filter + key)
	}
}

func (s *screen) filter(pattern string) {
	s.table.Filter = pattern
	s.table.arrange()
	s.from = 0
}
