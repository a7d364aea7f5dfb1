package sim

import (
	"fmt"
	"slices"
	"time"

	"fabsh/mad"
)

// Kill takes the power off a node: its links go down, its agents are silent. If the
// subnet manager was on it, there is none from then on, until RestartSM.
func (s *Subnet) Kill(node mad.GUID) error { return s.power(node, false) }

// Reboot takes the power off a node, if it has any, and gives it again: its agents
// begin with what they have when nobody has set them up.
func (s *Subnet) Reboot(node mad.GUID) error { return s.power(node, true) }

func (s *Subnet) power(node mad.GUID, again bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodeByGUID(node)
	if n == nil {
		return fmt.Errorf("the simulated fabric has no node with GUID %v", node)
	}
	s.beforeChange()
	if !n.off {
		n.off = true
		s.linksChanged(n, func(p *port) bool {
			was := p.up
			if was {
				p.linkDown(mad.PortPhysicalStatePolling)
			}
			return was
		})
	}
	if again {
		n.off = false
		s.forget(n)
		s.linksChanged(n, func(p *port) bool {
			if p.peer == nil || p.up {
				return false
			}
			p.train()
			return p.up
		})
	}
	return nil
}

// linksChanged changes the links of a node, and tells those at the other ends, all
// at once.
func (s *Subnet) linksChanged(n *node, change func(*port) bool) {
	var changed []*port
	for i := range n.ports {
		if p := &n.ports[i]; p.num > 0 && p.peer != nil && change(p) {
			changed = append(changed, p, p.peer)
		}
	}
	s.tellOf(changed)
}

// tellOf has the switches of ports whose links changed send their traps, one each, and
// the subnet manager sweep.
func (s *Subnet) tellOf(changed []*port) {
	if len(changed) == 0 {
		return
	}
	told := map[*node]bool{}
	var undelivered []*node
	for _, p := range changed {
		if n := p.node; n.isSwitch && !n.off && !told[n] {
			told[n] = true
			if !s.linkTrap(n) {
				undelivered = append(undelivered, n)
			}
		}
	}
	if s.sm == nil || s.sm.node.off {
		return
	}
	if !s.noSweep {
		s.sweep()
	}
	for _, n := range undelivered {
		s.linkTrap(n)
	}
}

// forget resets what a node keeps in memory: tables, counters, LIDs, M_Keys. A
// subnet manager in this process gives it its LIDs again.
func (s *Subnet) forget(n *node) {
	n.samples = nil
	for i := range n.ports {
		p := &n.ports[i]
		p.counters, p.growth, p.leaseEnd = nil, nil, time.Time{}
		delete(s.lights, p)
		var info mad.PortInfo
		info.Decode(p.info[:])
		info.MKey, info.MKeyProtectBits, info.MKeyLeasePeriod = 0, 0, 0
		info.MKeyViolations, info.PKeyViolations, info.QKeyViolations = 0, 0, 0
		if s.sm == nil {
			s.setLID(p, 0, 0)
			info.LID, info.LMC, info.MasterSMLID, info.MasterSMSL = 0, 0, 0, 0
		} else if p == p.endPort() {
			info.MKey, info.MKeyProtectBits = s.options.MKey, s.options.MKeyLevel
		}
		p.setInfo(&info)
	}
	for key := range s.blocks {
		if key.port.node == n {
			delete(s.blocks, key)
		}
	}
	if s.sm == nil && n.isSwitch {
		n.lft = nil
		n.setTop(0)
	}
}

// Swap exchanges the cables of two ports: each gets the other's.
func (s *Subnet) Swap(a, b Cable) error {
	s.mu.RLock()
	p, err := s.portAt(a.Node, a.Num)
	var q *port
	if err == nil {
		q, err = s.portAt(b.Node, b.Num)
	}
	var far [2]Cable
	if err == nil {
		for i, end := range []*port{p, q} {
			if end.peer == nil {
				err = fmt.Errorf("port %d of %s has no cable", end.num, end.node.label)
				break
			}
			far[i] = Cable{end.peer.node.guid(), int(end.peer.num)}
		}
	}
	s.mu.RUnlock()
	switch {
	case err != nil:
		return err
	case p == q, p.peer == q:
		return fmt.Errorf("the two ports are one, or joined by a cable: exchanging their cables changes nothing")
	}
	return s.Recable([2]Cable{a, far[1]}, [2]Cable{b, far[0]})
}

// SetLink has the link at a port train to a speed, such as "hdr", and a width, such
// as "2x", that both ends then support; "": as before. Of a port without a link, it
// is what the next one will have.
func (s *Subnet) SetLink(node mad.GUID, num int, speed, width string) error {
	if speed != "" && (laneRate(speed) == 0 || !slices.Contains(mad.Speeds(), speed)) {
		return fmt.Errorf("%q is no speed: there are %q", speed, mad.Speeds())
	}
	if width != "" && mad.WidthLanes(width) == 0 {
		return fmt.Errorf("%q is no width: there are %q", width, mad.Widths())
	}
	return s.changeCable(node, num, func(p *port) {
		for _, end := range []*port{p, p.peer} {
			var info mad.PortInfo
			info.Decode(end.info[:])
			limit(&info, speed, width, end == p)
			end.setInfo(&info)
		}
		if p.up {
			p.linkDown(mad.PortPhysicalStatePolling)
			s.linkChanged(p)
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
