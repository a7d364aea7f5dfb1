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

// How often the subnet manager is asked who it is, how often what it knows of
// our subscriptions, and how long it may be silent before that is told.
const (
	askEvery    = 5 * time.Second
	verifyEvery = time.Minute
	silentFor   = time.Minute
)

// manager is the subnet manager that has our subscriptions, as last seen.
type manager struct {
	lid, ours mad.LID // its, and the one of our port that it reports to
	info      *mad.SMInfo
	quiet     bool      // it answers no SMP, but the subnet administrator knows it
	heard     time.Time // when it last answered
	asked     time.Time // when it was last asked for our subscriptions
	doubt     bool      // it was away, and has not been asked since
	told      bool      // that it is silent
	pending   string    // why they must be made again
}

// watch sees to it that subscriptions last. An SM that starts knows nothing of
// those made with another; one that was away may have dropped them.
func (s *Subscriber) watch(ctx context.Context) {
	tick := time.NewTicker(askEvery)
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

// meet notes the subnet manager that got the first subscription.
func (m *manager) meet(ctx context.Context, s *Subscriber) error {
	if m.lid != 0 {
		return nil
	}
	port, lid, err := s.where()
	if err != nil {
		return err
	}
	now := time.Now()
	info, err := m.ask(ctx, s, lid)
	if ctx.Err() != nil {
		return err
	}
	m.lid, m.ours, m.info, m.heard, m.asked = lid, port.LID, info, now, now
	return nil
}

// where is the port, and the LID of the subnet administrator.
func (s *Subscriber) where() (engine.Port, mad.LID, error) {
	port, err := s.e.Port()
	if err != nil {
		return port, 0, err
	}
	var c engine.Call
	err = s.put(&c, &port, mad.MethodGet, mad.AttrSMInfoRecord, 0, nil)
	return port, c.To.LID, err
}

// check looks for a reason to subscribe again, and does so.
func (m *manager) check(ctx context.Context, s *Subscriber) {
	port, lid, err := s.where()
	if err != nil {
		m.silent(s) // no subnet manager; if the transport is gone, all is told elsewhere
		return
	}
	info, err := m.ask(ctx, s, lid)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		m.silent(s)
		return
	}
	now := time.Now()
	// ActCount need not go back where one has started anew: OpenSM counts the
	// SMPs it sent (osm_sminfo_rcv.c), and its first sweep may take more than
	// the old one had sent. Whenever it has been at work, it is asked.
	worked := info != nil && m.info != nil && info.ActCount != m.info.ActCount
	m.doubt = m.doubt || worked || now.Sub(m.heard) > 2*askEvery
	m.heard, m.told = now, false
	if reason := m.changed(&port, lid, info); reason != "" {
		m.pending = reason
	}
	m.lid, m.ours, m.info = lid, port.LID, info
	if m.pending == "" && (m.doubt || now.Sub(m.asked) >= verifyEvery) {
		m.asked = now
		known, err := s.known(ctx, &port)
		if errors.Is(err, engine.ErrTimeout) {
			return
		}
		m.doubt = false
		if err == nil && !known { // on an error it does not say
			m.pending = "the subnet administrator had forgotten the subscription"
		}
	}
	if m.pending != "" {
		m.renew(ctx, s)
	}
}

// renew subscribes again, and tells why. What is not answered is tried again.
func (m *manager) renew(ctx context.Context, s *Subscriber) {
	reason := m.pending + "; subscribed again, but what happened in between was not told"
	if err := s.set(ctx, s.all(), true); err != nil {
		var e *engine.Error
		if !errors.As(err, &e) || e.Err != nil {
			return
		}
		reason = fmt.Sprintf("%s, and it refuses to be subscribed to again: %v", m.pending, err)
	}
	s.lost(0, reason)
	m.pending, m.doubt, m.asked = "", false, time.Now()
}

