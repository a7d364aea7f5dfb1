package agent

import (
	"encoding/binary"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// The agents of Mellanox' devices: registers, which are read by an SMP or by a class of the
// vendor, ExtendedPortInfo, adaptive routing, virtual ports, and the keys of the vendor's
// classes. state.Hardware has the contents of the registers.

// hasRegisters reports whether a node has registers (the key registers= of a spec).
func hasRegisters(n *state.Node) bool { return n.Hardware != nil }

// queryRegister lets the node answer a query of a register.
func queryRegister(n *state.Node, uptime time.Duration, id uint16, content []byte) mad.RegisterStatus {
	view := state.RegisterView{Uptime: uptime, Port: func(num int) state.RegisterPort { return registerPort(n, num) }}
	view.Info.Decode(n.Info[:])
	return n.Hardware.Query(id, content, view)
}

// registerPort returns what registers need of a port.
func registerPort(n *state.Node, num int) state.RegisterPort {
	if num < 1 || num >= len(n.Ports) {
		return state.RegisterPort{}
	}
	p := &n.Ports[num]
	info := p.PortInfo()
	lanes := mad.WidthLanes(info.LinkWidthActive.String())
	// Of NDR and later the modules are OSFP.
	return state.RegisterPort{Cabled: p.Peer != nil && !p.Unplugged, Up: p.Up, Rate: float64(p.Rate) * 5e8, Lanes: lanes, CMIS: lanes > 0 && int(p.Rate) >= 200*lanes}
}

// registerStatus is the status of a datagram of the vendor's class by the status of a
// register (mstflint mtcr_ib_ofed.c translate_mad_status_to_reg_status_gmp).
var registerStatus = map[mad.RegisterStatus]mad.Status{
	mad.RegisterStatusOK: mad.StatusOK, mad.RegisterStatusRegisterNotSupported: 0x14, mad.RegisterStatusBadParameter: mad.StatusBadValue,
}

// getRegisterByVendorMAD answers AccessRegister of the vendor's class: the modifier is the register.
func getRegisterByVendorMAD(n *state.Node, uptime time.Duration, modifier uint32, data []byte) mad.Status {
	var access mad.AccessRegister
	access.Decode(data)
	if access.BlockNum != 0 || modifier > 0xffff {
		return mad.StatusBadValue
	}
	status := queryRegister(n, uptime, uint16(modifier), access.Content[:])
	access.Encode(data)
	return registerStatus[status]
}

// getRegisterBySMP answers MlnxAccessRegister: the register's own status is in the answer.
func getRegisterBySMP(n *state.Node, uptime time.Duration, data []byte) mad.Status {
	var access mad.MlnxAccessRegister
	access.Decode(data)
	op := &access.Operation
	var content [mad.GMPRegisterSize]byte
	copy(content[:], access.Register[:])
	op.OperationResponse = true
	switch {
	case op.OperationType != 1 || op.OperationLen != 4 || op.RegisterType != 3:
		op.RegisterStatus = mad.RegisterStatusUnknownTLV
	case op.OperationClass != 1:
		op.RegisterStatus = mad.RegisterStatusClassNotSupported
	case op.RegisterMethod != mad.RegisterMethodRead:
		op.RegisterStatus = mad.RegisterStatusMethodNotSupported
	default:
		op.RegisterStatus = queryRegister(n, uptime, op.RegisterID, content[:])
	}
	copy(access.Register[:], content[:])
	access.Encode(data)
	return mad.StatusOK
}

// hasExtendedPortInfo reports whether a node has Mellanox' ExtendedPortInfo. OpenSM queries
// each node that may have it.
func hasExtendedPortInfo(n *state.Node) bool {
	info := n.NodeInfo()
	return info.HasExtPortInfo() || announces(n, mad.Capabilities0ExtendedPortInfo)
}

// Ports with something special behind them, in ExtendedPortInfo.SpecialPortType.
const aggregationPort = 1

// getExtendedPortInfo reads ExtendedPortInfo; nil: the port does not exist.
func getExtendedPortInfo(p *state.Port, data []byte) mad.Status {
	if p == nil {
		return mad.StatusBadValue
	}
	var info mad.ExtendedPortInfo
	if p.FDR10 {
		info.LinkSpeedSupported, info.LinkSpeedEnabled = 1, 1
		if p.Up {
			info.LinkSpeedActive = 1
		}
	}
	info.IsFNMPort = p.FNM
	if p.Node.IsSwitch && p.Peer != nil && p.Peer.Node.Kind == fabric.KindAggregation {
		info.IsSpecialPort, info.SpecialPortType = true, aggregationPort
	}
	if announces(p.Node, mad.Capabilities0GlobalOutOfOrder) {
		info.OOOSLMask = 0xffff
	}
	return encodeAnswer(data, &info, 0)
}

// hasExtendedNodeInfo reports whether a node announces ExtendedNodeInfo.
func hasExtendedNodeInfo(n *state.Node) bool { return announces(n, mad.Capabilities0ExtendedNodeInfo) }

// getExtendedNodeInfo reads ExtendedNodeInfo: the planes of a device.
func getExtendedNodeInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	info := mad.ExtendedNodeInfo{AsicMaxPlanes: uint8(n.Planes())}
	if !n.IsSwitch && n.Planes() > 1 {
		info.NodeTypeExtended = mad.ExtendedNodeTypeMultiplane
	}
	return encodeAnswer(data, &info, modifier)
}

