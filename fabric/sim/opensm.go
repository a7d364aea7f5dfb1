package sim

import (
	"bytes"
	"context"

	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// openSM makes the tables that OpenSM makes: after a loss it keeps entries, and when a link comes
// up it computes all again.
type openSM struct {
	engines []string
	up      map[*state.Port]bool // the ports with links at the last sweep; nil: none was made
	tables  map[*state.Node][]uint8
}

// Forget implements state.Router.
func (m *openSM) Forget() { m.up, m.tables = nil, nil }

// Tables implements state.Router. The switches that the subnet manager does not reach keep
// their tables.
func (m *openSM) Tables(s *state.Subnet, switches []*state.Node) [][]uint8 {
	n := m.network(s, switches)
	up, restored := map[*state.Port]bool{}, m.up == nil
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Up && p.Node.IsSwitch {
			up[p] = true
			restored = restored || !m.up[p]
		}
	}
	part, reached, _ := n.Reached()
	var old [][]uint8
	if !restored {
		for _, i := range reached {
			old = append(old, m.tables[switches[i]])
		}
	}
	made, err := opensm.Compute(context.Background(), part, old, opensm.Settings{Engines: m.engines})
	tables := map[*state.Node][]uint8{}
	size := 0
	if err == nil { // only engines with a model are among the options
		for k, i := range reached {
			tables[switches[i]] = made.Tables[k]
			size = max(size, len(made.Tables[k]))
		}
	}
	list := make([][]uint8, len(switches))
	for i, sw := range switches {
		if tables[sw] == nil {
			tables[sw] = m.tables[sw]
		}
		list[i] = bytes.Repeat([]byte{mad.NoPort}, (max(size, len(tables[sw]))/mad.LFTBlock+1)*mad.LFTBlock)
		copy(list[i], tables[sw])
	}
	m.up, m.tables = up, tables
	return list
}

// network returns the subnet as the subnet manager sees it.
func (m *openSM) network(s *state.Subnet, switches []*state.Node) *opensm.Network {
	n := &opensm.Network{}
	if s.SM != nil {
		n.SM = s.SM.LID
	}
	number := map[*state.Node]int32{}
	for i, sw := range switches {
		number[sw] = int32(i)
		n.Switches = append(n.Switches, opensm.Switch{GUID: sw.GUID(), System: systemGUID(sw), LID: sw.Ports[0].LID, Links: make([]opensm.Link, len(sw.Ports))})
	}
	end := map[*state.Port]int32{}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Node.IsSwitch || p.LID == 0 {
			continue
		}
		e := opensm.End{Node: p.Node.GUID(), GUID: p.GUID, Num: p.Num, LID: p.LID, Count: 1 << p.LMC, Switch: -1}
		e.Router = mad.NodeType(nodeType.Uint(p.Node.Info[:])) == mad.NodeTypeRouter
		if p.Up && p.Peer.Node.IsSwitch {
			e.Switch, e.Port = number[p.Peer.Node], p.Peer.Num
		}
		end[p] = int32(len(n.Ends))
		n.Ends = append(n.Ends, e)
	}
	for i, sw := range switches {
		for j := range sw.Ports[1:] {
			p := &sw.Ports[1+j]
			if !p.Up || p.Peer.Node == sw {
				continue
			}
			link := opensm.Link{Kind: opensm.ToSwitch, To: number[p.Peer.Node], Port: p.Peer.Num}
			if at, isEnd := end[p.Peer]; isEnd {
				link.Kind, link.To = opensm.ToEnd, at
			} else if !p.Peer.Node.IsSwitch {
				continue
			}
			n.Switches[i].Links[p.Num] = link
		}
	}
	return n
}

// nodeType and systemImage are fields of NodeInfo.
var (
	nodeType    = mad.AttrNodeInfo.Field("node_type")
	systemImage = mad.AttrNodeInfo.Field("system_image_guid")
)

func systemGUID(n *state.Node) mad.GUID { return mad.GUID(systemImage.Uint(n.Info[:])) }
