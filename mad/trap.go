package mad

import "fmt"

// traps are the events that the specification defines, by class and number (Shanley,
// InfiniBand Network Architecture, table 29-7; opensm include/iba/ib_types.h SM_*_TRAP;
// for BM and CC the sources of NoticeBadBKey and NoticeBadCCKey).
var traps = map[Class]map[uint16]string{
	ClassSubn: {
		64: "port in service", 65: "port out of service", 66: "multicast group created", 67: "multicast group deleted",
		68: "path no longer valid", 69: "path recomputed",
		128: "link state changed", 129: "local link integrity threshold reached", 130: "excessive buffer overrun threshold reached",
		131: "flow control update watchdog timer expired", 144: "local change", 145: "SystemImageGUID changed",
		256: "bad M_Key", 257: "bad P_Key", 258: "bad Q_Key", 259: "bad P_Key at a switch",
	},
	ClassBM:         {259: "bad B_Key"},
	ClassCongestion: {0: "bad CC_Key"},
}

// Event names what a notice of a class reports: "trap 128 (link state changed)", or "trap
// of vendor 0x0002c9, device 0x0042"; "" where there is no notice.
func (n *Notice) Event(c Class) string {
	switch c = c.Family(); {
	case !n.IsGeneric:
		return fmt.Sprintf("trap of vendor 0x%06x, device 0x%04x", uint32(n.ProducerType), n.TrapNumber)
	case n.Type == NoticeTypeEmpty:
		return ""
	case c == ClassSubnAdm: // it forwards traps of subnet management
		c = ClassSubn
	}
	if name, ok := traps[c][n.TrapNumber]; ok {
		return fmt.Sprintf("trap %d (%s)", n.TrapNumber, name)
	}
	return fmt.Sprintf("trap %d", n.TrapNumber)
}
