package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Routing notifications by strings (RN), as the simulated switches have them: direction d
// sends string d+1, all strings are consumed, and pass through the ports to switches. The
// direction of each sub-group is its number. Without the option rn of ar_with=, all tables
// are empty.

func notifies(n *state.Node) bool { return n.Adaptive.Info.RNXmitEnabled }

// getSubGroupDirections reads a block of RNSubGroupDirectionTable: 64 sub-groups.
func getSubGroupDirections(n *state.Node, modifier uint32, data []byte) mad.Status {
	var t mad.RNSubGroupDirectionTable
	sub := int(max(n.Adaptive.Info.SubGrpsActive, 1))
	if int(modifier) > (int(n.Adaptive.Info.GroupCap)*sub+sub-1)/len(t.Direction) {
		return mad.StatusBadValue
	}
	for i := range t.Direction {
		if notifies(n) {
			t.Direction[i] = uint8((int(modifier)*len(t.Direction) + i) % sub)
		}
	}
	return encodeAnswer(data, &t, 0)
}

// getGenStrings reads a block of RNGenStringTable: 32 directions.
func getGenStrings(n *state.Node, modifier uint32, data []byte) mad.Status {
	var t mad.RNGenStringTable
	directions := int(n.Adaptive.Info.DirNumSup)
	if modifier > uint32(directions-1)/uint32(len(t.String)) {
		return mad.StatusBadValue
	}
	for i := range t.String {
		if d := int(modifier)*len(t.String) + i; notifies(n) && d < directions {
			t.String[i] = uint16(d + 1)
		}
	}
	return encodeAnswer(data, &t, 0)
}

// getRcvStrings reads a block of RNRcvString: 16 strings.
func getRcvStrings(n *state.Node, modifier uint32, data []byte) mad.Status {
	var t mad.RNRcvString
	strings := 1 << n.Adaptive.Info.StringWidthCap
	if int(modifier) > (strings-1)/len(t.Entry) {
		return mad.StatusBadValue
	}
	for i := range t.Entry {
		if s := int(modifier)*len(t.Entry) + i; notifies(n) && s >= 1 && s <= int(n.Adaptive.Info.DirNumSup) {
			t.Entry[i].Decision = mad.RNDecisionConsumeARNFRN
		}
	}
	return encodeAnswer(data, &t, 0)
}

// getXmitPorts reads a block of RNXmitPortMask: 128 ports, of each pair the even one in the
// high half of a byte.
func getXmitPorts(n *state.Node, modifier uint32, data []byte) mad.Status {
	const perBlock, all = 128, 1 | 2 | 4 // ARN, FRN, pass on
	var t mad.RNXmitPortMask
	if modifier > uint32(len(n.Ports)-1)/perBlock {
		return mad.StatusBadValue
	}
	for i := range perBlock {
		num := int(modifier)*perBlock + i
		if notifies(n) && num > 0 && num < len(n.Ports) && n.Ports[num].Peer != nil && n.Ports[num].Peer.Node.IsSwitch {
			t.PortPair[i/2] |= all << (4 * (1 - i%2))
		}
	}
	return encodeAnswer(data, &t, 0)
}

// getPriorities reads RNGenBySubGroupPriority: the primary sub-group notifies.
func getPriorities(n *state.Node, modifier uint32, data []byte) mad.Status {
	var t mad.RNGenBySubGroupPriority
	t.Priority[0] = mad.RNGenPriority{GenFRN: notifies(n), GenARN: notifies(n)}
	return encodeAnswer(data, &t, modifier)
}
