package mad

// ActiveSpeed returns the speed that p's link runs at: "sdr", "ddr", "qdr", "fdr",
// "edr", "hdr", "ndr", "xdr", or "" if it is unknown. It is not valid while the
// link is down. FDR10 shows as "qdr": see [ExtendedPortInfo.IsFDR10].
//
// The speeds are in three fields, of three versions of the specification. The
// latest field that is not 0 counts: agents leave an unsupported field at 0
// (rdma-core libibnetdisc/ibnetdisc.c
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
	if SpeedGbps(word) == 0 { // not the word of one speed
		return ""
	}
	return word
}

// IsFDR10 reports whether the link runs at FDR10 where PortInfo shows QDR
// (rdma-core libibmad/iba_types.h FDR10, infiniband-diags/iblinkinfo.c).
func (t *ExtendedPortInfo) IsFDR10() bool { return t.LinkSpeedActive&1 != 0 }

// ActiveWidth returns the width that p's link runs at: "1x", "2x", "4x", "8x",
// "12x", or "" if it is unknown.
func ActiveWidth(p *PortInfo) string {
	word := WordsLinkWidth.Word[uint64(p.LinkWidthActive)]
	if WidthLanes(word) == 0 {
		return ""
	}
	return word
}

// Speeds returns the words of all speeds, the slowest first.
func Speeds() []string { return rateWords(speeds[:]) }

// SpeedGbps returns the signalling rate of one lane in Gb/s at a speed of
// ActiveSpeed; 0 for others.
func SpeedGbps(speed string) float64 { return rateOf(speeds[:], speed) }

// Widths returns the words of all widths, the narrowest first.
func Widths() []string { return rateWords(widths[:]) }

// WidthLanes returns the number of lanes of a width of ActiveWidth; 0 for others.
func WidthLanes(width string) int { return int(rateOf(widths[:], width)) }

// rate is a word with its number: Gb/s a lane, or lanes.
type rate struct {
	word   string
	number float64
}

var (
	speeds = [...]rate{
		{"sdr", 2.5}, {"ddr", 5}, {"qdr", 10}, {"fdr10", 10.3125}, {"fdr", 14.0625}, {"edr", 25.78125}, {"hdr", 53.125}, {"ndr", 106.25}, {"xdr", 212.5},
	}
	widths = [...]rate{{"1x", 1}, {"2x", 2}, {"4x", 4}, {"8x", 8}, {"12x", 12}}
)

func rateOf(rates []rate, word string) float64 {
	for _, r := range rates {
		if r.word == word {
			return r.number
		}
	}
	return 0
}

func rateWords(rates []rate) []string {
	words := make([]string, len(rates))
	for i, r := range rates {
		words[i] = r.word
	}
	return words
}
