package mad

import (
	"fmt"
	"slices"
)

// TrapInfo describes a trap of the specification.
type TrapInfo struct {
	Number uint16
	Class  Class  // of the sender
	Name   string // of the event
}

// Traps lists the traps that the specification defines.
func Traps() []TrapInfo { return slices.Clone(traps) }

// traps are the events that the specification defines, by class and number (Shanley,
// InfiniBand Network Architecture, table 29-7; opensm include/iba/ib_types.h SM_*_TRAP;
// for BM and CC the sources of NoticeBadBKey and NoticeBadCCKey).
var traps = []TrapInfo{
	{64, ClassSubn, "port in service"},
	{65, ClassSubn, "port out of service"},
	{66, ClassSubn, "multicast group created"},
	{67, ClassSubn, "multicast group deleted"},
	{68, ClassSubn, "path no longer valid"},
	{69, ClassSubn, "path recomputed"},
	{128, ClassSubn, "link state changed"},
	{129, ClassSubn, "local link integrity threshold reached"},
	{130, ClassSubn, "excessive buffer overrun threshold reached"},
	{131, ClassSubn, "flow control update watchdog timer expired"},
	{144, ClassSubn, "local change"},
	{145, ClassSubn, "SystemImageGUID changed"},
	{256, ClassSubn, "bad M_Key"},
	{257, ClassSubn, "bad P_Key"},
	{258, ClassSubn, "bad Q_Key"},
	{259, ClassSubn, "bad P_Key at a switch"},
	{259, ClassBM, "bad B_Key"},
	{0, ClassCongestion, "bad CC_Key"},
}

// Event names the event of a notice of a class: "trap 128 (link state changed)", or "trap
// of vendor 0x0002c9, device 0x0042"; "" without a notice.
func (n *Notice) Event(c Class) string {
	switch c = c.Family(); {
	case !n.IsGeneric:
		return fmt.Sprintf("trap of vendor 0x%06x, device 0x%04x", uint32(n.ProducerType), n.TrapNumber)
	case n.Type == NoticeTypeEmpty:
		return ""
	case c == ClassSubnAdm: // it forwards traps of subnet management
		c = ClassSubn
	}
	if i := slices.IndexFunc(traps, func(t TrapInfo) bool { return t.Class == c && t.Number == n.TrapNumber }); i >= 0 {
		return fmt.Sprintf("trap %d (%s)", n.TrapNumber, traps[i].Name)
	}
	return fmt.Sprintf("trap %d", n.TrapNumber)
}