// setExtendedPortInfo refuses all changes: links keep their speed.
func setExtendedPortInfo(p *state.Port, data []byte) mad.Status {
	var asked, now mad.ExtendedPortInfo
	asked.Decode(data)
	status := getExtendedPortInfo(p, data)
	now.Decode(data)
	if status == mad.StatusOK && asked.LinkSpeedEnabled != now.LinkSpeedEnabled {
		return mad.StatusBadValue
	}
	return status
}

// The keys of the vendor's classes 0x0A (VS) and 0x0C (between nodes, N2N). They protect
// themselves alone: a Get without the key reads 0 in its place. Registers are read without
// a key. A MAD has its key at offset 24.

// Capabilities in classPortInfo: the class has KeyInfo (VS), and a key for managers and
// another for nodes (N2N).
const (
	vsHasKey        = 0x0100
	n2nTwoKeys      = 0x0200
	vendorKeyOffset = 24
	neighborsPer    = 14 // ports in a block of NeighborsInfo
)

// vendorRequest is a Get in one of these classes.
type vendorRequest struct {
	Node     *state.Node
	Modifier uint32
	MAD      []byte
}

// vsHandlers are the attributes of class 0x0A, but for registers.
var vsHandlers = handlerTable[*vendorRequest]{
	{Attr: mad.AttrVendor0AClassPortInfo, On: func(r *vendorRequest) bool { return r.Node.VSKey != nil }, Get: func(r *vendorRequest) mad.Status {
		info := classPortInfo(mad.ClassVendor0A)
		info.CapabilityMask = vsHasKey
		return r.answer(mad.AttrVendor0AClassPortInfo, info)
	}},
	{Attr: mad.AttrVSKeyInfo, On: func(r *vendorRequest) bool { return r.Node.VSKey != nil }, Get: func(r *vendorRequest) mad.Status {
		info := *r.Node.VSKey
		if info.ProtectBit && !r.hasKey(info.VSKey) {
			info.VSKey = 0
		}
		return r.answer(mad.AttrVSKeyInfo, &info)
	}},
}

// n2nHandlers are the attributes of class 0x0C.
var n2nHandlers = handlerTable[*vendorRequest]{
	{Attr: mad.AttrVendor0CClassPortInfo, On: hasN2N, Get: func(r *vendorRequest) mad.Status {
		info := classPortInfo(mad.ClassVendor0C)
		info.CapabilityMask = n2nTwoKeys
		return r.answer(mad.AttrVendor0CClassPortInfo, info)
	}},
	{Attr: mad.AttrN2NKeyInfo, On: hasN2N, Get: func(r *vendorRequest) mad.Status {
		info := *r.Node.N2NKey
		if info.ProtectBit && !r.hasKey(info.N2NMgrKey) {
			info.N2NMgrKey = 0
		}
		return r.answer(mad.AttrN2NKeyInfo, &info)
	}},
	{Attr: mad.AttrNeighborsInfo, On: hasN2N, Get: (*vendorRequest).getNeighbors},
}

func hasN2N(r *vendorRequest) bool { return r.Node.N2NKey != nil }

func (r *vendorRequest) hasKey(key uint64) bool {
	return binary.BigEndian.Uint64(r.MAD[vendorKeyOffset:]) == key
}

func (r *vendorRequest) answer(attr *mad.Attribute, e state.Encoder) mad.Status {
	return encodeAnswer(r.MAD[attr.Offset():][:attr.Size], e, r.Modifier)
}

