package records

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// ParseGUID accepts any spelling of a GUID: an int, or text with or without
// 0x, with or without colons or dashes between its parts.
func ParseGUID(v starlark.Value) (mad.GUID, error) {
	switch v := v.(type) {
	case starlark.Int:
		if n, ok := v.Uint64(); ok {
			return mad.GUID(n), nil
		}
		return 0, fmt.Errorf("%s has more than 64 bits", v)
	case starlark.String:
		if g, ok := GUIDText(string(v)); ok {
			return g, nil
		}
		return 0, fmt.Errorf("%s is no GUID: write 0x and up to 16 hexadecimal digits", v)
	}
	return 0, fmt.Errorf("got %s, want a GUID as string or int", v.Type())
}

// separators are what GUIDs are written with.
var separators = strings.NewReplacer(":", "", "-", "", ".", "")

// GUIDText is ParseGUID of a text; false: it is no GUID.
func GUIDText(s string) (mad.GUID, bool) {
	digits := strings.TrimSpace(s)
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		digits = digits[2:]
	}
	digits = separators.Replace(digits)
	n, err := strconv.ParseUint(digits, 16, 64)
	return mad.GUID(n), err == nil && len(digits) <= 16
}

// ParseGID reads a GID, which is written as an IPv6 address (IBA 4.1.1, RFC 4291).
func ParseGID(v starlark.Value) (mad.GID, error) {
	s, ok := starlark.AsString(v)
	if !ok {
		return mad.GID{}, fmt.Errorf("got %s, want a GID as string", v.Type())
	}
	addr, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return mad.GID{}, fmt.Errorf("%q is no GID: write it as an IPv6 address, for example \"fe80::2:c903:0:1\"", s)
	}
	return mad.GID(addr.As16()), nil
}
