package fabric

import "fabsh/mad"

// alikeEnd is what ends of links have in common to be alike.
type alikeEnd struct {
	kind                              NodeKind
	vendor                            uint32
	device                            uint16
	ports                             uint8
	known, fdr10, live                bool
	state                             mad.PortState
	physical                          mad.PortPhysicalState
	width, widthEnabled, widthHas     mad.LinkWidth
	speed, speedEnabled, speedHas     mad.LinkSpeed
	ext, extEnabled, extHas           mad.LinkSpeedExt
	ext2, ext2Enabled, ext2Has        mad.LinkSpeedExt2
	extendedSpeeds, extendedSpeedsTwo bool
}

func (p *Port) alike() (e alikeEnd) {
	n := p.Node()
	e = alikeEnd{kind: n.kind, vendor: n.info.VendorID, device: n.info.DeviceID, ports: n.info.NumPorts, known: p.known, fdr10: p.fdr10, live: n.route != nil}
	if i := p.Info(); i != nil {
		e.state, e.physical = i.PortState, i.PortPhysicalState
		e.width, e.widthEnabled, e.widthHas = i.LinkWidthActive, i.LinkWidthEnabled, i.LinkWidthSupported
		e.speed, e.speedEnabled, e.speedHas = i.LinkSpeedActive, i.LinkSpeedEnabled, i.LinkSpeedSupported
		e.ext, e.extEnabled, e.extHas = i.LinkSpeedExtActive, i.LinkSpeedExtEnabled, i.LinkSpeedExtSupported
		e.ext2, e.ext2Enabled, e.ext2Has = i.LinkSpeedExtActive2, i.LinkSpeedExtEnabled2, i.LinkSpeedExtSupported2
	}
	if caps := p.management().Info(); caps != nil {
		e.extendedSpeeds, e.extendedSpeedsTwo = HasExtendedSpeeds(caps), HasExtendedSpeeds2(caps)
	}
	return e
}

// AlikeLinks groups the links of f, each by its first port: those of a group have ends of the
// same kinds and models, with the same states, widths and speeds in use, supported and enabled.
// Groups are in the order of their first links.
//
// Time: O(P) for P ports.
func (f *Fabric) AlikeLinks() [][]*Port {
	index := map[[2]alikeEnd]int{}
	var groups [][]*Port
	for i := range f.ports {
		p := &f.ports[i]
		q := p.Peer()
		if q == nil || q.id < p.id {
			continue
		}
		key := [2]alikeEnd{p.alike(), q.alike()}
		g, ok := index[key]
		if !ok {
			g = len(groups)
			index[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], p)
	}
	return groups
}