// getNeighbors reads the nodes behind 14 ports, from port 14*block on. Their keys are hidden
// where the key of the manager is.
func (r *vendorRequest) getNeighbors() mad.Status {
	n := r.Node
	if r.Modifier > uint32(len(n.Ports)-1)/neighborsPer {
		return mad.StatusBadValue
	}
	var info mad.NeighborsInfo
	hidden := n.N2NKey.ProtectBit && !r.hasKey(n.N2NKey.N2NMgrKey)
	for i := range info.Neighbor {
		num := int(r.Modifier)*neighborsPer + i
		if num == 0 || num >= len(n.Ports) || !n.Ports[num].Up || !n.Adaptive.Info.PFRNEn {
			continue
		}
		peer := n.Ports[num].Peer
		if !peer.Node.IsSwitch { // hosts send no notifications
			continue
		}
		info.Neighbor[i] = mad.NeighborRecord{NodeType: peer.Node.NodeInfo().NodeType, LID: peer.EndPort().LID}
		if !hidden {
			info.Neighbor[i].N2NKey = uint64(peer.Node.GUID()) ^ n2nNodeKeyMask
		}
	}
	attr := mad.AttrNeighborsInfo
	return encodeAnswer(r.MAD[attr.Offset():][:attr.Size], &info, 0)
}

// n2nNodeKeyMask makes keys between nodes from the GUIDs of the nodes.
const n2nNodeKeyMask = 0x5a5a_00c0_0000_0000

// Virtual ports. The public sources do not say how the modifier of VPortInfo has port and
// index; here the index is in the lower half, and the port in the upper one, where 0 is the
// port that the request came in through, as in VNodeInfo and VPortState. No Set is accepted.

// hasVirtualization reports whether a node announces virtualization.
func hasVirtualization(n *state.Node) bool { return announces(n, mad.Capabilities0Virtualization) }

// virtualPort returns the port and the index or block that a modifier names; nil: the port
// does not exist.
func virtualPort(in *state.Port, modifier uint32) (p *state.Port, index int) {
	return in.PortOfModifier(int(modifier >> 16)), int(modifier & 0xffff)
}

// getVirtualization reads VirtualizationInfo; the modifier is the port.
func getVirtualization(in *state.Port, modifier uint32, data []byte) mad.Status {
	p := in.PortOfModifier(int(modifier))
	if p == nil {
		return mad.StatusBadValue
	}
	return encodeAnswer(data, &mad.VirtualizationInfo{VPortCap: state.MaxVirtualPorts, VPortIndexTop: uint16(len(p.Virtual)), VirtualizationEnable: true}, 0)
}

// getVirtualPort reads VPortInfo.
func getVirtualPort(in *state.Port, modifier uint32, data []byte) mad.Status {
	p, index := virtualPort(in, modifier)
	if p == nil || index > len(p.Virtual) {
		return mad.StatusBadValue
	}
	info := mad.VPortInfo{State: p.VirtualState(index), GUIDCap: 1, CapMask: mad.VPortCapabilitiesCM, LIDRequired: true, LID: p.LID, PortGUID: p.GUID}
	if index > 0 {
		v := p.Virtual[index-1]
		info.LIDRequired, info.LID, info.PortGUID = v.LID != 0, v.LID, v.GUID
	}
	return encodeAnswer(data, &info, 0)
}

// getVirtualNode reads VNodeInfo.
func getVirtualNode(in *state.Port, modifier uint32, data []byte) mad.Status {
	p, index := virtualPort(in, modifier)
	if p == nil || index > len(p.Virtual) {
		return mad.StatusBadValue
	}
	info := mad.VNodeInfo{PartitionCap: mad.PKeyBlock, LocalPortNum: 1, NumPorts: 1, VNodeGUID: p.Node.GUID()}
	if index > 0 {
		info.VNodeGUID = p.Virtual[index-1].Node
	}
	return encodeAnswer(data, &info, 0)
}

// getVirtualStates reads a block of VPortState.
func getVirtualStates(in *state.Port, modifier uint32, data []byte) mad.Status {
	p, block := virtualPort(in, modifier)
	var info mad.VPortState
	if p == nil || block > len(p.Virtual)/len(info.State) {
		return mad.StatusBadValue
	}
	for i := range info.State {
		if index := block*len(info.State) + i; index <= len(p.Virtual) {
			info.State[i] = p.VirtualState(index)
		}
	}
	return encodeAnswer(data, &info, 0)
}

// The agent answers what GeneralInfo announces. Where the public sources do not have the
// modifier of an attribute, this one is the simulator's own: 0 for HBFConfig, and the number
// of the block for WeightedHBFConfig and the tables of routing notifications. Only the subnet
// manager in this process sets these attributes: there is no Set.

