package sim

import "fabsh/mad"

// maxTable is where the subnet administration gives up, in bytes.
const maxTable = 256 << 20

// collect finds the records that q asks for.
func (r *request) collect(q *query) mad.Status {
	switch r.Attribute {
	case mad.AttrNodeRecord.ID:
		for p := range q.endPorts(r.Subnet) {
			q.add(p.nodeRecord())
		}
	case mad.AttrPortInfoRecord.ID:
		for p := range q.endPorts(r.Subnet) {
			for i := range p.managedPorts() {
				q.add(p.managedPorts()[i].portInfoRecord())
			}
		}
	case mad.AttrSwitchInfoRecord.ID:
		for p := range q.endPorts(r.Subnet) {
			if p.node.isSwitch {
				rec := &mad.SwitchInfoRecord{LID: p.lid}
				rec.SwitchInfo.Decode(p.node.sw[:])
				q.add(rec)
			}
		}
	case mad.AttrLinearForwardingTableRecord.ID:
		for p := range q.endPorts(r.Subnet) {
			if p.node.isSwitch {
				p.lftRecords(q)
			}
		}
	case mad.AttrLinkRecord.ID:
		for p := range q.endPorts(r.Subnet) {
			for i := range p.managedPorts() {
				if from := &p.managedPorts()[i]; from.up && from.peer.endPort().lid != 0 {
					q.add(&mad.LinkRecord{
						FromLID: p.lid, FromPort: from.num,
						ToLID: from.peer.endPort().lid, ToPort: from.peer.num,
					})
				}
			}
		}
	case mad.AttrSMInfoRecord.ID:
		q.add(&mad.SMInfoRecord{LID: r.sm.lid, SMInfo: r.smInfoNow()})
	case mad.AttrInformInfoRecord.ID:
		for i := range r.subscriptions {
			q.add(r.subscriptions[i].record())
		}
	case mad.AttrPathRecord.ID:
		return r.paths(q)
	case mad.AttrMultiPathRecord.ID:
		return r.multiPaths(q)
	case mad.AttrTraceRecord.ID:
		return r.traceTable(q)
	case mad.AttrMCMemberRecord.ID:
		r.findGroups(q)
	case mad.AttrServiceRecord.ID:
		r.findServices(q)
	default:
		return mad.StatusBadMethodAttribute
	}
	return mad.StatusOK
}

// managedPorts are the ports that end port p answers for: of a switch all.
func (p *port) managedPorts() []port {
	if p.node.isSwitch {
		return p.node.ports
	}
	return p.node.ports[p.num : p.num+1]
}

func (p *port) nodeRecord() *mad.NodeRecord {
	var info [smpSize]byte
	p.nodeInfo(info[:])
	rec := &mad.NodeRecord{LID: p.lid}
	rec.NodeInfo.Decode(info[:])
	rec.NodeDescription.Decode(p.node.desc[:])
	return rec
}

// portInfoRecord leaves the M_Key out, which is nobody's business here.
func (p *port) portInfoRecord() *mad.PortInfoRecord {
	const extendedSpeeds = 0x80 // Options
	rec := &mad.PortInfoRecord{EndportLID: p.endPort().lid, PortNum: p.num, Options: extendedSpeeds}
	rec.PortInfo.Decode(p.info[:])
	rec.PortInfo.MKey = 0
	return rec
}

// lftRecords adds the blocks of a switch up to its LinearFDBTop.
func (p *port) lftRecords(q *query) {
	for block := range int(p.node.fdbTop)/mad.LFTBlock + 1 {
		rec := &mad.LinearForwardingTableRecord{LID: p.lid, BlockNum: uint16(block)}
		p.node.readLFT(block*mad.LFTBlock, rec.LinearForwardingTable.PortBlock[:])
		q.add(rec)
	}
}
