package trial

import (
	"cmp"
	"context"
	"time"

	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Events is the outcome of the subscription to events.
type Events struct {
	Outcome  Outcome // of the subscription
	Detail   string
	Duration time.Duration
	// Traps are the received notices by trap number.
	Traps map[uint16]int
}

// events subscribes to all events at the subnet administrator, waits, and ends the
// subscription. That has an effect on this session only (mad.EffectSession): the subnet
// administrator forgets it afterwards.
func (t *trial) events(ctx context.Context) (err error) {
	ev := &t.report.Events
	ev.Duration, ev.Outcome, ev.Traps = t.RunOptions.Events, Unread, map[uint16]int{}
	if ev.Duration <= 0 {
		ev.Detail = "not requested"
		return nil
	}
	t.Progress("receiving events")
	var listener *engine.Listener
	if t.Recorded == nil {
		if listener, err = t.e.Listen(mad.ClassSubnAdm, mad.MethodReport, t.fromAdministrator); err != nil {
			ev.Outcome, ev.Detail = Unread, "this transport or host does not deliver Reports to fabsh"
			return nil
		}
		defer listener.Close()
	}
	if err := t.inform(ctx, ev, 1, true); err != nil || ev.Outcome != Answered {
		return err
	}
	err = t.inform(ctx, &Events{}, 0, true) // the traps of vendors
	if err == nil {
		err = t.Sleep(ctx, ev.Duration)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	for _, generic := range []uint8{1, 0} {
		t.inform(end, &Events{}, generic, false) // also when the trial was interrupted
	}
	if err != nil {
		return err
	}
	var notices []mad.Notice
	if listener != nil {
		notices = received(listener)
	} else {
		notices = t.Recorded()
	}
	for _, n := range notices {
		ev.Traps[n.TrapNumber]++
	}
	return nil
}

// inform subscribes to the traps of the specification (generic is 1) or of vendors (0), or
// ends the subscription.
func (t *trial) inform(ctx context.Context, ev *Events, generic uint8, subscribe bool) error {
	const respTime = 18 // 4.096 us << 18, 1.07 s
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, TrapNumber: mad.AllTraps, Type: mad.InformTypeAll, ProducerType: mad.ProducerTypeAll, IsGeneric: generic, RespTimeValue: respTime}
	var components []string
	for _, f := range mad.AttrInformInfo.Fields {
		if f.Mask() != 0 && !(subscribe && f.Script == "qpn") {
			components = append(components, f.Script)
		}
	}
	if info.Subscribe = 1; !subscribe {
		info.Subscribe, info.QPN = 0, max(1, t.e.Traits().QP)
	}
	call := &engine.Call{Subscribes: true}
	if err := t.Client.Put(call, &t.port, sa.NewRequest(mad.MethodSet, mad.AttrInformInfo, &info, components...)); err != nil {
		ev.Outcome, ev.Detail = Unread, "the local port does not have a subnet manager"
		return nil
	}
	if err := t.e.Do(ctx, call); err != nil {
		return err
	}
	var r Result
	r.judge(call.Err)
	ev.Outcome, ev.Detail = r.Outcome, r.Detail
	return nil
}

// fromAdministrator reports whether a Report came from the subnet administrator.
func (t *trial) fromAdministrator(d *engine.Datagram) bool {
	lid := cmp.Or(t.Client.SMLID, t.port.SMLID)
	at := engine.Address{LID: lid}
	return lid != 0 && at.SamePort(&d.Address, t.e.LMC(lid))
}

// received returns the notices that have arrived.
func received(l *engine.Listener) (list []mad.Notice) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // only what is there
	for {
		var d engine.Datagram
		dropped, err := l.Next(ctx, &d)
		switch {
		case err != nil:
			return list
		case dropped > 0:
			continue // the report counts what it has
		}
		var n mad.Notice
		n.Decode(d.MAD[mad.SADataOffset:])
		list = append(list, n)
	}
}
