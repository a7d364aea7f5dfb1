package sim

import "fabsh/mad"

func (q *query) addNode(p *port) {
	var info [smpSize]byte
	p.nodeInfo(info[:])
	rec := &mad.NodeRecord{LID: p.lid}
	rec.NodeInfo.Decode(info[:])
	rec.NodeDescription.Decode(p.node.desc[:])
	q.add(rec)
}

// addPortInfos adds the PortInfo of all ports behind end port p, without M_Keys.
func (q *query) addPortInfos(p *port) {
	const extendedSpeeds = 0x80 // Options
	for i := range p.managedPorts() {
		m := &p.managedPorts()[i]
		rec := &mad.PortInfoRecord{EndportLID: p.lid, PortNum: m.num, Options: extendedSpeeds}
		rec.PortInfo.Decode(m.info[:])
		rec.PortInfo.MKey = 0
		q.add(rec)
	}
}

// managedPorts are the ports that end port p answers for: of a switch all.
func (p *port) managedPorts() []port {
	if p.node.isSwitch {
		return p.node.ports
	}
	return p.node.ports[p.num : p.num+1]
}

func (q *query) addSwitchInfo(p *port) {
	if p.node.isSwitch {
		rec := &mad.SwitchInfoRecord{LID: p.lid}
		rec.SwitchInfo.Decode(p.node.sw[:])
		q.add(rec)
	}
}

// addLFT adds the blocks of a switch up to its LinearFDBTop.
func (q *query) addLFT(p *port) {
	if !p.node.isSwitch {
		return
	}
	for block := range int(p.node.fdbTop)/mad.LFTBlock + 1 {
		rec := &mad.LinearForwardingTableRecord{LID: p.lid, BlockNum: uint16(block)}
		p.node.readLFT(block*mad.LFTBlock, rec.LinearForwardingTable.PortBlock[:])
		q.add(rec)
	}
}

// addLinks adds the links that are up, between nodes with a LID.
func (q *query) addLinks(p *port) {
	for i := range p.managedPorts() {
		if from := &p.managedPorts()[i]; from.up && from.peer.endPort().lid != 0 {
			q.add(&mad.LinkRecord{
				FromLID: p.lid, FromPort: from.num,
				ToLID: from.peer.endPort().lid, ToPort: from.peer.num,
			})
		}
	}
}

func (r *request) findSMInfo(q *query) mad.Status {
	q.add(&mad.SMInfoRecord{LID: r.sm.lid, SMInfo: r.smInfo()})
	return mad.StatusOK
}
