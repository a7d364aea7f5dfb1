package records

import (
	"fmt"
	"strings"

	"fabsh/mad"
)

// requestWords returns the methods, for each version of the class.
func requestWords(a *mad.Attribute) string {
	names := func(version uint8) string {
		var list []string
		for _, m := range a.MethodsIn(version) {
			list = append(list, m.Name(a.Class, version))
		}
		return strings.Join(list, ", ")
	}
	var text string
	if len(a.Methods) > 0 {
		text = ", methods " + names(a.Version)
	}
	if len(a.Methods1) > 0 {
		text += ", in class version 1 " + names(1)
	}
	return text
}

// requestLimits returns what limits requests of an attribute: capabilities of the device,
// and modifiers that are not public.
func requestLimits(a *mad.Attribute) string {
	var b strings.Builder
	if by := a.AnnouncedBy(); by != "" {
		fmt.Fprintf(&b, "It is requested only from devices of NVIDIA or Mellanox with %s.\n", by)
	}
	if a.UnknownModifier {
		b.WriteString("No public source has its modifier: give modifier=.\n")
	}
	if a.InferredModifier {
		b.WriteString("The modifier is an inference, and only for the first table: no public source has all of it. For another table, give modifier=.\n")
	}
	if a.Older {
		b.WriteString("A newer attribute has the same number: only the name selects this one.\n")
	}
	return b.String()
}

// requirement returns whether a subnet administrator must support the attribute, in
// version 1 of its class; there is no public source for version 2.
func requirement(a *mad.Attribute) string {
	bit := "is_subnet_optional_records_supported"
	switch {
	case len(a.Methods1) == 0:
		return ""
	case a.Required:
		return "A subnet administrator of class version 1 must support it.\n"
	case a.Name == "MCGroupRecord" || a.Name == "MCMemberRecord":
		bit = "is_ud_multicast_supported"
	}
	return "Optional for a subnet administrator of class version 1: its ClassPortInfo.capability_mask has " + bit + " if it supports it.\n"
}
