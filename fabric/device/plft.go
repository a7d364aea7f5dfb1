package device

import (
	"context"
	"errors"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// PLFT is the private forwarding tables of a switch: which exist, and which packets use them.
type PLFT struct {
	Dest fabric.Dest
	GUID mad.GUID // of the node that must answer; 0: any

	// Node is the node's NodeInfo. It is read, unless Known.
	Known bool
	Node  mad.NodeInfo

	Info   *mad.PrivateLFTInfo   // nil: the switch does not announce private LFTs
	Places []mad.PrivateLFTPlace // by private LFT; nil: not read
	Maps   []*mad.PrivateLFTMap  // by private LFT; nil while they are off
	// Ports has the private LFT of packets by the port where they enter and their SL; nil
	// where the switch does not announce it, or private LFTs are off.
	Ports [][mad.ServiceLevels]uint8
	Err   error
}

// Len returns the number of private LFTs.
func (p *PLFT) Len() int {
	if p.Info.NumPLFTs == 0 {
		return 36 // ib_types.h ib_plft_info_t
	}
	return int(p.Info.NumPLFTs)
}

// Top returns the last LID of a private LFT; not ok: it is LinearFDBTop of SwitchInfo.
func (p *PLFT) Top(id int) (top mad.LID, ok bool) {
	if id >= len(p.Maps) || p.Maps[id] == nil || !p.Maps[id].LFTTopEnable {
		return 0, false
	}
	return p.Maps[id].LFTTop, true
}

// Rows returns the private LFTs by input port and SL, from both ways in which they are mapped;
// nil while private LFTs are off.
func (p *PLFT) Rows() [][16]uint8 {
	if p.Ports != nil || p.Maps == nil {
		return p.Ports
	}
	rows := make([][16]uint8, int(p.Node.NumPorts)+1)
	for id, m := range p.Maps {
		if m == nil || !m.PortMaskEnable {
			continue
		}
		for port := range adaptive.PortsOfMask(m.PortGroupMask).All() {
			if int(port) < len(rows) {
				for sl := range rows[port] {
					rows[port][sl] = uint8(id)
				}
			}
		}
	}
	return rows
}

// ReadPLFTs reads the private forwarding tables of switches: all but their entries, which
// AdaptiveRoutingLFT has. The outcome of each is in its Err. The error is the end of ctx.
func ReadPLFTs(ctx context.Context, e *engine.Engine, list ...*PLFT) error {
	r := arReader{batch: batch{ctx: ctx, e: e}}
	nodes := make([]*AR, len(list))
	for i, p := range list {
		nodes[i] = &AR{Dest: p.Dest, GUID: p.GUID, Known: p.Known, Node: p.Node}
	}
	if err := r.nodes(nodes); err != nil {
		return err
	}
	for i, p := range list {
		p.Dest, p.Node, p.Err = nodes[i].Dest, nodes[i].Node, nodes[i].Err
	}
	return readPLFTs(&r.batch, true, list)
}

// readPLFTs reads the attributes of private LFTs; places: with PrivateLFTDef.
func readPLFTs(b *batch, places bool, list []*PLFT) error {
	each := func(attr *mad.Attribute, count func(p *PLFT) int, take func(p *PLFT, i int, data []byte)) error {
		for _, p := range list {
			if p.Err != nil {
				continue
			}
			for i := range count(p) {
				if err := b.add(p.Dest, &p.Err, mad.MethodGet, attr, uint32(i), nil, func(c *engine.Call) { take(p, i, c.Data()) }); err != nil {
					return err
				}
			}
		}
		err := b.flush()
		for _, p := range list {
			if errors.Is(p.Err, engine.ErrUnsupported) {
				p.Err = nil
				if attr == mad.AttrPortSLToPrivateLFTMap {
					p.Ports = nil
				}
			}
		}
		return err
	}
	older := mad.OlderOf(mad.AttrPrivateLFTInfo) // another attribute with this number
	err := each(mad.AttrPrivateLFTInfo, func(p *PLFT) int {
		if p.Node.DeviceID == older.Device {
			return 0
		}
		return 1
	}, func(p *PLFT, _ int, data []byte) {
		p.Info = new(mad.PrivateLFTInfo)
		p.Info.Decode(data)
	})
	if err != nil {
		return err
	}
	if places {
		const block = len(mad.PrivateLFTDef{}.Table)
		err := each(mad.AttrPrivateLFTDef, func(p *PLFT) int {
			if !p.on() {
				return 0
			}
			p.Places = make([]mad.PrivateLFTPlace, (p.Len()+block-1)/block*block)
			return len(p.Places) / block
		}, func(p *PLFT, i int, data []byte) {
			var d mad.PrivateLFTDef
			d.Decode(data)
			copy(p.Places[i*block:], d.Table[:])
		})
		if err != nil {
			return err
		}
	}
	err = each(mad.AttrPrivateLFTMap, func(p *PLFT) int {
		if !p.on() {
			return 0
		}
		p.Maps = make([]*mad.PrivateLFTMap, p.Len())
		return len(p.Maps)
	}, func(p *PLFT, i int, data []byte) {
		p.Maps[i] = new(mad.PrivateLFTMap)
		p.Maps[i].Decode(data)
	})
	if err != nil {
		return err
	}
	const block = 4 // ports
	err = each(mad.AttrPortSLToPrivateLFTMap, func(p *PLFT) int {
		if !p.on() {
			return 0
		}
		p.Ports = make([][mad.ServiceLevels]uint8, (int(p.Node.NumPorts)/block+1)*block)
		return len(p.Ports) / block
	}, func(p *PLFT, i int, data []byte) {
		var m mad.PortSLToPrivateLFTMap
		m.Decode(data)
		for j, id := range m.PLFTID {
			p.Ports[i*block+j/mad.ServiceLevels][j%mad.ServiceLevels] = id
		}
	})
	for _, p := range list {
		if p.Err == nil && p.on() {
			p.Places = p.Places[:min(len(p.Places), p.Len())]
			p.Ports = p.Ports[:min(len(p.Ports), int(p.Node.NumPorts)+1)]
		}
	}
	return err
}

// on reports whether the switch uses private LFTs.
func (p *PLFT) on() bool { return p.Info != nil && p.Info.ActiveMode != 0 }
