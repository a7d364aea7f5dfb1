package graph

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Class is the purpose of a terminal. It is a set of bits: a compute node may run
// the subnet manager too.
type Class uint8

const (
	ClassCN      Class = 1 << iota // compute node
	ClassIO                        // storage and other services
	ClassAN                        // aggregation node of a switch (SHARP): a CA, often on a spine
	ClassGateway                   // gateways to other networks, and routers
	ClassSM                        // can run a subnet manager
	ClassSwitch                    // port 0 of a switch
)

var classNames = []string{"cn", "io", "an", "gateway", "sm", "switch"}

// ParseClass reads names joined by +: "cn+io".
func ParseClass(s string) (Class, error) {
	var c Class
	for name := range strings.SplitSeq(s, "+") {
		i := slices.Index(classNames, name)
		if i < 0 {
			return 0, fmt.Errorf("unknown class %q; supported: %s", name, strings.Join(classNames, ", "))
		}
		c |= 1 << i
	}
	return c, nil
}

func (c Class) String() string {
	var names []string
	for i, name := range classNames {
		if c>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// Rule gives a class to the terminals that fit all its conditions.
type Rule struct {
	Class  Class
	Name   string          // of the node; * stands for any text, ? for any byte, case does not matter. "": any
	Type   mad.NodeType    // 0: any
	Vendor uint32          // 0: any
	Device uint16          // 0: any
	Kind   fabric.NodeKind // KindUnknown: any
	GUIDs  []mad.GUID      // of nodes or ports; nil: any
	SM     bool            // only ports that can run a subnet manager
	Also   bool            // the rules that follow are tried too

	text string // of a Name that is this text between stars; set by quick
	has  uint64 // its letters
}

// quick are rules whose patterns need not be matched for each name.
func quick(rules []Rule) []Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		if text, ok := within(rules[i].Name); ok {
			rules[i].text, rules[i].has = text, letters(text)
		}
	}
	return rules
}

// letters has a bit for each letter in s.
func letters(s string) (has uint64) {
	for i := range len(s) {
		has |= 1 << (lower(s[i]) % 64)
	}
	return has
}

// names reports whether s, which has these letters, is a name that the rule is for.
func (r *Rule) names(s string, has uint64) bool {
	if r.text != "" {
		return has&r.has == r.has && contains(s, r.text)
	}
	return r.Name == "" || Glob(r.Name, s)
}

// DefaultRules are the rules where none are given. The first that fits decides,
// except for rules with Also, which add their class and go on. Only its name distinguishes
// a storage host from a compute node.
func DefaultRules() []Rule {
	return []Rule{
		{Class: ClassSM, SM: true, Also: true},
		{Class: ClassAN, Kind: fabric.KindAggregation},
		{Class: ClassGateway, Kind: fabric.KindRouter},
		{Class: ClassGateway, Kind: fabric.KindGateway},
		{Class: ClassIO, Name: "*storage*"},
		{Class: ClassCN},
	}
}

// fits reports whether the rule is for p, a port of a CA or router in whose name are these
// letters.
func (r *Rule) fits(p *fabric.Port, has uint64) bool {
	n := p.Node()
	switch {
	case r.Type != 0 && r.Type != n.Type():
	case r.Vendor != 0 && r.Vendor != n.Info().VendorID:
	case r.Device != 0 && r.Device != n.Info().DeviceID:
	case r.Kind != fabric.KindUnknown && r.Kind != n.Kind():
	case r.SM && (p.Info() == nil || p.Info().CapabilityMask&mad.CapabilityMaskIsSM == 0):
	case r.GUIDs != nil && !slices.Contains(r.GUIDs, p.GUID()) && !slices.Contains(r.GUIDs, n.GUID()):
	case !r.names(n.Name(), has):
	default:
		return true
	}
	return false
}

// Classify is the class of p, a port with LIDs, by the rules.
func Classify(rules []Rule, p *fabric.Port) (c Class) {
	if p.Node().IsSwitch() {
		return ClassSwitch
	}
	has := letters(p.Node().Name())
	for i := range rules {
		if rules[i].fits(p, has) {
			c |= rules[i].Class
			if !rules[i].Also {
				break
			}
		}
	}
	return c
}

// Glob reports whether s matches pattern: * is any text, ? any byte, and case does
// not matter. Slashes, which names of director switches have, are ordinary bytes.
func Glob(pattern, s string) bool {
	if text, ok := within(pattern); ok {
		return contains(s, text)
	}
	p, i := 0, 0
	star, resume := -1, 0 // the last *, and where what follows it is tried next
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || lower(pattern[p]) == lower(s[i])):
			p++
			i++
		case star >= 0:
			resume++
			p, i = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// within is the text of a pattern that is one text between stars, as most are.
func within(pattern string) (text string, ok bool) {
	text = strings.TrimSuffix(strings.TrimPrefix(pattern, "*"), "*")
	return text, len(text) > 0 && len(text) == len(pattern)-2 && !strings.ContainsAny(text, "*?")
}

// contains reports whether text is in s; case does not matter.
func contains(s, text string) bool {
	for first := lower(text[0]); len(s) >= len(text); s = s[1:] {
		i := 0
		for lower(s[0]) == first && i < len(text) && lower(s[i]) == lower(text[i]) {
			i++
		}
		if i == len(text) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
