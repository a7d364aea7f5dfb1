package check

import (
	"slices"
	"strconv"
	"strings"
)

// withoutPortNames returns types without string, where it stands for the name of a port: an
// attribute that is a port or link in one type is the name of a port in the others, such as
// peer of port and of link_failure.
func withoutPortNames(types []string) []string {
	if !slices.Contains(types, "port") && !slices.Contains(types, "link") {
		return types
	}
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "string" })
}

// isPortName reports whether text can be the name of a port: NAME/NUMBER.
func isPortName(text string) bool {
	i := strings.LastIndexByte(text, '/')
	_, err := strconv.ParseUint(text[i+1:], 10, 8)
	return i >= 0 && err == nil
}
