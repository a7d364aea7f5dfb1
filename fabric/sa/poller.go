package sa

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

const (
	pollInterval = 5 * time.Second
	findInterval = time.Minute // devices to poll
)

// poller reads the notices of devices without traps. Such a device keeps its latest notice,
// which SubnGet(Notice) reads. NoticeCount has how many there were since one was cleared, and
// the toggle changes with each that is (IBA 13.4.9).
type poller struct {
	s     *Subscriber
	lids  []mad.LID                    // of the devices
	found time.Time                    // when they were found
	last  map[mad.LID][noticeSize]byte // notices, as they were read last
}

// startPolling begins to poll. Notices of before are not reported.
func (s *Subscriber) startPolling(ctx context.Context) error {
	s.mu.Lock()
	polls := s.cancel != nil
	s.mu.Unlock()
	if polls {
		return nil
	}
	p := &poller{s: s, last: map[mad.LID][noticeSize]byte{}}
	if err := p.find(ctx); err != nil {
		return err
	}
	p.round(ctx)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return engine.ErrClosed
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.running = cancel, new(sync.WaitGroup)
	s.running.Go(func() { p.run(ctx) })
	return nil
}

func (p *poller) run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(p.found) >= findInterval {
			if err := p.find(ctx); err != nil && ctx.Err() == nil {
				p.found = time.Now()
				p.s.lost(0, fmt.Sprintf("devices without traps that are new are not polled: %v", err))
			}
		}
		p.round(ctx)
	}
}

// find queries the subnet administrator for the end ports that keep notices and send no traps.
func (p *poller) find(ctx context.Context) error {
	rec := mad.PortInfoRecord{PortInfo: mad.PortInfo{CapabilityMask: mad.CapabilityMaskIsNoticeSupported}}
	r := NewRequest(mad.MethodGetTable, mad.AttrPortInfoRecord, &rec, "capability_mask")
	r.Modifier = 1 << 31 // at least these capabilities
	records, err := p.s.poll.Table(ctx, r)
	if err != nil {
		return err
	}
	p.lids = p.lids[:0]
	for b := range records {
		var rec mad.PortInfoRecord
		rec.Decode(b)
		capabilities := rec.PortInfo.CapabilityMask
		// An administrator that does not know the modifier gives none, or others.
		if capabilities&mad.CapabilityMaskIsNoticeSupported != 0 && capabilities&mad.CapabilityMaskIsTrapSupported == 0 && rec.EndportLID != 0 && !slices.Contains(p.lids, rec.EndportLID) {
			p.lids = append(p.lids, rec.EndportLID)
		}
	}
	p.found = time.Now()
	return nil
}

// round reads the notices of all devices, and reports the notices that changed since the last
// round.
func (p *poller) round(ctx context.Context) {
	calls := make([]*engine.Call, len(p.lids))
	for i, lid := range p.lids {
		calls[i] = new(engine.Call)
		calls[i].PutSMP(mad.MethodGet, mad.AttrSubnNotice.ID, 0, nil)
		calls[i].SetLID(lid)
	}
	if p.s.e.Do(ctx, calls...) != nil {
		return
	}
	for i, c := range calls {
		if c.Err != nil {
			continue // it is asked again
		}
		var data [noticeSize]byte
		copy(data[:mad.AttrSubnNotice.Size], c.Data())
		last, known := p.last[p.lids[i]]
		p.last[p.lids[i]] = data
		if known && data != last {
			p.report(p.lids[i], &data, &last)
		}
	}
}

// report delivers a notice; last is the notice of the round before.
func (p *poller) report(lid mad.LID, data, last *[noticeSize]byte) {
	var now, before mad.Notice
	now.Decode(data[:])
	before.Decode(last[:])
	if now.Type == mad.NoticeTypeEmpty {
		return
	}
	missing := int(now.NoticeCount) - 1
	if now.NoticeToggle == before.NoticeToggle && before.Type != mad.NoticeTypeEmpty {
		missing -= int(before.NoticeCount)
	}
	if missing > 0 {
		p.s.lost(uint64(missing), fmt.Sprintf("the agent of LID %d keeps its latest notice only", lid))
	}
	p.s.mu.Lock()
	subs := sharing(p.s.matching(&now))
	p.s.mu.Unlock()
	for _, sub := range subs {
		sub.push(Event{Class: mad.ClassSubn, Source: lid, Notice: *data})
	}
}
