package state

import (
	"fmt"
	"slices"
	"strings"
)

// fault is a fault that the key registers= of a simulated fabric can cause.
type fault struct {
	name   string
	atPort func(m *Module)        // nil: not a fault of ports
	atNode func(h *Hardware) bool // nil: not a fault of nodes; false: this node cannot have it
}

var faults = []fault{
	{"hot", func(m *Module) { m.Temperature = 86 }, func(h *Hardware) bool { h.Temperature = 108; return true }},
	{"ber", func(m *Module) { m.BER = 1e-4 }, nil},
	{"dark", func(m *Module) { m.RxPower[0] = 3 }, nil},
	{"fan", nil, func(h *Hardware) bool {
		if len(h.Fans) > 0 {
			h.Fans[1] = 0
		}
		return len(h.Fans) > 0
	}},
	{"supply", nil, func(h *Hardware) bool {
		if len(h.Supplies) > 0 {
			h.Supplies[1] = false
		}
		return len(h.Supplies) > 0
	}},
	{"firmware", nil, func(h *Hardware) bool { h.Firmware[2]--; return true }},
}

// HardwareFaults are the names that Break takes.
func HardwareFaults() (names []string) {
	for _, f := range faults {
		names = append(names, f.name)
	}
	return names
}

// Break causes a fault, by its name, at a port or, with 0, at the node.
func (h *Hardware) Break(name string, num int) error {
	i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
	if i < 0 {
		return fmt.Errorf("unknown fault %q; faults: %s", name, strings.Join(HardwareFaults(), ", "))
	}
	switch f := &faults[i]; {
	case num > 0 && f.atPort == nil:
		return fmt.Errorf("%s is a fault of a node, not of a port", name)
	case num > 0:
		m := h.Module(num)
		f.atPort(&m)
		h.SetModule(num, m)
	case f.atNode == nil:
		return fmt.Errorf("%s is a fault of a port: write NODE/PORT", name)
	case !f.atNode(h):
		return fmt.Errorf("%s is a fault of a switch", name)
	}
	return nil
}
