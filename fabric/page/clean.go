package page

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is how much of a text is shown, in characters. Names have at most 64 bytes.
const longest = 4000

// clean is text that anybody on the fabric may have chosen: what would not be seen, or
// would change the order of what is beside it, is shown by its code. The template
// escapes markup.
func clean(s string) string {
	var b strings.Builder
	for n := 0; len(s) > 0; n++ {
		if n == longest {
			b.WriteString(" ...")
			break
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}
