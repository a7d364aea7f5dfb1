package sa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

const (
	// queryInterval is the interval at which the subnet manager is queried for its identity.
	queryInterval = 5 * time.Second
	// verifyInterval is the interval at which the subscriptions that the subnet
	// administrator has are verified.
	verifyInterval = time.Minute
	// silenceLimit is how long neither answers before that is an event.
	silenceLimit = time.Minute
)

// manager is the subnet manager that has our subscriptions, as last seen.
type manager struct {
	lid         mad.LID // its own
	localLID    mad.LID // of our port, where it sends reports
	info        *mad.SMInfo
	noSMP       bool      // it answers no SMP, but the subnet administrator knows it
	answered    time.Time // its latest answer
	verified    time.Time // the latest comparison of the subscriptions
	recheck     bool      // it may have lost the subscriptions since verified
	silent      bool      // it was reported that it does not answer
	renewReason string    // why the subscriptions must be renewed; "": they need not
}

// watch renews subscriptions that were lost. A subnet manager that starts knows
// no subscriptions that were made with another; one that was away may have dropped them.
func (s *Subscriber) watch(ctx context.Context) {
	tick := time.NewTicker(queryInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		release, err := s.acquire(ctx)
		if err != nil {
			return
		}
		s.manager.check(ctx, s)
		release()
	}
}

// begin notes the subnet manager that got the first subscription.
func (m *manager) begin(ctx context.Context, s *Subscriber) error {
	if m.lid != 0 {
		return nil
	}
	port, lid, err := s.administrator()
	if err != nil {
		return err
	}
	now := time.Now()
	info, err := m.ask(ctx, s, lid)
	if ctx.Err() != nil {
		return err
	}
	m.lid, m.localLID, m.info, m.answered, m.verified = lid, port.LID, info, now, now
	return nil
}

// administrator is the local port, and the LID of the subnet administrator. From
// now on only the reports that come from there count.
func (s *Subscriber) administrator() (engine.Port, mad.LID, error) {
	port, err := s.e.Port()
	if err != nil {
		return port, 0, err
	}
	to, err := s.client.address(&port)
	if err == nil {
		s.source.Store(uint32(to.LID))
	}
	return port, to.LID, err
}

// check finds whether the subscriptions may be lost, and renews them if so.
func (m *manager) check(ctx context.Context, s *Subscriber) {
	port, lid, err := s.administrator()
	if err != nil {
		m.noAnswer(s) // no subnet manager; if the transport is gone, receive reports it
		return
	}
	info, err := m.ask(ctx, s, lid)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		m.noAnswer(s)
		return
	}
	now := time.Now()
	// ActCount may be higher after a restart too: OpenSM counts the SMPs it
	// sent (osm_sminfo_rcv.c), and its first sweep may take more than the old
	// one had sent. So whenever it has changed, the subscriptions are verified.
	active := info != nil && m.info != nil && info.ActCount != m.info.ActCount
	m.recheck = m.recheck || active || now.Sub(m.answered) > 2*queryInterval
	m.answered, m.silent = now, false
	if reason := m.changed(&port, lid, info); reason != "" {
		m.renewReason = reason
	}
	m.lid, m.localLID, m.info = lid, port.LID, info
	if m.renewReason == "" && (m.recheck || now.Sub(m.verified) >= verifyInterval) {
		m.verified = now
		complete, err := s.verify(ctx, &port)
		if errors.Is(err, engine.ErrTimeout) {
			return
		}
		m.recheck = false
		if err == nil && !complete { // an error shows nothing about the subscriptions
			m.renewReason = "the subnet administrator had lost the subscription"
		}
	}
	if m.renewReason != "" {
		m.renew(ctx, s)
	}
}

