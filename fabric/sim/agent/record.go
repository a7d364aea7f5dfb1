package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

func (q *query) addNode(p *state.Port) {
	var info [state.SMPSize]byte
	p.ReadNodeInfo(info[:])
	rec := &mad.NodeRecord{LID: p.LID}
	rec.NodeInfo.Decode(info[:])
	rec.NodeDescription.Decode(p.Node.Description[:])
	q.add(rec)
}

// addPortInfos adds the PortInfo of all ports behind end port p, without M_Keys.
func (q *query) addPortInfos(p *state.Port) {
	const extendedSpeeds = 0x80 // Options
	for i := range p.ManagedPorts() {
		m := &p.ManagedPorts()[i]
		rec := &mad.PortInfoRecord{EndportLID: p.LID, PortNum: m.Num, Options: extendedSpeeds}
		rec.PortInfo.Decode(m.Info[:])
		rec.PortInfo.MKey = 0
		q.add(rec)
	}
}

func (q *query) addSwitchInfo(p *state.Port) {
	if p.Node.IsSwitch {
		rec := &mad.SwitchInfoRecord{LID: p.LID}
		rec.SwitchInfo.Decode(p.Node.SwitchInfo[:])
		q.add(rec)
	}
}

// addLFT adds the blocks of a switch up to its LinearFDBTop.
func (q *query) addLFT(p *state.Port) {
	if !p.Node.IsSwitch {
		return
	}
	for block := range int(p.Node.FDBTop)/mad.LFTBlock + 1 {
		rec := &mad.LinearForwardingTableRecord{LID: p.LID, BlockNum: uint16(block)}
		p.Node.ReadLFT(block*mad.LFTBlock, rec.LinearForwardingTable.PortBlock[:])
		q.add(rec)
	}
}

// addLinks adds the links that are up, between nodes with a LID.
func (q *query) addLinks(p *state.Port) {
	for i := range p.ManagedPorts() {
		if from := &p.ManagedPorts()[i]; from.Up && from.Peer.EndPort().LID != 0 {
			q.add(&mad.LinkRecord{
				FromLID: p.LID, FromPort: from.Num,
				ToLID: from.Peer.EndPort().LID, ToPort: from.Peer.Num,
			})
		}
	}
}

func (r *saRequest) findSMInfo(q *query) mad.Status {
	q.add(&mad.SMInfoRecord{LID: r.SA.subnet.SM.LID, SMInfo: r.SA.sm.Info()})
	return mad.StatusOK
}
