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
			s.lost(dropped, fmt.Sprintf("%d came faster than they could be taken", dropped))
		default:
			s.handOut(&d)
		}
	}
}

// handOut gives a report to those who subscribed to it. An event that fits
// several subscriptions is reported once for each, in equal reports that do not
// say for which: the first is for the first subscription, and so on. A report
// that fits none is for all: the subnet administrator must know why it sent it.
func (s *Subscriber) handOut(d *engine.Datagram) {
	h := mad.ParseHeader(d.MAD)
	if h.Attribute != mad.AttrSubnAdmNotice.ID {
		return
	}
	var data [noticeSize]byte // of a trap, without the issuer's GID
	copy(data[:], d.MAD[h.Class.DataOffset():][:h.Class.DataSize()])
	var n mad.Notice
	n.Decode(data[:])
	s.mu.Lock()
	var fitting []*inform
	for _, in := range s.informs {
		if in.info.Matches(&n) {
			fitting = append(fitting, in)
		}
	}
	switch {
	case len(fitting) == 0 && s.client != nil:
		fitting = s.informs
	case len(fitting) > 1 && s.client != nil:
		i := s.copies[n]
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
		sub.push(Event{Class: h.Class.Family(), Notice: data})
	}
}

// noticeSize is the length of a Notice with the issuer's GID.
const noticeSize = 80

// lost tells all subscriptions that events may be missing.
func (s *Subscriber) lost(count uint64, reason string) {
	s.mu.Lock()
	clear(s.copies)
	s.mu.Unlock()
	for _, sub := range s.subscriptions() {
		sub.push(Event{Lost: reason, Count: count})
	}
}
