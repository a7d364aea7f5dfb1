package fabric

import (
	"math/bits"
	"slices"

	"fabsh/mad"
)

// Width is the width in use: "4x"; "" where it is unknown.
func (p *Port) Width() string {
	if i := p.Info(); i != nil {
		return mad.ActiveWidth(i)
	}
	return ""
}

// Speed is the speed in use: "sdr", "ddr", "qdr", "fdr10", "fdr", "edr",
// "hdr", "ndr" or "xdr"; "" where it is unknown.
func (p *Port) Speed() string {
	i, caps := p.Info(), p.management().Info()
	if i == nil || caps == nil {
		return ""
	}
	speed := ActiveSpeed(caps, i)
	if speed == "qdr" && p.fdr10 {
		return "fdr10"
	}
	return speed
}

// DataRate is the rate of the link in use in Gb/s, without what its line code takes; 0 where it is
// unknown: 4x HDR is 200.
func (p *Port) DataRate() float64 {
	return laneGbps(p.Speed()) * float64(mad.WidthLanes(p.Width()))
}

// laneGbps is the data rate of a lane: 8b/10b up to QDR, 64b/66b up to EDR, then a code with error
// correction (IBTA InfiniBand Architecture Specification, volume 2, chapter 5).
func laneGbps(speed string) float64 {
	switch speed {
	case "sdr":
		return 2
	case "ddr":
		return 4
	case "qdr":
		return 8
	case "fdr10":
		return 10
	case "fdr":
		return 150. / 11
	case "edr":
		return 25
	case "hdr":
		return 50
	case "ndr":
		return 100
	case "xdr":
		return 200
	}
	return 0
}

// HasExtendedSpeeds reports whether PortInfo has the fields for the speeds from FDR on.
func HasExtendedSpeeds(caps *mad.PortInfo) bool {
	return caps.CapabilityMask&mad.CapabilityMaskIsExtendedSpeedsSupported != 0
}

// HasExtendedSpeeds2 reports whether PortInfo has the fields for the speeds from XDR on
// (rdma-core libibmad/iba_types.h, IB_PORT_CAP2_IS_EXT_SPEEDS_2_SUPPORTED).
func HasExtendedSpeeds2(caps *mad.PortInfo) bool {
	return caps.CapabilityMask&mad.CapabilityMaskIsCapabilityMask2Supported != 0 && caps.CapabilityMask2&mad.CapabilityMask2IsExtendedSpeeds2Supported != 0
}

// ActiveSpeed is mad.ActiveSpeed without the fields that the capability masks do
// not announce: some agents leave garbage there. caps is the PortInfo whose masks
// count: of a switch, port 0's.
func ActiveSpeed(caps, i *mad.PortInfo) string {
	x := *i
	if !HasExtendedSpeeds(caps) {
		x.LinkSpeedExtActive, x.LinkSpeedExtActive2 = 0, 0
	}
	if !HasExtendedSpeeds2(caps) {
		x.LinkSpeedExtActive2 = 0
	}
	return mad.ActiveSpeed(&x)
}

// LinkSpeeds and LinkWidths are the speeds and widths that PortInfo can report, slowest first.
// FDR10, which it shows as "qdr", is not among them.
var (
	LinkSpeeds = []string{"sdr", "ddr", "qdr", "fdr", "edr", "hdr", "ndr", "xdr"}
	LinkWidths = mad.Widths()
)

// RateSet is a set of speeds or of widths: bit i stands for element i of LinkSpeeds or
// of LinkWidths.
type RateSet uint16

// Words are the elements of the set.
func (s RateSet) Words(all []string) (words []string) {
	for i, word := range all {
		if s>>i&1 != 0 {
			words = append(words, word)
		}
	}
	return words
}

// best is the fastest of the set; "" where it is empty.
func (s RateSet) best(all []string) string {
	if s == 0 {
		return ""
	}
	return all[bits.Len16(uint16(s))-1]
}

