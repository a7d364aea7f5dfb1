// Package agent passes each request in a simulated subnet to the agent that answers it.
// The agents are packages of their own, one for each class.
//
//	agent.go   Agents: those of a subnet, by class
//	answer.go  Exchange: a request, on its way to the agent and back
package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Agents are those of a subnet, and the state that they share.
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

// class is the agent of a management class, which all nodes have.
type class struct {
	lookup        func(c mad.Class, id mad.AttributeID) *mad.Attribute
	run           func(x *Exchange, attr *mad.Attribute, set bool) mad.Status
	unknownMethod mad.Status // of methods other than Get and Set
}

// classes are the agents of a node, by class.
var classes = [256]*class{
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
func Has(c mad.Class) bool { return classes[c.Family()] != nil }

func runSubn(x *Exchange, attr *mad.Attribute, set bool) mad.Status {
	x.sma = smaRequest{Subnet: x.agents.Subnet, SM: x.agents.SM, Notices: x.agents.Notices, In: x.in, Modifier: x.header.Modifier, Data: x.data, HideKey: x.access.HideKey}
	return x.reported(attr, set, x.data, smaHandlers.Run(&x.sma, attr, set))
}

// reported is the status of an answer after the changes of edit.Report.
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
	return getRegister(x.in.Node, x.agents.Subnet.Uptime(), x.header.Modifier, x.data)
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