// changed says what is no longer as it was when subscriptions were made.
func (m *manager) changed(port *engine.Port, lid mad.LID, info *mad.SMInfo) string {
	switch {
	case lid != m.lid:
		return fmt.Sprintf("the subnet manager is at LID %d now, no longer at %d", lid, m.lid)
	case port.LID != m.ours:
		return fmt.Sprintf("this port has LID %d now, no longer %d", port.LID, m.ours)
	case m.info == nil || info == nil:
		return ""
	case info.GUID != m.info.GUID:
		return fmt.Sprintf("another subnet manager, with GUID %v, is at LID %d", info.GUID, lid)
	case info.ActCount < m.info.ActCount:
		return fmt.Sprintf("the subnet manager at LID %d has started anew", lid)
	}
	return ""
}

// silent tells, once, that the subnet manager has been silent for long.
func (m *manager) silent(s *Subscriber) {
	if m.told || time.Since(m.heard) < silentFor {
		return
	}
	m.told = true
	s.lost(0, fmt.Sprintf("the subnet manager at LID %d has not answered for %v", m.lid, time.Since(m.heard).Round(time.Second)))
}

// ask asks the subnet manager who it is; where SMPs do not come through, as on
// virtual functions, the subnet administrator. A nil SMInfo without an error
// means that it answers, but does not say.
func (m *manager) ask(ctx context.Context, s *Subscriber, lid mad.LID) (*mad.SMInfo, error) {
	var c engine.Call
	info := new(mad.SMInfo)
	if !m.quiet {
		fabric.SMP(&c, fabric.Dest{LID: lid}, mad.MethodGet, mad.AttrSMInfo, 0, nil)
		if err := s.e.Do(ctx, &c); err != nil {
			return nil, err
		}
		if c.Err == nil {
			info.Decode(c.Data())
			return info, nil
		}
	}
	port, err := s.e.Port()
	if err != nil {
		return nil, err
	}
	var record mad.SMInfoRecord
	record.LID = lid
	data := make([]byte, mad.AttrSMInfoRecord.Size)
	record.Encode(data)
	if err := s.put(&c, &port, mad.MethodGet, mad.AttrSMInfoRecord, mad.AttrSMInfoRecord.Field("lid").Mask(), data); err != nil {
		return nil, err
	}
	if err := s.e.Do(ctx, &c); err != nil {
		return nil, err
	}
	var e *engine.Error
	refused := errors.As(c.Err, &e) && e.Err == nil // a status
	if c.Err != nil && !refused {
		return nil, c.Err
	}
	m.quiet = true
	if refused {
		return nil, nil
	}
	record.Decode(c.Data())
	return &record.SMInfo, nil
}

// all is what the subnet administrator is asked for.
func (s *Subscriber) all() []*inform {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.informs)
}

// known: the subnet administrator has all our subscriptions.
func (s *Subscriber) known(ctx context.Context, port *engine.Port) (bool, error) {
	subscriber := mad.InformInfoRecord{SubscriberGID: mad.MakeGID(port.GIDPrefix, port.PortGUID)}
	data := make([]byte, mad.AttrInformInfoRecord.Size)
	subscriber.Encode(data)
	var c engine.Call
	if err := s.put(&c, port, mad.MethodGetTable, mad.AttrInformInfoRecord, mad.AttrInformInfoRecord.Field("subscriber_gid").Mask(), data); err != nil {
		return false, err
	}
	if err := s.e.Do(ctx, &c); err != nil {
		return false, err
	}
	var e *engine.Error
	if errors.As(c.Err, &e) && e.Status == mad.StatusNoRecords && e.Err == nil {
		return false, nil
	}
	records, err := c.Records(mad.AttrInformInfoRecord.Size)
	if err != nil {
		return false, err
	}
	has := map[mad.InformInfo]bool{}
	for data := range records {
		var r mad.InformInfoRecord
		r.Decode(data)
		// Only who is trusted is told the queue pair (IBA C15-0.2-1.16).
		r.InformInfo.QPN, r.InformInfo.Subscribe = 0, 1
		has[r.InformInfo] = true
	}
	for _, in := range s.all() {
		if !has[in.info] {
			return false, nil
		}
	}
	return true, nil
}