// SupportedSpeeds are the speeds that the port supports. caps is the PortInfo whose
// capability masks count: of a switch, port 0's.
func SupportedSpeeds(caps, i *mad.PortInfo) RateSet {
	return speedSet(caps, i.LinkSpeedSupported, i.LinkSpeedExtSupported, i.LinkSpeedExtSupported2)
}

// EnabledSpeeds are the speeds that a port may use; caps as with SupportedSpeeds.
func EnabledSpeeds(caps, i *mad.PortInfo) RateSet {
	return speedSet(caps, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled, i.LinkSpeedExtEnabled2)
}

// speedSet joins the three fields of speeds: later ones did not fit the first,
// and the capability masks say which of these are there (rdma-core
// infiniband-diags/ibportstate.c get_port_info).
func speedSet(caps *mad.PortInfo, first mad.LinkSpeed, ext mad.LinkSpeedExt, ext2 mad.LinkSpeedExt2) RateSet {
	if !HasExtendedSpeeds(caps) || ext == mad.LinkSpeedExtDisabled {
		ext = 0
	}
	if !HasExtendedSpeeds2(caps) {
		ext2 = 0
	}
	return RateSet(first&7) | RateSet(ext&15)<<3 | RateSet(ext2&1)<<7
}

// WidthSet are the widths of a mask.
func WidthSet(w mad.LinkWidth) (s RateSet) {
	for i, word := range LinkWidths {
		if w&mad.LinkWidth(mad.WordsLinkWidth.Code()[word]) != 0 {
			s |= 1 << i
		}
	}
	return s
}

// FastestSpeed is the fastest speed that p supports or, of those, has enabled; ""
// where it is unknown.
func (p *Port) FastestSpeed(enabled bool) string {
	i, caps := p.Info(), p.management().Info()
	if i == nil || caps == nil {
		return ""
	}
	s := SupportedSpeeds(caps, i)
	if enabled {
		s &= EnabledSpeeds(caps, i)
	}
	return s.best(LinkSpeeds)
}

// WidestWidth is the widest width, as with FastestSpeed.
func (p *Port) WidestWidth(enabled bool) string {
	i := p.Info()
	if i == nil {
		return ""
	}
	w := i.LinkWidthSupported
	if enabled {
		w &= i.LinkWidthEnabled
	}
	return WidthSet(w).best(LinkWidths)
}

// BestSpeed is the fastest speed that both ends of p's link support and have
// enabled; "" where one of them is unknown.
func (p *Port) BestSpeed() string {
	best := p.common(func(caps, i *mad.PortInfo) RateSet { return SupportedSpeeds(caps, i) & EnabledSpeeds(caps, i) }).best(LinkSpeeds)
	if best == "qdr" && p.Speed() == "fdr10" { // PortInfo cannot say that it is enabled
		return "fdr10"
	}
	return best
}

// BestWidth is the widest width that both ends of p's link support and have
// enabled; "" where one of them is unknown.
func (p *Port) BestWidth() string {
	return p.common(func(_, i *mad.PortInfo) RateSet { return WidthSet(i.LinkWidthSupported & i.LinkWidthEnabled) }).best(LinkWidths)
}

// common is the set that both ends of p's link have.
func (p *Port) common(set func(caps, i *mad.PortInfo) RateSet) RateSet {
	s := ^RateSet(0)
	for _, end := range []*Port{p, p.Peer()} {
		if end == nil || end.Info() == nil || end.management().Info() == nil {
			return 0
		}
		s &= set(end.management().Info(), end.Info())
	}
	return s
}

// Degraded reports whether p's link is up and slower, or narrower, than both ends
// allow. It is known where the link is up and its actual and possible rates are.
func (p *Port) Degraded() (degraded, known bool) {
	width, speed, bestWidth, bestSpeed := p.Width(), p.Speed(), p.BestWidth(), p.BestSpeed()
	if p.PhysicalState() != mad.PortPhysicalStateLinkUp || width == "" || speed == "" || bestWidth == "" || bestSpeed == "" {
		return false, false
	}
	return slower(width, bestWidth, LinkWidths) || slower(speed, bestSpeed, mad.Speeds()), true
}

func slower(x, y string, all []string) bool { return slices.Index(all, x) < slices.Index(all, y) }
