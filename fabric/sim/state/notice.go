// Package notice sends notices of events in a simulated subnet: agents send traps to
// their subnet manager, and the subnet administrator sends Reports to its subscribers.
//
//	notice.go  Notices: who accepts traps and Reports; Reports to subscribers
//	trap.go    traps, their repetition, TrapRepress
//	kept.go    the notice that an agent keeps for who polls it
//	send.go    each trap by its number; those of counters

package state

import (
	"fabsh/mad"
	"fabsh/mad/engine"
	"fmt"
)

// Notices are the traps and Reports of a subnet. Its fields are guarded by the
// subnet's lock.
type Notices struct {
	subnet        *Subnet
	Subscriptions []Subscription
	lastTID       uint64 // of a Report
	LastTrap      uint64 // TID of a Trap
	Repeated      map[trapKey]*repeatedTrap
	Accepting     map[RequestKey]*Receiver
	kept          map[*Port]*keptNotice
}

// NewNotices returns the notices of a subnet.
func NewNotices(s *Subnet) *Notices {
	return &Notices{subnet: s, Repeated: map[trapKey]*repeatedTrap{}, Accepting: map[RequestKey]*Receiver{}, kept: map[*Port]*keptNotice{}}
}

// Receiver is a program that accepts requests of others. It is called with the
// subnet's lock held, and must not keep the MAD.
type Receiver struct {
	Deliver func(from engine.Address, m *[mad.Size]byte)
	Client  bool // it is a foreign program, which is registered as package client finds right
}

// RequestKey names the requests that a program accepts.
type RequestKey struct {
	Port   *Port
	Class  mad.Class
	Method mad.Method
}

// noticeSize is the size of the Notice in a Report, in bytes.
const noticeSize = 80

// report sends Reports of a notice to its subscribers.
func (n *Notices) report(notice *mad.Notice) {
	var data [noticeSize]byte
	notice.Encode(data[:])
	sm := n.subnet.SM
	for i := range n.Subscriptions {
		to := n.Subscriptions[i].To
		if !n.Subscriptions[i].Info.Matches(notice) {
			continue
		}
		n.lastTID++
		r := n.Accepting[RequestKey{Port: to, Class: mad.ClassSubnAdm, Method: mad.MethodReport}]
		if at := ForwardLID(sm, to.LID, false); r == nil || at == nil || at.EndPort() != to {
			continue
		}
		var call engine.Call
		call.PutSA(mad.MethodReport, mad.AttrSubnAdmNotice.ID, 0, 0, data[:])
		h := call.Header()
		h.TID = n.lastTID
		h.Put(call.MAD[:])
		r.Deliver(engine.Address{LID: sm.LID, QP: 1}, &call.MAD)
	}
}

// ForgetSubscriptions drops all subscriptions: a subnet manager that starts does not know
// them.
func (n *Notices) ForgetSubscriptions() { n.Subscriptions, n.lastTID = nil, 0 }

// ReportGID reports that the GID of an end port came into service (trap 64) or
// went out of it (65), or that a multicast group was made (66) or deleted (67).
func (n *Notices) ReportGID(trap uint16, gid mad.GID) {
	notice := mad.Notice{
		IsGeneric: true, Type: mad.NoticeTypeSM, ProducerType: mad.ProducerTypeSM,
		TrapNumber: trap, IssuerLID: n.subnet.SM.LID, IssuerGID: n.subnet.SM.GID(),
	}
	details := mad.NoticeGID{GIDAddr: gid}
	details.Encode(notice.DataDetails[:])
	n.report(&notice)
}

// Subscription is a subscription to Reports: the subscriber, and the notices that it
// subscribed to.
type Subscription struct {
	To   *Port
	Info mad.InformInfo // as the subscriber sent it, QPN 0
}

// Accept registers a program for requests of others that come to an end port, of a
// class and method. One program at a port gets them, as on a host, and the subnet
// manager gets the traps at its own port.
func (n *Notices) Accept(at *Port, class mad.Class, m mad.Method, r *Receiver) (stop func(), err error) {
	n.subnet.Lock()
	defer n.subnet.Unlock()
	key := RequestKey{at, class.Family(), m}
	switch {
	case n.Accepting[key] != nil:
		return nil, fmt.Errorf("another program receives each %s of class %v at this port of the simulated fabric", m.Name(class, class.Version()), class)
	case m == mad.MethodTrap && at == n.subnet.SM:
		return nil, fmt.Errorf("the simulated subnet manager is on this port, and takes its traps; attach to another node (-C)")
	}
	n.Accepting[key] = r
	return func() {
		n.subnet.Lock()
		defer n.subnet.Unlock()
		if n.Accepting[key] == r {
			delete(n.Accepting, key)
		}
	}, nil
}