// renew makes the subscriptions again, and reports why. If the Sets time out, the
// next check does so.
func (m *manager) renew(ctx context.Context, s *Subscriber) {
	reason := m.renewReason + "; subscribed again, but events in between were not reported"
	if err := s.set(ctx, s.allInforms(), true); err != nil {
		if e, ok := errors.AsType[*engine.Error](err); !ok || e.Err != nil {
			return
		}
		reason = fmt.Sprintf("%s, and subscribing again failed: %v", m.renewReason, err)
	}
	s.lost(0, reason)
	m.renewReason, m.recheck, m.verified = "", false, time.Now()
}

// changed describes what differs from when the subscriptions were made.
func (m *manager) changed(port *engine.Port, lid mad.LID, info *mad.SMInfo) string {
	switch {
	case lid != m.lid:
		return fmt.Sprintf("the subnet manager moved from LID %[2]d to LID %[1]d", lid, m.lid)
	case port.LID != m.localLID:
		return fmt.Sprintf("this port's LID changed from %[2]d to %[1]d", port.LID, m.localLID)
	case m.info == nil || info == nil:
		return ""
	case info.GUID != m.info.GUID:
		return fmt.Sprintf("another subnet manager, with GUID %v, is at LID %d", info.GUID, lid)
	case info.ActCount < m.info.ActCount:
		return fmt.Sprintf("the subnet manager at LID %d has restarted", lid)
	}
	return ""
}

// noAnswer reports, once, that the subnet manager has not answered for long.
func (m *manager) noAnswer(s *Subscriber) {
	if m.silent || time.Since(m.answered) < silenceLimit {
		return
	}
	m.silent = true
	s.lost(0, fmt.Sprintf("the subnet manager at LID %d has not answered for %v", m.lid, time.Since(m.answered).Round(time.Second)))
}

// ask queries the subnet manager at lid for its SMInfo; where it answers no SMP, as from
// virtual functions, the subnet administrator. A nil SMInfo without an error
// means that it answers, but without SMInfo.
func (m *manager) ask(ctx context.Context, s *Subscriber, lid mad.LID) (*mad.SMInfo, error) {
	if !m.noSMP {
		var c engine.Call
		fabric.Dest{LID: lid}.Put(&c, mad.MethodGet, mad.AttrSMInfo, 0, nil)
		if err := s.e.Do(ctx, &c); err != nil {
			return nil, err
		}
		if c.Err == nil {
			info := new(mad.SMInfo)
			info.Decode(c.Data())
			return info, nil
		}
	}
	data, err := s.client.Query(ctx, NewRequest(mad.MethodGet, mad.AttrSMInfoRecord, &mad.SMInfoRecord{LID: lid}, "lid"))
	var e *engine.Error
	switch {
	case errors.As(err, &e) && e.Err == nil: // a status
		m.noSMP = true
		return nil, nil
	case err != nil:
		return nil, err
	}
	m.noSMP = true
	var record mad.SMInfoRecord
	record.Decode(data)
	return &record.SMInfo, nil
}

// allInforms are all subscriptions at the subnet administrator.
func (s *Subscriber) allInforms() []*inform {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.informs)
}

// verify reports whether the subnet administrator has all subscriptions of the local port.
func (s *Subscriber) verify(ctx context.Context, port *engine.Port) (bool, error) {
	subscriber := mad.InformInfoRecord{SubscriberGID: mad.MakeGID(port.GIDPrefix, port.PortGUID)}
	records, err := s.client.Table(ctx, NewRequest(mad.MethodGetTable, mad.AttrInformInfoRecord, &subscriber, "subscriber_gid"))
	if err != nil {
		return false, err
	}
	has := map[mad.InformInfo]bool{}
	for data := range records {
		var r mad.InformInfoRecord
		r.Decode(data)
		// Only trusted requesters get the queue pair (IBA C15-0.2-1.16).
		r.InformInfo.QPN, r.InformInfo.Subscribe = 0, 1
		has[r.InformInfo] = true
	}
	for _, in := range s.allInforms() {
		if !has[in.info] {
			return false, nil
		}
	}
	return true, nil
}
