package format

import (
	"strconv"
	"strings"

	"fabsh/mad"
)

// isGUIDID reports whether a node id is one of ibnetdiscover's: S-, H- or R- and
// the node GUID in 16 digits.
func isGUIDID(id string) bool {
	if len(id) < 18 || id[1] != '-' || !strings.ContainsRune("SHR?", rune(id[0])) {
		return false
	}
	_, err := strconv.ParseUint(id[2:18], 16, 64)
	return err == nil
}

// setAddress sets LID or LMC; key is "lid" or "lmc". It is false where value is
// invalid.
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

// skipBlanks is s without leading spaces and tabs.
func skipBlanks(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// number parses the decimal number, of at most 6 digits, at the beginning of s;
// -1 without one.
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

// bracketed parses [n], and skips [ext n] after it: the number of the port on
// the outside of a chassis.
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

// parenthesised parses a GUID in parentheses, which may be missing: 0.
func parenthesised(s string) (g mad.GUID, rest string, ok bool) {
	rest = skipBlanks(s)
	if !strings.HasPrefix(rest, "(") {
		return 0, s, true
	}
	text, rest, ok := strings.Cut(rest[1:], ")")
	v, err := strconv.ParseUint(text, 16, 64)
	return mad.GUID(v), rest, ok && err == nil
}

// quoted parses a text in quotes. Only spaces, tabs and = may stand before it.
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
