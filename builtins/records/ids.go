package records

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// ParseGUID accepts any notation of a GUID: an int, or text with or without 0x, with or
// without colons or dashes between its parts.
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
		return 0, fmt.Errorf("%s is not a GUID; write 0x and up to 16 hexadecimal digits", v)
	}
	return 0, fmt.Errorf("got %s, want a GUID as string or int", v.Type())
}

// separators removes the separators in GUIDs.
var separators = strings.NewReplacer(":", "", "-", "", ".", "")

// GUIDText is ParseGUID for a text; false: it is not a GUID.
func GUIDText(s string) (mad.GUID, bool) {
	digits := strings.TrimSpace(s)
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		digits = digits[2:]
	}
	digits = separators.Replace(digits)
	n, err := strconv.ParseUint(digits, 16, 64)
	return mad.GUID(n), err == nil && len(digits) <= 16
}

// ParseGID parses a GID, which has the form of an IPv6 address (IBA 4.1.1, RFC 4291).
func ParseGID(v starlark.Value) (mad.GID, error) {
	s, ok := starlark.AsString(v)
	if !ok {
		return mad.GID{}, fmt.Errorf("got %s, want a GID as string", v.Type())
	}
	addr, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return mad.GID{}, fmt.Errorf("%q is not a GID; write it as an IPv6 address, for example \"fe80::2:c903:0:1\"", s)
	}
	return mad.GID(addr.As16()), nil
}
