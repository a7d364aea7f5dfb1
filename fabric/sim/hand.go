package sim

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// What a hand does to a subnet at the console of a server. Ports are named by the
// index of their node, for GUIDs need not be unique.

// End is a port.
type End struct{ Node, Num int }

// LosePackets has a port lose percent of the packets that come in, or of the requests
// of one attribute that end there.
func (s *Subnet) LosePackets(at End, percent int, attr mad.AttributeID) error {
	return s.handle(at, 0, func(p *port) error {
		s.lose(p, loss{share: float64(min(percent, 100)) / 100, arriving: true, attr: attr})
		return nil
	})
}

var (
	errNotLinked  = errors.New("is not linked")
	errWasLinked  = errors.New("was not linked before")
	errLinked     = errors.New("is linked already")
	errNoSuchPort = errors.New("is no port")
)

// Pull pulls the cable out of a port; Plug plugs it in again.
func (s *Subnet) Pull(at End) error {
	return s.handle(at, 1, func(p *port) error {
		if p.peer == nil || p.unplugged {
			return errNotLinked
		}
		p.unplugged, p.peer.unplugged = true, true
		if p.up {
			p.linkDown(mad.PortPhysicalStatePolling)
			s.linkChanged(p)
		}
		return nil
	})
}

// Plug plugs in again the cable that Pull pulled.
func (s *Subnet) Plug(at End) error {
	return s.handle(at, 1, func(p *port) error {
		if p.peer == nil || !p.unplugged {
			return errWasLinked
		}
		s.plug(p, p.peer)
		return nil
	})
}

// Connect links two ports that are not linked.
func (s *Subnet) Connect(a, b End) error {
	return s.handle(a, 1, func(p *port) error {
		q, err := s.portOf(b, 1)
		switch {
		case err != nil:
			return err
		case p == q, p.peer != nil && !p.unplugged, q.peer != nil && !q.unplugged:
			return errLinked
		}
		for _, end := range []*port{p, q} {
			if end.peer != nil {
				end.peer.peer, end.peer.unplugged = nil, false
			}
		}
		s.plug(p, q)
		return nil
	})
}

// plug links two ports.
func (s *Subnet) plug(p, q *port) {
	p.peer, q.peer, p.unplugged, q.unplugged = q, p, false, false
	for _, end := range []*port{p, q} {
		if !end.up {
			end.setDown(mad.PortPhysicalStatePolling)
		}
	}
	if p.train(); p.up {
		s.linkChanged(p)
	}
}

// Reset has a port forget what the subnet manager has set: its LIDs.
func (s *Subnet) Reset(at End) error {
	return s.handle(at, 0, func(p *port) error {
		if p != p.endPort() {
			return nil
		}
		s.setLID(p, 0, 0)
		var info mad.PortInfo
		info.Decode(p.info[:])
		info.LID, info.LMC, info.MasterSMLID = 0, 0, 0
		p.setInfo(&info)
		return nil
	})
}

// SetLID gives an end port other LIDs behind the subnet manager's back.
func (s *Subnet) SetLID(at End, lid mad.LID, lmc uint8) error {
	return s.handle(at, 0, func(p *port) error {
		p = p.endPort()
		if lid == 0 || lid > mad.MaxUnicastLID || lmc > 7 || int(lid)+1<<lmc-1 > int(mad.MaxUnicastLID) {
			return fmt.Errorf("LID %d, LMC %d: is no range of unicast LIDs", lid, lmc)
		}
		s.setLID(p, lid, lmc)
		var info mad.PortInfo
		info.Decode(p.info[:])
		info.LID, info.LMC = lid, lmc
		p.setInfo(&info)
		p.node.setStateChange()
		return nil
	})
}

