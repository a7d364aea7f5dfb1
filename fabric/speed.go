package fabric

import (
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
