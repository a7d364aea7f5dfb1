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

// HasExtPortInfo reports whether the device has ExtendedPortInfo, which others must not be asked for
// (rdma-core libibnetdisc/ibnetdisc.c, is_mlnx_ext_port_info_supported).
func HasExtPortInfo(n *mad.NodeInfo) bool {
	const bull = 0x119f
	switch d := n.DeviceID; {
	case d >= 0xc738 && d <= 0xc73b, d >= 0x1003 && d <= 0x101b:
		return true
	case d == 0xc839, d == 0xcb20, d == 0xcf08, d == 0xcf09, d == 0xd2f0, d == 0xa2d2:
		return true
	case n.VendorID != bull:
		return false
	default:
		switch {
		case d >= 0x1bd0 && d <= 0x1bd5, d >= 0x1bc4 && d <= 0x1bc6:
			return true
		}
		switch d {
		case 0x1b02, 0x1b50, 0x1ba0, 0x1bf0, 0x1b33, 0x1b73, 0x1b40, 0x1b41, 0x1b60, 0x1b61, 0x1b83, 0x1b93, 0x1b94, 0x1bb4, 0x1bb5:
			return true
		}
		return false
	}
}
