package format

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad"
)

// rate is the width and speed of a port: those active (inUse), or all that are
// enabled.
type rate struct {
	inUse  bool
	widths mad.LinkWidth
	speeds uint16  // bit n: speedWords[n]
	vls    mad.VLs // PortInfo.VLCap; 0: unknown
}

var speedWords = []string{"sdr", "ddr", "qdr", "fdr10", "fdr", "edr", "hdr", "ndr", "xdr"}

// Bits of rate.speeds.
const (
	speedQDR = 2
	speedFDR = 4
)

var widthWords = []struct {
	word string
	bit  mad.LinkWidth
}{ // the widest first: common takes the first that both ends have
	{"12x", mad.LinkWidth12x}, {"8x", mad.LinkWidth8x}, {"4x", mad.LinkWidth4x}, {"2x", mad.LinkWidth2x}, {"1x", mad.LinkWidth1x},
}

// common is the width and speed of the link between ports with rates r and s:
// the highest that both have enabled, unless a port has what is active. They
// are 0 and "" without one.
func (r rate) common(s rate) (width mad.LinkWidth, speed string) {
	if !r.inUse {
		if s.inUse {
			return s.common(s)
		}
		r.widths, r.speeds = r.widths&s.widths, r.speeds&s.speeds
	}
	for _, w := range widthWords {
		if r.widths&w.bit != 0 {
			width = w.bit
			break
		}
	}
	if r.speeds != 0 {
		speed = speedWords[bits.Len16(r.speeds)-1]
	}
	return width, speed
}

// parseRate parses "4xHDR". ?? and ??? stand for an unknown width and speed.
func parseRate(s string) (r rate, ok bool) {
	i := strings.IndexByte(s, 'x')
	if strings.HasPrefix(s, "??") {
		i = 1
	}
	if i < 0 {
		return r, false
	}
	r.inUse = true
	return r, r.setWidth(s[:i+1]) && r.setSpeed(strings.ToLower(s[i+1:]))
}

// setWidth sets the width to that named s: "4x", or ?? where it is unknown.
func (r *rate) setWidth(s string) bool {
	for _, w := range widthWords {
		if w.word == s {
			r.widths = w.bit
			return true
		}
	}
	r.widths = 0
	return s == "??"
}

// setSpeed sets the speed to that named s: "hdr", or ??? where it is unknown.
func (r *rate) setSpeed(s string) bool {
	r.speeds = 0
	if j := slices.Index(speedWords, s); j >= 0 {
		r.speeds = 1 << j
	}
	return r.speeds != 0 || s == "???"
}

// option parses w=, s= and e= of ibsim, which are the masks of enabled widths,
// speeds and extended speeds (ibsim/sim_net.c, parse_port_opt). After an active
// rate the options are those of ibnetdiscover -f: v= is VLCap, and w= and s=
// repeat the rate.
func (r *rate) option(s string) bool {
	key, value, ok := strings.Cut(s, "=")
	v, err := strconv.ParseUint(value, 0, 8)
	if !ok || err != nil {
		return false
	}
	if r.inUse {
		if key == "v" {
			r.vls = mad.VLs(v)
		}
		return true
	}
	switch key {
	case "w":
		if r.widths = mad.LinkWidth(v); v < 1 || v > 31 {
			return false
		}
	case "s":
		if v == 0 {
			v = 1 << speedQDR
		}
		if r.speeds = r.speeds&^7 | uint16(v); v > 7 {
			return false
		}
	case "e":
		if r.speeds = r.speeds&7 | uint16(v)<<speedFDR; v > 15 {
			return false
		}
	}
	return true
}

// portInfo is the PortInfo of a port whose link has that width and speed.
func portInfo(width mad.LinkWidth, speed string) (i mad.PortInfo, fdr10 bool) {
	i.PortPhysicalState = mad.PortPhysicalStateLinkUp
	i.LinkWidthActive = width
	switch speed {
	case "sdr":
		i.LinkSpeedActive = mad.LinkSpeedSDR
	case "ddr":
		i.LinkSpeedActive = mad.LinkSpeedDDR
	case "qdr", "fdr10":
		i.LinkSpeedActive = mad.LinkSpeedQDR
	case "fdr":
		i.LinkSpeedExtActive = mad.LinkSpeedExtFDR
	case "edr":
		i.LinkSpeedExtActive = mad.LinkSpeedExtEDR
	case "hdr":
		i.LinkSpeedExtActive = mad.LinkSpeedExtHDR
	case "ndr":
		i.LinkSpeedExtActive = mad.LinkSpeedExtNDR
	case "xdr":
		i.LinkSpeedExtActive2 = mad.LinkSpeedExt2XDR
	}
	i.CapabilityMask, i.CapabilityMask2 = capabilities, capabilities2
	return i, speed == "fdr10"
}

// The capabilities without which a port's extended speeds are not valid.
const (
	capabilities  = mad.CapabilityMaskIsExtendedSpeedsSupported | mad.CapabilityMaskIsCapabilityMask2Supported
	capabilities2 = mad.CapabilityMask2IsExtendedSpeeds2Supported
)
