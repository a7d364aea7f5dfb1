package format

import (
	"strconv"
	"strings"

	"fabsh/mad"
)

// isGUIDID: id is one of ibnetdiscover's: S-, H- or R- and 16 digits.
func isGUIDID(id string) bool {
	if len(id) < 18 || id[1] != '-' || !strings.ContainsRune("SHR?", rune(id[0])) {
		return false
	}
	_, err := strconv.ParseUint(id[2:18], 16, 64)
	return err == nil
}

// setAddress sets what key says, "lid" or "lmc".
func setAddress(key, value string, lid *mad.LID, lmc *uint8) bool {
	v, err := strconv.ParseUint(value, 10, 16)
	switch key {
	case "lid":
		*lid = mad.LID(v)
		return err == nil && *lid <= mad.MaxUnicastLID
	case "lmc":
		*lmc = uint8(v)
		return err == nil && v < 8
	}
	return true
}

// skipBlanks is s without the spaces and tabs it begins with.
func skipBlanks(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// appendFields appends the words of s.
func appendFields(words []string, s string) []string {
	for w := range strings.FieldsSeq(s) {
		words = append(words, w)
	}
	return words
}

// number reads the decimal number s begins with; -1 if it does not.
func number(s string) (int, string) {
	i := 0
	for i < len(s) && i < 6 && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	v, err := strconv.Atoi(s[:i])
	if err != nil {
		return -1, s
	}
	return v, s[i:]
}

// bracketed reads [n], and passes over [ext n].
func bracketed(s string) (n int, rest string, ok bool) {
	if !strings.HasPrefix(s, "[") {
		return 0, s, false
	}
	n, rest = number(s[1:])
	rest, ok = strings.CutPrefix(rest, "]")
	if strings.HasPrefix(rest, "[ext ") {
		_, rest, ok = strings.Cut(rest, "]")
	}
	return n, rest, ok
}

// parenthesised reads a GUID, if there is one next.
func parenthesised(s string) (g mad.GUID, rest string, ok bool) {
	rest = skipBlanks(s)
	if !strings.HasPrefix(rest, "(") {
		return 0, s, true
	}
	text, rest, ok := strings.Cut(rest[1:], ")")
	v, err := strconv.ParseUint(text, 16, 64)
	return mad.GUID(v), rest, ok && err == nil
}

// quoted reads what stands in the next pair of quotes. Only spaces and = may
// stand before it.
func quoted(s string) (text, rest string, ok bool) {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t' || s[0] == '=') {
		s = s[1:]
	}
	if len(s) == 0 || s[0] != '"' {
		return "", s, false
	}
	s = s[1:]
	return strings.Cut(s, `"`)
}

// clip keeps messages short.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