// SetGUID gives a node or, with a number above 0, a port another GUID, which need
// not be unique. A switch has one for all.
func (s *Subnet) SetGUID(at End, guid mad.GUID) error {
	return s.handle(at, 0, func(p *port) error {
		if at.Num > 0 && !p.node.isSwitch {
			p.guid = guid
			return nil
		}
		nodeInfoGUID.SetUint(p.node.info[:], uint64(guid))
		if p.node.isSwitch {
			p.node.ports[0].guid = guid
		}
		return nil
	})
}

// SetCounter sets a counter of a port, at most to its largest value, and returns
// that. Attribute and field are named as in the specification, an element of an
// array by a number behind the field's name.
func (s *Subnet) SetCounter(at End, attr, field string, value uint64) (set uint64, err error) {
	err = s.handle(at, 0, func(p *port) error {
		var names []string
		for a, list := range counterViews() {
			names = append(names, a.Name)
			if !strings.EqualFold(a.Name, attr) {
				continue
			}
			for _, c := range list {
				for e := range c.Count {
					name := c.Name
					if c.Count > 1 {
						name = fmt.Sprintf("%s%d", c.Name, e)
					}
					if strings.EqualFold(name, field) {
						set = min(value, c.Max())
						s.putCounter(p, counterKey{c.Name, e}, set)
						return nil
					}
				}
			}
			return fmt.Errorf("field %s cannot be found in attribute %s", field, attr)
		}
		return fmt.Errorf("attribute %s not found%s", attr, fabric.DidYouMean(attr, names))
	})
	return set, err
}

// handle has a function change a port; the lowest number is least.
func (s *Subnet) handle(at End, least int, change func(*port) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portOf(at, least)
	if err != nil {
		return err
	}
	s.beforeChange()
	return change(p)
}

func (s *Subnet) portOf(at End, least int) (*port, error) {
	if at.Node < 0 || at.Node >= len(s.nodes) || at.Num < least || at.Num >= len(s.nodes[at.Node].ports) {
		return nil, errNoSuchPort
	}
	return &s.nodes[at.Node].ports[at.Num], nil
}

// PortView is what there is to see of a port.
type PortView struct {
	Num     int
	GUID    mad.GUID
	Info    mad.PortInfo
	FDR10   bool
	Peer    End // Node -1: no cable
	Percent int // of packets that are lost, and of which attribute
	Attr    mad.AttributeID
}

// NodeView is what there is to see of a node. Ports begin with number 0.
type NodeView struct {
	Info   mad.NodeInfo
	Switch *mad.SwitchInfo // of switches
	LFT    []uint8
	Ports  []PortView
}

// View shows a node; nil: there is none.
func (s *Subnet) View(node int) *NodeView {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if node < 0 || node >= len(s.nodes) {
		return nil
	}
	s.tables()
	n := &s.nodes[node]
	v := &NodeView{}
	v.Info.Decode(n.info[:])
	if n.isSwitch {
		v.Switch = &mad.SwitchInfo{}
		v.Switch.Decode(n.sw[:])
		v.LFT = append(v.LFT, n.lft...)
	}
	for i := range n.ports {
		p := &n.ports[i]
		pv := PortView{Num: i, GUID: p.guid, FDR10: p.fdr10, Peer: End{Node: -1}}
		pv.Info.Decode(p.info[:])
		if p.peer != nil && !p.unplugged {
			pv.Peer = End{s.index(p.peer.node), int(p.peer.num)}
		}
		if p.loss != nil {
			pv.Percent, pv.Attr = int(math.Round(100*p.loss.share)), p.loss.attr
		}
		v.Ports = append(v.Ports, pv)
	}
	return v
}

// index is the index of a node.
func (s *Subnet) index(n *node) int {
	for i := range s.nodes { // the console alone asks
		if &s.nodes[i] == n {
			return i
		}
	}
	return -1
}

// Find is the end port that has a LID.
func (s *Subnet) Find(lid mad.LID) (End, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if int(lid) >= len(s.lids) || s.lids[lid] == nil {
		return End{}, false
	}
	p := s.lids[lid]
	return End{s.index(p.node), int(p.num)}, true
}
