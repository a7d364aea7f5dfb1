package mad

import "strings"

// ActiveSpeed is the speed that p's link runs at: "SDR", "DDR", "QDR", "FDR",
// "EDR", "HDR", "NDR", "XDR", or "" when it is not known. It is not valid
// while the link is down. FDR10 shows as QDR: see
// [MlnxExtPortInfo.IsFDR10].
//
// The speeds are in three fields, of three versions of the specification. The
// latest field that is not 0 counts: agents leave a field that they do not
// support 0 (rdma-core libibnetdisc/ibnetdisc.c
// ibnd_get_agg_linkspeedext_field, infiniband-diags/iblinkinfo.c).
func ActiveSpeed(p *PortInfo) string {
	var word string
	switch {
	case p.LinkSpeedExtActive2 != 0:
		word = WordsLinkSpeedExt2.Word[uint64(p.LinkSpeedExtActive2)]
	case p.LinkSpeedExtActive != 0:
		word = WordsLinkSpeedExt.Word[uint64(p.LinkSpeedExtActive)]
	default:
		word = WordsLinkSpeed.Word[uint64(p.LinkSpeedActive)]
	}
	speed := strings.ToUpper(word)
	if SpeedGbps(speed) == 0 { // not the word of one speed
		return ""
	}
	return speed
}

// IsFDR10: the link runs at FDR10 where PortInfo shows QDR (rdma-core
// libibmad/iba_types.h FDR10, infiniband-diags/iblinkinfo.c).
func (t *MlnxExtPortInfo) IsFDR10() bool { return t.LinkSpeedActive&1 != 0 }

// ActiveWidth is the width that p's link runs at: "1x", "2x", "4x", "8x",
// "12x", or "" when it is not known.
func ActiveWidth(p *PortInfo) string {
	word := WordsLinkWidth.Word[uint64(p.LinkWidthActive)]
	if WidthLanes(word) == 0 {
		return ""
	}
	return word
}

// SpeedGbps is the signalling rate of one lane in Gb/s at a speed that
// ActiveSpeed gives; 0 for others.
func SpeedGbps(speed string) float64 {
	switch speed {
	case "SDR":
		return 2.5
	case "DDR":
		return 5
	case "QDR":
		return 10
	case "FDR10":
		return 10.3125
	case "FDR":
		return 14.0625
	case "EDR":
		return 25.78125
	case "HDR":
		return 53.125
	case "NDR":
		return 106.25
	case "XDR":
		return 212.5
	}
	return 0
}

// WidthLanes is the number of lanes of a width that ActiveWidth gives; 0 for others.
func WidthLanes(width string) int {
	switch width {
	case "1x":
		return 1
	case "2x":
		return 2
	case "4x":
		return 4
	case "8x":
		return 8
	case "12x":
		return 12
	}
	return 0
}
