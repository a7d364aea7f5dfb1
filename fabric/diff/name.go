package diff

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"fabsh/fabric"
)

// nodeName is the name of n, or its GUID where it has none.
func nodeName(n *fabric.Node) string {
	if n.Name() == "" {
		return n.GUID().String()
	}
	return plain(n.Name())
}

// portName is "leaf-3/7".
func portName(p *fabric.Port) string { return nodeName(p.Node()) + "/" + strconv.Itoa(p.Num()) }

func linkName(p, q *fabric.Port) string { return portName(p) + " - " + portName(q) }

// plain is a name that cannot be taken for anything else in a line: quoted where
// it has quotes, commas, what does not print, or bytes that are not text.
func plain(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == ',' || r == '\\' }
	if !utf8.ValidString(name) || strings.ContainsFunc(name, odd) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}