func announces(n *state.Node, c mad.Capabilities0) bool { return n.Capabilities.CapMask0&c != 0 }

// getGeneralInfo reads the capabilities, the one form whose modifier is public.
func getGeneralInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier != mad.GeneralInfoFormCapabilities {
		return mad.StatusBadValue
	}
	caps := n.Capabilities
	caps.CapMask0 |= mad.Capabilities0AccessRegister // sim.temperature gives nodes registers later
	if hasExtendedPortInfo(n) {
		caps.CapMask0 |= mad.Capabilities0ExtendedPortInfo
	}
	return encodeAnswer(data, &caps, 0)
}

// hasGeneralInfo reports whether a node answers GeneralInfo.
func hasGeneralInfo(n *state.Node) bool {
	return n.IsMellanox() || hasExtendedPortInfo(n) || n.Capabilities != (mad.GeneralInfoCapabilities{})
}

// hasAdaptive reports whether a node announces adaptive routing.
func hasAdaptive(n *state.Node) bool { return announces(n, mad.Capabilities0AR) }

// getAdaptiveInfo reads AdaptiveRoutingInfo.
func getAdaptiveInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	n.Subnet.EnsureTables()
	info := n.Adaptive.Info
	info.GroupTop = n.Adaptive.GroupTop()
	return encodeAnswer(data, &info, modifier)
}

// getGroups reads a block of AdaptiveRoutingGroupTable: two sub-groups.
func getGroups(n *state.Node, modifier uint32, data []byte) mad.Status {
	a := n.Adaptive
	n.Subnet.EnsureTables()
	sub := max(int(a.Info.SubGrpsActive), 1)
	if modifier > uint32((int(a.Info.GroupCap)*sub+sub-1)/2) {
		return mad.StatusBadValue
	}
	clear(data)
	if len(a.Tables) == 0 {
		return mad.StatusOK
	}
	for i := range 2 {
		entry := int(modifier)*2 + i
		mask := a.Tables[0].Groups.Ports(entry/sub, entry%sub).Mask()
		copy(data[i*len(mask):], mask[:])
	}
	return mad.StatusOK
}

// adaptiveBlock is the number of LIDs in a block of AdaptiveRoutingLFT.
const adaptiveBlock = 16

// GetAdaptiveLFT reads a block of AdaptiveRoutingLFT, of private LFT 0: how the modifier
// selects others is not public.
func GetAdaptiveLFT(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier >= state.LinearCap/adaptiveBlock {
		return mad.StatusBadValue
	}
	n.Subnet.EnsureTables()
	var t *adaptive.Table
	if len(n.Adaptive.Tables) > 0 {
		t = n.Adaptive.Tables[0]
	}
	for i := range adaptiveBlock {
		e := adaptive.Entry{State: adaptive.Static, Port: mad.NoPort}
		if t != nil {
			e = t.Entry(mad.LID(modifier*adaptiveBlock + uint32(i)))
		}
		binary.BigEndian.PutUint32(data[4*i:], uint32(e.State)<<30|uint32(e.Port)<<16|uint32(e.Group))
	}
	return mad.StatusOK
}

// getHBF reads HBFConfig.
func getHBF(n *state.Node, modifier uint32, data []byte) mad.Status {
	return encodeAnswer(data, &n.Adaptive.HBF, modifier)
}

// getWHBF reads a block of WeightedHBFConfig: 16 groups with equal weights.
func getWHBF(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier > uint32(n.Adaptive.Info.GroupCap)/16 {
		return mad.StatusBadValue
	}
	var w mad.WeightedHBFConfig
	for i := range w.Group {
		at := n.Adaptive.Weights
		w.Group[i].SG0Weight, w.Group[i].SG1Weight, w.Group[i].SG2Weight = at[0], at[1], at[2]
	}
	return encodeAnswer(data, &w, 0)
}

// getPFRN reads pFRNConfig.
func getPFRN(n *state.Node, modifier uint32, data []byte) mad.Status {
	return encodeAnswer(data, &n.Adaptive.PFRN, modifier)
}

// hasPrivate reports whether a node announces private LFTs.
func hasPrivate(n *state.Node) bool { return announces(n, mad.Capabilities0PrivateLFT) }

// The simulated switches have four private LFTs, each in a bank of its own, in one mode.
const (
	privateLFTs     = 4
	privateBankSize = state.LinearCap / 1024
	privateLIDUnit  = 512 // LIDs, of PrivateLFTDef
)

