package adaptive

import (
	"fmt"
	"strings"

	"fabsh/fabric/plural"
)

// Describe is one line on the adaptive routing of the switches of a fabric; nil are switches
// without any. "": it is off everywhere.
func Describe(switches []*Switch) string {
	on, unknown, hashing, recovering := 0, 0, 0, 0
	var masks []SLs
	var static []Transports
	smallest, largest := 0, 0
	for _, s := range switches {
		if s != nil && s.Unknown != "" {
			unknown++
		}
		if !s.Active() {
			continue
		}
		on++
		if s.HBF {
			hashing++
		}
		if s.FastRecovery {
			recovering++
		}
		masks, static = distinct(masks, s.SLs), distinct(static, s.Static)
		for _, t := range s.Tables {
			if t == nil {
				continue
			}
			for group := range t.Groups.Len() {
				if n := t.Groups.All(group).Len(); n > 0 {
					largest = max(largest, n)
					if smallest == 0 || n < smallest {
						smallest = n
					}
				}
			}
		}
	}
	if on == 0 {
		return ""
	}
	parts := []string{fmt.Sprintf("on at %d of %s", on, plural.Count(len(switches), "switch", "switches"))}
	if len(masks) == 1 {
		parts = append(parts, "SLs "+masks[0].String())
	} else {
		parts = append(parts, "different SLs")
	}
	if len(static) == 1 && static[0] != 0 {
		parts = append(parts, "not "+static[0].String())
	} else if len(static) > 1 {
		parts = append(parts, "different transports")
	}
	switch {
	case largest == 0:
	case smallest == largest:
		parts = append(parts, "groups of "+plural.Count(largest, "port", "ports"))
	default:
		parts = append(parts, fmt.Sprintf("groups of %d to %d ports", smallest, largest))
	}
	for _, x := range []struct {
		n    int
		what string
	}{{hashing, "hash-based forwarding at %d"}, {recovering, "fast recovery at %d"}, {unknown, "unknown at %d"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf(x.what, x.n))
		}
	}
	return strings.Join(parts, "; ")
}

// distinct is list with x, once.
func distinct[T comparable](list []T, x T) []T {
	for _, y := range list {
		if x == y {
			return list
		}
	}
	return append(list, x)
}

// String has the numbers in ranges: "0-3,7"; "none".
func (s SLs) String() string {
	var p Ports
	for sl := range uint8(16) {
		if s.Has(sl) {
			p.Add(sl)
		}
	}
	if p.Empty() {
		return "none"
	}
	return p.String()
}

// String has the names: "UC, UD".
func (s Transports) String() string {
	var names []string
	for t := RC; t <= DC; t++ {
		if s.Has(t) {
			names = append(names, strings.ToUpper(t.String()))
		}
	}
	return strings.Join(names, ", ")
}
