package fabric

import "fabsh/mad"

// Width is the width in use: "4x"; "" where it is unknown.
func (p *Port) Width() string {
	i := p.Info()
	if i == nil {
		return ""
	}
	switch i.LinkWidthActive {
	case mad.LinkWidth1x:
		return "1x"
	case mad.LinkWidth2x:
		return "2x"
	case mad.LinkWidth4x:
		return "4x"
	case mad.LinkWidth8x:
		return "8x"
	case mad.LinkWidth12x:
		return "12x"
	}
	return ""
}

// Speed is the speed in use: "SDR", "DDR", "QDR", "FDR10", "FDR", "EDR",
// "HDR", "NDR" or "XDR"; "" where it is unknown.
func (p *Port) Speed() string {
	i, caps := p.Info(), p.management().Info()
	if i == nil || caps == nil {
		return ""
	}
	switch ext, ext2 := extendedSpeed(caps, i); {
	case ext2 == mad.LinkSpeedExt2XDR:
		return "XDR"
	case ext2 != 0:
		return ""
	case ext != 0:
		return map[mad.LinkSpeedExt]string{
			mad.LinkSpeedExtFDR: "FDR", mad.LinkSpeedExtEDR: "EDR", mad.LinkSpeedExtHDR: "HDR", mad.LinkSpeedExtNDR: "NDR",
		}[ext]
	}
	switch i.LinkSpeedActive {
	case mad.LinkSpeedSDR:
		return "SDR"
	case mad.LinkSpeedDDR:
		return "DDR"
	case mad.LinkSpeedQDR:
		if p.fdr10 {
			return "FDR10"
		}
		return "QDR"
	}
	return ""
}

// capabilityMask2ExtendedSpeeds2: PortInfo has the fields for speeds from XDR
// on (rdma-core libibmad/iba_types.h, IB_PORT_CAP2_IS_EXT_SPEEDS_2_SUPPORTED).
const capabilityMask2ExtendedSpeeds2 mad.CapabilityMask2 = 1 << 11

// extendedSpeed is the speed in use above QDR, 0 if it is not above. caps is
// the PortInfo whose capability masks count: of a switch, port 0's. Without
// the capabilities the fields mean nothing.
func extendedSpeed(caps, i *mad.PortInfo) (mad.LinkSpeedExt, mad.LinkSpeedExt2) {
	if caps.CapabilityMask&mad.CapabilityMaskIsExtendedSpeedsSupported == 0 {
		return 0, 0
	}
	if caps.CapabilityMask&mad.CapabilityMaskIsCapabilityMask2Supported == 0 || caps.CapabilityMask2&capabilityMask2ExtendedSpeeds2 == 0 {
		return i.LinkSpeedExtActive, 0
	}
	return i.LinkSpeedExtActive, i.LinkSpeedExtActive2
}

// mayRunFDR10: PortInfo says QDR, and the vendor's own attribute would say
// whether it is FDR10.
func mayRunFDR10(n *mad.NodeInfo, caps, i *mad.PortInfo) bool {
	ext, ext2 := extendedSpeed(caps, i)
	return i.LinkSpeedActive == mad.LinkSpeedQDR && ext == 0 && ext2 == 0 && hasExtPortInfo(n)
}

// hasExtPortInfo: devices that answer to MlnxExtPortInfo; others must not be
// asked (rdma-core libibnetdisc/ibnetdisc.c, is_mlnx_ext_port_info_supported).
func hasExtPortInfo(n *mad.NodeInfo) bool {
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
