package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// getBlock returns the Get of a table in blocks.
func getBlock(t *state.BlockTable) func(r *smaRequest) mad.Status {
	return func(r *smaRequest) mad.Status {
		p, block, ok := t.Locate(r.In, r.Modifier)
		if !ok {
			return mad.StatusBadValue
		}
		r.Subnet.ReadBlock(t, p, block, r.Data)
		return mad.StatusOK
	}
}

// setBlock returns the Set of a table in blocks.
func setBlock(t *state.BlockTable) func(r *smaRequest) mad.Status {
	return func(r *smaRequest) mad.Status {
		p, block, ok := t.Locate(r.In, r.Modifier)
		if !ok {
			return mad.StatusBadValue
		}
		r.Subnet.WriteBlock(t, p, block, r.Data)
		r.Subnet.ReadBlock(t, p, block, r.Data)
		return mad.StatusOK
	}
}

// Bits of SLtoVLMappingTable's modifier that mean all ports of a switch (IBA
// 14.2.5.8; opensm opensm/osm_qos.c qos_extports_setup).
const (
	allOutPorts = 1 << 16
	allInPorts  = 1 << 17
)

// setSL2VL sets the mapping of one pair of ports, or with optimized programming
// those of several, where SwitchInfo says that the switch supports it.
func (r *smaRequest) setSL2VL() mad.Status {
	n, mod := r.In.Node, int(r.Modifier)
	if !n.IsSwitch || mod&(allInPorts|allOutPorts) == 0 {
		return setBlock(state.SL2VLBlocks)(r)
	}
	in, out := mod>>8&0xff, mod&0xff
	if switchInfoOptimized.Uint(n.SwitchInfo[:])&1 == 0 || mod>>18 != 0 || in >= len(n.Ports) || out >= len(n.Ports) {
		return mad.StatusBadValue
	}
	for i := range n.Ports {
		for o := range n.Ports {
			if (mod&allInPorts != 0 || i == in) && (mod&allOutPorts != 0 || o == out) {
				r.Subnet.WriteBlock(state.SL2VLBlocks, r.In.EndPort(), uint32(i<<8|o), r.Data)
			}
		}
	}
	return mad.StatusOK
}

// getLFT reads a block of the linear forwarding table.
func (r *smaRequest) getLFT() mad.Status {
	if r.Modifier >= state.LinearCap/mad.LFTBlock {
		return mad.StatusBadValue
	}
	r.In.Node.ReadLFT(int(r.Modifier)*mad.LFTBlock, r.Data)
	return mad.StatusOK
}

// setLFT writes a block of the linear forwarding table.
func (r *smaRequest) setLFT() mad.Status {
	n := r.In.Node
	if r.Modifier >= state.LinearCap/mad.LFTBlock {
		return mad.StatusBadValue
	}
	r.Subnet.EnsureTables()
	n.DisableAdaptive()
	first := int(r.Modifier) * mad.LFTBlock
	for len(n.LFT) < first+mad.LFTBlock {
		n.LFT = append(n.LFT, mad.NoPort)
	}
	copy(n.LFT[first:], r.Data)
	return r.getLFT()
}

var switchInfoOptimized = mad.AttrSwitchInfo.Field("optimized_sl_to_vl_mapping_programming")
