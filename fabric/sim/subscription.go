package sim

import (
	"fmt"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// subscription is a subscription to Reports: who gets them, and which.
type subscription struct {
	to   *port
	info mad.InformInfo // as the subscriber sent it, QPN 0
}

// maxKept bounds what requesters can have the subnet administrator keep: subscriptions,
// and services.
const maxKept = 1 << 16

// noticeSize is the size of the Notice in a Report, in bytes.
const noticeSize = 80

// acceptKey names the requests that a program accepts.
type acceptKey struct {
	port   *port
	class  mad.Class
	method mad.Method
}

// Accept registers the program for requests of others, of a class and method. As
// on a host, one program at a port gets them, and the subnet manager gets the
// traps at its own port.
func (c *conn) Accept(class mad.Class, m mad.Method) (stop func(), err error) {
	s := c.s
	key := acceptKey{c.port.endPort(), class.Family(), m}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.accepting[key] != nil:
		return nil, fmt.Errorf("another program takes each %s of class %v that comes to this port of the simulated fabric already", m.Name(class, class.Version()), class)
	case m == mad.MethodTrap && key.port == s.sm:
		return nil, fmt.Errorf("the simulated subnet manager is on this port, and takes its traps; attach to another node (-C)")
	}
	s.accepting[key] = c
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.accepting[key] == c {
			delete(s.accepting, key)
		}
	}, nil
}

// changeSubscription begins or ends a subscription of the requester (IBA 13.4.8.3,
// 15.4.12; opensm, osm_sa_informinfo.c, infr_rcv_process_set_method). The answer
// holds the request's InformInfo.
func (r *request) changeSubscription(_ uint64, trusted bool) mad.Status {
	var info mad.InformInfo
	info.Decode(r.data)
	i := subscription{to: r.from.endPort(), info: info}
	i.info.QPN, i.info.Subscribe = 0, 1
	at := -1
	for j := range r.subscriptions {
		if r.subscriptions[j] == i {
			at = j
		}
	}
	security := info.TrapNumber >= 256 && info.TrapNumber <= 259
	switch {
	case info.Subscribe > 1, info.Subscribe == 0 && at < 0,
		info.IsGeneric != 0 && security && !trusted, // for trusted requesters only
		info.GID != mad.GID{} && !r.hasGID(info.GID):
		return mad.StatusRequestInvalid
	case info.Subscribe == 0:
		r.subscriptions = append(r.subscriptions[:at:at], r.subscriptions[at+1:]...)
	case at < 0 && len(r.subscriptions) >= maxKept:
		return mad.StatusNoResources
	case at < 0:
		r.subscriptions = append(r.subscriptions, i)
	}
	return mad.StatusOK
}

func (s *Subnet) hasGID(gid mad.GID) bool {
	for _, p := range s.lids {
		if p != nil && p.gid() == gid {
			return true
		}
	}
	return false
}

// findSubscriptions adds the subscriptions, without the queue pair, which only
// trusted requesters may see (IBA C15-0.2-1.16).
func (r *request) findSubscriptions(q *query) mad.Status {
	for i := range r.subscriptions {
		sub := &r.subscriptions[i]
		q.add(&mad.InformInfoRecord{SubscriberGID: sub.to.gid(), InformInfo: sub.info})
	}
	return mad.StatusOK
}

// report sends Reports of a notice to its subscribers.
func (s *Subnet) report(n *mad.Notice) {
	var data [noticeSize]byte
	n.Encode(data[:])
	for i := range s.subscriptions {
		to := s.subscriptions[i].to
		if !s.subscriptions[i].info.Matches(n) {
			continue
		}
		s.lastTID++
		c := s.accepting[acceptKey{to, mad.ClassSubnAdm, mad.MethodReport}]
		if at := forwardLID(s.sm, to.lid, false); c == nil || at == nil || at.endPort() != to {
			continue
		}
		var call engine.Call
		call.PutSA(mad.MethodReport, mad.AttrSubnAdmNotice.ID, 0, 0, data[:])
		h := call.Header()
		h.TID = s.lastTID
		h.Put(call.MAD[:])
		c.deliver(&packet{Address: engine.Address{LID: s.sm.lid, QP: 1}, mad: call.MAD})
	}
}
