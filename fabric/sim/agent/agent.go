// Package agent answers the requests of programs in a simulated subnet, as the agents of its
// nodes do, one for each class; and as its subnet manager and subnet administrator.
//
// An Exchange is one request: it is forwarded through the state.Subnet, checked (M_Key,
// partition), executed by the agent of its class, and turned into the answer. Each class has
// its own request type, with what its handlers may read and change, and a handlerTable of its
// attributes. Manager is the subnet manager, Administrator the subnet administrator.
//
// Agents is safe for concurrent use: Exchange.Answer locks the subnet, for reading if the
// request is a Get. Manager.Restart, Manager.Node, Manager.Add and Administrator.Mute lock it
// too; other functions expect their caller to hold the lock.
package agent

import (
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Agents are the agents of a subnet, and the state that they share.
type Agents struct {
	Subnet     *state.Subnet
	Faults     *state.Faults
	Traffic    *state.Traffic
	Notices    *state.Notices
	SM         *Manager
	SA         *Administrator
	Congestion CCSettings
	Baseboards BMSettings
	// Seen is called with each request that reaches the agents of a node; nil: it is not. It
	// may be called from any goroutine, and must not call the subnet.
	Seen func(node mad.GUID, h mad.Header)
}

// classAgent is the agent of a management class, which all nodes have.
type classAgent struct {
	lookup        func(c mad.Class, id mad.AttributeID) *mad.Attribute
	run           func(x *Exchange, attr *mad.Attribute, set bool) mad.Status
	unknownMethod mad.Status // of methods other than Get and Set
}

// classAgents are the agents of a node, by class.
var classAgents = [256]*classAgent{
	mad.ClassSubn:       {smaHandlers.Lookup, runSubn, mad.StatusBadMethod},
	mad.ClassPerf:       {pmaHandlers.Lookup, runPerf, mad.StatusBadMethod},
	mad.ClassCongestion: {ccHandlers.Lookup, runCongestion, mad.StatusBadMethodAttribute},
	mad.ClassBM:         {bmHandlers.Lookup, runBM, mad.StatusBadMethodAttribute},
	mad.ClassVendor0A:   {mad.Lookup, runVendor, mad.StatusBadMethodAttribute},
	mad.ClassVendor0C:   {mad.Lookup, runN2N, mad.StatusBadMethodAttribute},
	mad.ClassDevMgt:     {devmgtHandlers.Lookup, runDevMgt, mad.StatusBadMethodAttribute},
	mad.ClassComMgt:     {mad.Lookup, runComMgt, mad.StatusBadMethodAttribute},
}

// Has reports whether nodes have an agent of a class.
func Has(c mad.Class) bool { return classAgents[c.Family()] != nil }

func runSubn(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	x.sma = smaRequest{Subnet: x.agents.Subnet, SM: x.agents.SM, Notices: x.agents.Notices, In: x.in, Modifier: x.header.Modifier, Data: x.data, HideKey: x.access.HideKey}
	return x.reported(attr, set, x.data, smaHandlers.Run(&x.sma, attr, set))
}

// reported returns the status of an answer after the changes of state.Node.SetReport.
func (x *Exchange) reported(attr *mad.Attribute, set bool, data []byte, status mad.Status) mad.Status {
	if set {
		return status
	}
	return x.in.Node.Report(attr, x.header.Modifier, data, status)
}

func runPerf(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	x.pma = pmaRequest{Subnet: x.agents.Subnet, Traffic: x.agents.Traffic, Node: x.perfNode, Attr: attr, Modifier: x.header.Modifier, Data: x.data, Cut: x.sender.Cut}
	return pmaHandlers.Run(&x.pma, attr, set)
}

func runCongestion(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	x.cc = ccRequest{Settings: x.agents.Congestion, At: x.in.EndPort(), Modifier: x.header.Modifier, MAD: x.mad}
	status := ccHandlers.Run(&x.cc, attr, set)
	if x.cc.Silent {
		x.reply = replyNone
	}
	return status
}

func runVendor(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	if attr != mad.AttrAccessRegister {
		return x.reported(attr, set, x.mad[attr.Offset():], vsHandlers.Run(&vendorRequest{Node: x.in.Node, Modifier: x.header.Modifier, MAD: x.mad}, attr, set))
	}
	if set || !hasRegisters(x.in.Node) {
		return mad.StatusBadMethodAttribute
	}
	return getRegisterByVendorMAD(x.in.Node, x.agents.Subnet.Uptime(), x.header.Modifier, x.data)
}

func runN2N(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	return x.reported(attr, set, x.mad[attr.Offset():], n2nHandlers.Run(&vendorRequest{Node: x.in.Node, Modifier: x.header.Modifier, MAD: x.mad}, attr, set))
}

func runBM(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	r := bmRequest{Settings: x.agents.Baseboards, At: x.in.EndPort(), Modifier: x.header.Modifier, MAD: x.mad, Data: x.data}
	return bmHandlers.Run(&r, attr, set)
}

func runDevMgt(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	r := devmgtRequest{At: x.in.EndPort(), Modifier: x.header.Modifier, Data: x.data}
	return devmgtHandlers.Run(&r, attr, set)
}

// runComMgt answers for ports that announce communication management, which have no
// connections.
func runComMgt(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	capabilities := mad.CapabilityMask(portInfoCapabilities.Uint(x.in.EndPort().Info[:]))
	if set || attr != mad.AttrComMgtClassPortInfo || capabilities&mad.CapabilityMaskIsCommunicationManagementSupported == 0 {
		return mad.StatusBadMethodAttribute
	}
	x.data = x.mad[attr.Offset():]
	return encodeAnswer(x.data, classPortInfo(x.header.Class), x.header.Modifier)
}

var portInfoCapabilities = mad.AttrPortInfo.Field("capability_mask")

// handler answers requests for one attribute. R is the request type of the class: its
// data is the attribute of the request, and afterwards of the answer. Gets run
// concurrently; a Set runs alone.
type handler[R any] struct {
	Attr *mad.Attribute       // nil: each attribute of the class that on admits
	On   func(r R) bool       // the requests that it answers; nil: all of the attribute
	Get  func(r R) mad.Status // nil: the agent has no Get of it
	Set  func(r R) mad.Status // nil: no Set
}

// handlerTable has the handlers of a class.
type handlerTable[R any] []handler[R]

// Run answers a Get, or with set a Set, of an attribute.
func (t handlerTable[R]) Run(r R, attr *mad.Attribute, set bool) mad.Status {
	for i := range t {
		h := &t[i]
		if h.Attr != nil && h.Attr != attr || h.On != nil && !h.On(r) {
			continue
		}
		if set && h.Set != nil {
			return h.Set(r)
		}
		if !set && h.Get != nil {
			return h.Get(r)
		}
	}
	return mad.StatusBadMethodAttribute
}

// Lookup is mad.Lookup, without its map for attributes with a handler.
func (t handlerTable[R]) Lookup(c mad.Class, id mad.AttributeID) *mad.Attribute {
	for i := range t {
		if attr := t[i].Attr; attr != nil && attr.ID == id {
			return attr
		}
	}
	return mad.Lookup(c, id)
}

// methodAllowed reports whether an attribute is known and has the method.
func methodAllowed(a *mad.Attribute, m mad.Method) bool {
	return a != nil && slices.Contains(a.Methods, m)
}

// encodeAnswer encodes an attribute as the data of an answer, and returns its status.
func encodeAnswer(data []byte, e state.Encoder, modifier uint32) mad.Status {
	clear(data)
	e.Encode(data)
	return checkModifier(modifier)
}

// checkModifier returns the status of a request whose modifier has no meaning.
func checkModifier(modifier uint32) mad.Status {
	if modifier != 0 {
		return mad.StatusBadValue
	}
	return mad.StatusOK
}

// classPortInfo returns the classPortInfo of a class without capabilities.
func classPortInfo(c mad.Class) *mad.ClassPortInfo {
	return &mad.ClassPortInfo{BaseVersion: 1, ClassVersion: c.Version(), RespTimeValue: state.LifeTime}
}

// applySet changes image, the attribute on the wire, as a Set with data requests:
// read-only fields stay unchanged, and so do fields of value 0 for which 0 means no
// change; in fields that are cleared by 1 the bits that are set are cleared.
func applySet(a *mad.Attribute, image, data []byte) {
	for i := range a.Fields {
		f := &a.Fields[i]
		if f.ReadOnly {
			continue
		}
		for e := range f.Count {
			v := f.UintAt(data, e)
			switch {
			case f.NoChange && v == 0:
			case f.W1C:
				f.SetUintAt(image, e, f.UintAt(image, e)&^v)
			default:
				f.SetUintAt(image, e, v)
			}
		}
	}
}
