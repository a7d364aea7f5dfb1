package sa

import (
	"context"
	"fmt"
	"slices"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// receive hands out what arrives.
func (s *Subscriber) receive(ctx context.Context, l *engine.Listener) {
	var d engine.Datagram
	for {
		dropped, err := l.Next(ctx, &d)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			for _, sub := range s.subscriptions() {
				sub.end(err)
			}
			return
		case dropped > 0:
			s.lost(dropped, fmt.Sprintf("%d arrived faster than they could be read", dropped))
		default:
			if !s.handOut(&d) {
				l.Foreign()
			}
		}
	}
}

// counts reports whether d, a Report, comes from the subnet administrator; a trap comes from the
// port that it says has issued it. The engine calls it, with its lock held.
func (s *Subscriber) counts(d *engine.Datagram) bool {
	is := func(lid mad.LID) bool {
		a := engine.Address{LID: lid}
		return lid != 0 && lid != mad.PermissiveLID && a.SamePort(&d.Address, s.e.LMC(lid))
	}
	if s.client == nil {
		n := noticeOf(d)
		return is(n.IssuerLID)
	}
	return is(mad.LID(s.source.Load())) || is(mad.LID(s.redirected.Load()))
}

// noticeOf is the notice in a Report or a trap.
func noticeOf(d *engine.Datagram) (n mad.Notice) {
	data := noticeData(d)
	n.Decode(data[:])
	return n
}

// noticeData are its bytes; of a trap, without the issuer's GID.
func noticeData(d *engine.Datagram) (data [noticeSize]byte) {
	class := mad.Class(d.MAD[mad.ClassOffset])
	if at := class.DataOffset(); at < len(d.MAD) {
		copy(data[:min(noticeSize, class.DataSize())], d.MAD[at:])
	}
	return data
}

// maxCopies is of how many events some reports are waited for, at most: more than
// are on their way at a time.
const maxCopies = 1024

// handOut gives a report to its subscribers, and reports whether it has any. An
// event that fits several subscriptions is reported once for each, in equal
// reports that do not show for which: the first is for the first subscription, and
// so on.
func (s *Subscriber) handOut(d *engine.Datagram) (asked bool) {
	h := mad.ParseHeader(d.MAD)
	if h.Attribute != mad.AttrSubnAdmNotice.ID {
		return false
	}
	n := noticeOf(d)
	s.mu.Lock()
	var fitting []*inform
	for _, in := range s.informs {
		if in.info.Matches(&n) {
			fitting = append(fitting, in)
		}
	}
	if len(fitting) > 1 && s.client != nil {
		i, open := s.copies[n]
		if !open && len(s.copies) >= maxCopies {
			clear(s.copies)
		}
		if s.copies[n]++; i+1 == len(fitting) {
			delete(s.copies, n)
		}
		fitting = fitting[i : i+1]
	}
	var subs []*Subscription
	for _, in := range fitting {
		for _, sub := range in.subs {
			if !slices.Contains(subs, sub) {
				subs = append(subs, sub)
			}
		}
	}
	s.mu.Unlock()
	for _, sub := range subs {
		sub.push(Event{Class: h.Class.Family(), Source: d.LID, Notice: noticeData(d)})
	}
	return len(subs) > 0
}

// noticeSize is the length of a Notice with the issuer's GID.
const noticeSize = 80

// lost notifies all subscriptions that events may be missing.
func (s *Subscriber) lost(count uint64, reason string) {
	s.mu.Lock()
	clear(s.copies)
	s.mu.Unlock()
	for _, sub := range s.subscriptions() {
		sub.push(Event{Lost: reason, Count: count})
	}
}
