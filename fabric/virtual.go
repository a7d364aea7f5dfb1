package fabric

import (
	"fabsh/mad"
)

// VirtualPort is a port that an adapter's port has besides its own, for a virtual machine. It
// has a GUID, and may have a LID.
type VirtualPort struct {
	Port  *Port // the physical one
	Index int   // -1: unknown, for what it was read by has no public description
	State mad.PortState
	Info  *mad.VPortInfo // nil: it was not read, and GUID and LID are unknown
}

// LID returns that of the virtual port; 0 where it has none of its own, or it is unknown.
func (v *VirtualPort) LID() mad.LID {
	if v.Info == nil || !v.Info.LIDRequired {
		return 0
	}
	return v.Info.LID
}

// GUID returns the port GUID; 0 where it is unknown.
func (v *VirtualPort) GUID() mad.GUID {
	if v.Info == nil {
		return 0
	}
	return v.Info.PortGUID
}

type virtualKey struct{}

// VirtualPorts returns those that were read, by port and index. The slice must not be changed.
func (f *Fabric) VirtualPorts() []VirtualPort {
	virtualization := f.virtualization() // not within Derived
	return f.Derived(virtualKey{}, func() any {
		var list []VirtualPort
		answersTo(f, mad.AttrVPortState, func(n *Node, a *Answer) {
			p := n.Port(int(a.Port))
			if p == nil {
				return
			}
			var block mad.VPortState
			block.Decode(a.Data)
			info := virtualization[p.id]
			for i, state := range block.State {
				index := int(a.Modifier)*len(block.State) + i
				if info != nil && index <= int(info.VPortIndexTop) && state != 0 {
					list = append(list, VirtualPort{Port: p, Index: index, State: state})
				}
			}
		})
		answersTo(f, mad.AttrVPortInfo, func(n *Node, a *Answer) {
			if p := n.Port(int(a.Port)); p != nil {
				info := new(mad.VPortInfo)
				info.Decode(a.Data)
				list = append(list, VirtualPort{Port: p, Index: -1, State: info.State, Info: info})
			}
		})
		return list
	}).([]VirtualPort)
}

type virtualizationKey struct{}

// VirtualizationInfo returns that of the port, or nil where it was not read. It must not be changed.
func (p *Port) VirtualizationInfo() *mad.VirtualizationInfo { return p.fabric.virtualization()[p.id] }

// virtualization returns those of all ports, by id.
func (f *Fabric) virtualization() map[int32]*mad.VirtualizationInfo {
	return f.Derived(virtualizationKey{}, func() any {
		all := map[int32]*mad.VirtualizationInfo{}
		answersTo(f, mad.AttrVirtualizationInfo, func(n *Node, a *Answer) {
			if q := n.Port(int(a.Port)); q != nil {
				all[q.id] = new(mad.VirtualizationInfo)
				all[q.id].Decode(a.Data)
			}
		})
		return all
	}).(map[int32]*mad.VirtualizationInfo)
}