// getPrivateInfo reads PrivateLFTInfo.
func getPrivateInfo(n *state.Node, modifier uint32, data []byte) mad.Status {
	info := mad.PrivateLFTInfo{NumPLFTs: privateLFTs, ModeCap: 1}
	info.Mode[0] = mad.PrivateLFTMode{BankSize: privateBankSize, NumBanks: privateLFTs}
	if n.Adaptive.Private != nil {
		info.ActiveMode = 1
	}
	return encodeAnswer(data, &info, modifier)
}

// getPrivateDef reads a block of PrivateLFTDef.
func getPrivateDef(n *state.Node, modifier uint32, data []byte) mad.Status {
	var def mad.PrivateLFTDef
	n.Subnet.EnsureTables()
	for i := range n.Adaptive.Tables {
		if n.Adaptive.Private != nil && i < privateLFTs {
			// Bank i: of the byte, the source does not say which bits are the bank.
			def.Table[i] = mad.PrivateLFTPlace{ForceSubGroup0Bank: uint8(i), LIDSpace: uint8(int(n.Adaptive.Tables[i].Top())/privateLIDUnit + 1)}
		}
	}
	return encodeAnswer(data, &def, modifier)
}

// getPrivateMap reads PrivateLFTMap: the ports whose packets of SL 0 follow a private LFT.
func getPrivateMap(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier >= privateLFTs {
		return mad.StatusBadValue
	}
	m := mad.PrivateLFTMap{PortMaskEnable: true}
	n.Subnet.EnsureTables()
	if int(modifier) < len(n.Adaptive.Tables) {
		m.LFTTopEnable, m.LFTTop = true, n.Adaptive.Tables[modifier].Top()
	}
	var ports adaptive.Ports
	for num := range n.Ports {
		if n.Adaptive.PrivateOf(num)[0] == uint8(modifier) {
			ports.Add(uint8(num))
		}
	}
	m.PortGroupMask = ports.Mask()
	return encodeAnswer(data, &m, 0)
}

// hasPortSL reports whether a node announces private LFTs by input port and SL.
func hasPortSL(n *state.Node) bool { return announces(n, mad.Capabilities0PortSLToPrivateLFT) }

// getPortSL reads a block of PortSLToPrivateLFTMap: four ports.
func getPortSL(n *state.Node, modifier uint32, data []byte) mad.Status {
	if modifier > uint32(len(n.Ports)-1)/4 {
		return mad.StatusBadValue
	}
	var m mad.PortSLToPrivateLFTMap
	for i := range 4 {
		row := n.Adaptive.PrivateOf(int(modifier)*4 + i)
		copy(m.PLFTID[16*i:], row[:])
	}
	return encodeAnswer(data, &m, 0)
}

// Routing notifications by strings (RN), as the simulated switches have them: direction d
// sends string d+1, all strings are consumed, and pass through the ports to switches. The
// direction of each sub-group is its number. Without the option rn of ar_with=, all tables
// are empty.

func sendsNotifications(n *state.Node) bool { return n.Adaptive.Info.RNXmitEnabled }

// getSubGroupDirections reads a block of RNSubGroupDirectionTable: 64 sub-groups.
func getSubGroupDirections(n *state.Node, modifier uint32, data []byte) mad.Status {
	var t mad.RNSubGroupDirectionTable
	sub := int(max(n.Adaptive.Info.SubGrpsActive, 1))
	if int(modifier) > (int(n.Adaptive.Info.GroupCap)*sub+sub-1)/len(t.Direction) {
		return mad.StatusBadValue
	}
	for i := range t.Direction {
		if sendsNotifications(n) {
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
		if d := int(modifier)*len(t.String) + i; sendsNotifications(n) && d < directions {
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
		if s := int(modifier)*len(t.Entry) + i; sendsNotifications(n) && s >= 1 && s <= int(n.Adaptive.Info.DirNumSup) {
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
		if sendsNotifications(n) && num > 0 && num < len(n.Ports) && n.Ports[num].Peer != nil && n.Ports[num].Peer.Node.IsSwitch {
			t.PortPair[i/2] |= all << (4 * (1 - i%2))
		}
	}
	return encodeAnswer(data, &t, 0)
}

// getPriorities reads RNGenBySubGroupPriority: the primary sub-group notifies.
func getPriorities(n *state.Node, modifier uint32, data []byte) mad.Status {
	var t mad.RNGenBySubGroupPriority
	t.Priority[0] = mad.RNGenPriority{GenFRN: sendsNotifications(n), GenARN: sendsNotifications(n)}
	return encodeAnswer(data, &t, modifier)
}
