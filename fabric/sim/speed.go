package sim

import (
	"fmt"
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// SetLink trains the link at a port to a speed, such as "hdr", and a width, such as "2x",
// that both ends then support; "": unchanged. For a port without a link, they apply to
// its next link.
func (c *Cables) SetLink(node mad.GUID, num int, speed, width string) error {
	if speed != "" && (state.LaneRate(speed) == 0 || !slices.Contains(mad.Speeds(), speed)) {
		return fmt.Errorf("unknown speed %q; speeds: %q", speed, mad.Speeds())
	}
	if width != "" && mad.WidthLanes(width) == 0 {
		return fmt.Errorf("unknown width %q; widths: %q", width, mad.Widths())
	}
	return c.changeCable(node, num, func(p *state.Port) {
		for _, end := range []*state.Port{p, p.Peer} {
			end.ChangeInfo(func(info *mad.PortInfo) { limit(info, speed, width, end == p) })
		}
		if p.Up {
			p.LinkDown(mad.PortPhysicalStatePolling)
			c.sm.LinksChanged(p, p.Peer)
		}
	})
}

// limit has a port support a speed and a width, and, if alone, enable no others.
func limit(i *mad.PortInfo, speed, width string, alone bool) {
	if speed != "" {
		first := mad.LinkSpeed(mad.WordsLinkSpeed.Code[speed])
		ext := mad.LinkSpeedExt(mad.WordsLinkSpeedExt.Code[speed])
		ext2 := mad.LinkSpeedExt2(mad.WordsLinkSpeedExt2.Code[speed])
		i.LinkSpeedSupported |= first
		i.LinkSpeedExtSupported |= ext
		i.LinkSpeedExtSupported2 |= ext2
		if alone {
			i.LinkSpeedEnabled, i.LinkSpeedExtEnabled, i.LinkSpeedExtEnabled2 = max(first, mad.LinkSpeedSDR), ext, ext2
			if ext|mad.LinkSpeedExt(ext2) != 0 { // the extended ones are enabled beside
				i.LinkSpeedEnabled = i.LinkSpeedSupported
			}
			if ext == 0 {
				i.LinkSpeedExtEnabled = mad.LinkSpeedExtDisabled
			}
		} else {
			i.LinkSpeedEnabled |= first
			if ext != 0 {
				i.LinkSpeedExtEnabled = i.LinkSpeedExtEnabled&^mad.LinkSpeedExtDisabled | ext
			}
			i.LinkSpeedExtEnabled2 |= ext2
		}
	}
	if width != "" {
		w := mad.LinkWidth(mad.WordsLinkWidth.Code[width])
		i.LinkWidthSupported |= w
		i.LinkWidthEnabled |= w
		if alone {
			i.LinkWidthEnabled = w
		}
	}
}
