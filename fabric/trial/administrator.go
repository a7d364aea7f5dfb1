package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// maxTable is the maximum size of a table of records, in bytes: the tables of a large fabric
// are longer than a trial needs.
const maxTable = 1 << 20

// administrator reads the records of the subnet administrator: the records of each device, and
// whole tables, which come in many segments (RMPP).
func (t *trial) administrator(ctx context.Context) error {
	t.Progress("reading the subnet administrator")
	for _, a := range recordAttributes() {
		for _, method := range recordMethods(a) {
			if err := t.records(ctx, a, method); err != nil {
				return err
			}
		}
	}
	return nil
}

// mandatoryRecords are the records that subnet administrators must have (IBA table 15-3). They
// are read first.
var mandatoryRecords = []*mad.Attribute{
	mad.AttrSubnAdmClassPortInfo, mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrPathRecord, mad.AttrSMInfoRecord, mad.AttrLinkRecord, mad.AttrMCMemberRecord,
	mad.AttrServiceRecord, mad.AttrInformInfoRecord, mad.AttrGUIDInfoRecord, mad.AttrSwitchInfoRecord, mad.AttrLinearForwardingTableRecord,
	mad.AttrMulticastForwardingTableRecord, mad.AttrSLtoVLMappingTableRecord, mad.AttrVLArbitrationTableRecord, mad.AttrPKeyTableRecord, mad.AttrMultiPathRecord,
}

// recordAttributes returns the attributes of records in the order in which they are read.
func recordAttributes() []*mad.Attribute {
	list := slices.Clone(mandatoryRecords)
	for _, a := range mad.Attributes() {
		if a.Class == mad.ClassSubnAdm && a.Version == mad.ClassSubnAdm.Version() && len(recordMethods(a)) > 0 && !slices.Contains(mandatoryRecords, a) {
			list = append(list, a)
		}
	}
	return list
}

// recordMethods returns the methods by which the records of an attribute are read.
func recordMethods(a *mad.Attribute) (list []mad.Method) {
	for _, m := range []mad.Method{mad.MethodGet, mad.MethodGetTable, mad.MethodGetTraceTable, mad.MethodGetMulti} {
		if a.Effect(m) == mad.EffectRead {
			list = append(list, m)
		}
	}
	if slices.Contains(list, mad.MethodGetTable) {
		return []mad.Method{mad.MethodGetTable} // which a Get is a part of
	}
	return list
}

// records reads the records of an attribute: of each device where they have its LID, otherwise
// all.
func (t *trial) records(ctx context.Context, a *mad.Attribute, method mad.Method) error {
	ofLID := lidComponent(a)
	if ofLID == "" && !isPath(a) || a == mad.AttrNodeRecord {
		if err := t.query(ctx, nil, sa.Request{Method: method, Attr: a}); err != nil {
			return err
		}
	}
	if ofLID == "" && !isPath(a) {
		return nil
	}
	for _, d := range t.report.devices() {
		if d.Unread != "" || d.LID() == 0 {
			continue
		}
		r := sa.Request{Method: method, Attr: a, Record: make([]byte, max(a.Size, mad.AttrPathRecord.Size))}
		set := func(name string, v uint64) {
			f := a.Field(name)
			f.SetUint(r.Record, v)
			r.Mask |= f.Mask()
		}
		switch {
		case a == mad.AttrMultiPathRecord:
			t.multiPath(&r, d)
		case isPath(a):
			of := mad.AttrPathRecord // the components of a TraceRecord's request, too (opa-ff FillSADetailsForTraceRecord)
			for name, v := range map[string]uint64{"slid": uint64(t.port.LID), "dlid": uint64(d.LID()), "numb_path": 1} {
				of.Field(name).SetUint(r.Record, v)
				r.Mask |= of.Field(name).Mask()
			}
		default:
			set(ofLID, uint64(d.LID()))
		}
		if err := t.query(ctx, d, r); err != nil {
			return err
		}
		if last := t.report.Records[len(t.report.Records)-1]; last.Outcome == TimedOut {
			return nil // requests for other devices would, too
		}
	}
	return nil
}

// lidComponent returns the component of a record that is the LID of its device, or "".
func lidComponent(a *mad.Attribute) string {
	for _, name := range []string{"endport_lid", "from_lid", "lid"} {
		if f := a.Field(name); f != nil && f.Mask() != 0 && a != mad.AttrSMInfoRecord {
			return name
		}
	}
	return ""
}

// isPath reports whether records are requested by the ends of a path.
func isPath(a *mad.Attribute) bool {
	return a == mad.AttrPathRecord || a == mad.AttrTraceRecord || a == mad.AttrMultiPathRecord
}

// multiPath makes r the request for the paths from the local port to a device.
func (t *trial) multiPath(r *sa.Request, d *Device) {
	from, to := mad.MakeGID(t.port.GIDPrefix, t.port.PortGUID), d.port.GID()
	r.Record = append(make([]byte, mad.AttrMultiPathRecord.Field("sdgid").Offset/8), append(from[:], to[:]...)...)
	for _, name := range []string{"sgid_count", "dgid_count", "numb_path"} {
		f := mad.AttrMultiPathRecord.Field(name)
		f.SetUint(r.Record, 1)
		r.Mask |= f.Mask()
	}
}

// query sends one request to the subnet administrator, of device d or, if it is nil, for all
// records.
func (t *trial) query(ctx context.Context, d *Device, r sa.Request) error {
	res := &Result{Class: r.Attr.Class.String(), Attribute: r.Attr.Name, Place: "all records", attr: r.Attr}
	if d != nil {
		res.Place = "of " + d.Name
	}
	t.report.Records = append(t.report.Records, res)
	if t.report.saTimeouts >= maxTimeouts {
		res.Outcome, res.Detail = Unread, fmt.Sprintf("%d requests to the subnet administrator timed out", maxTimeouts)
		return nil
	}
	call := new(engine.Call)
	if err := t.Client.Put(call, &t.port, r); err != nil {
		res.Outcome, res.Detail = Unread, "the local port does not have a subnet manager"
		return nil
	}
	if r.Method == mad.MethodGetMulti {
		call.Payload = r.Record
	}
	call.MaxTable = maxTable
	if err := t.e.Do(ctx, call); err != nil {
		return err
	}
	records, err := sa.Records(call, cmp.Or(r.Attr.Answer, r.Attr))
	if res.judge(err); res.Outcome == TimedOut {
		t.report.saTimeouts++
	}
	if err != nil {
		if errors.Is(err, engine.ErrCut) {
			res.Outcome, res.Detail = Refused, "the transport cannot carry long tables"
		}
		return nil
	}
	n := 0
	for data := range records {
		n++
		if d != nil {
			for _, c := range t.compareRecord(d, r.Attr, data) {
				addComparison(&t.report.Comparisons, c)
			}
		}
	}
	res.Count = n
	return nil
}

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
		notices = receivedNotices(listener)
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

// receivedNotices returns the notices that have arrived.
func receivedNotices(l *engine.Listener) (list []mad.Notice) {
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
