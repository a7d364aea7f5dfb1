package sim

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// everything subscribes to all notices of the specification.
func everything() mad.InformInfo {
	return mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.InformTypeAll,
		TrapNumber: mad.AllTraps, ProducerType: mad.ProducerTypeAll}
}

// inform sends a subscription from c, and returns the status of the answer.
func (r *rig) inform(c *program, info mad.InformInfo, smKey byte) mad.Status {
	r.t.Helper()
	call := saCall(mad.MethodSet, mad.AttrInformInfo, 0, 0, encode(&info), r.state.SM.LID)
	call.MAD[mad.SAKeyOffset+7] = smKey
	if !c.ask(r.t, call) {
		r.t.Fatal("no answer")
	}
	if diff := cmp.Diff(encode(&info)[:36], call.Data()[:36]); diff != "" {
		r.t.Errorf("the answer is not the question (-want +got)\n%s", diff)
	}
	return call.Header().Status
}

// accept makes c accept requests of a class and method.
func (r *rig) accept(c *program, class mad.Class, m mad.Method) {
	r.t.Helper()
	if _, err := c.Accept(class, m); err != nil {
		r.t.Fatal(err)
	}
}

// events are the requests that came to c, as text; nodes are named by their LID.
func (r *rig) events(c *program) []string {
	names := map[string]string{}
	for i := range r.state.Nodes {
		for _, p := range r.state.Nodes[i].EndPorts() {
			names[p.GID().String()] = strings.Split(r.state.Nodes[i].Label, `"`)[1]
		}
	}
	var list []string
	for c.Waiting() > 0 {
		var d engine.Datagram
		if err := c.Recv(&d); err != nil {
			r.t.Fatal(err)
		}
		h := mad.ParseHeader(d.MAD)
		var n mad.Notice
		n.Decode(append(append([]byte(nil), d.MAD[h.Class.DataOffset():]...), make([]byte, 80)...))
		var gid mad.NoticeGID
		gid.Decode(n.DataDetails[:])
		var sw mad.NoticeSwitch
		sw.Decode(n.DataDetails[:])
		text := fmt.Sprintf("%s %d %d: trap %d of LID %d", h.Method.Name(h.Class, h.ClassVersion), h.TID, d.LID, n.TrapNumber, n.IssuerLID)
		if n.IssuerGID != (mad.GID{}) {
			text += " " + names[n.IssuerGID.String()]
		}
		if n.TrapNumber == 128 {
			text += fmt.Sprintf(", switch %d", sw.LIDAddr)
		} else {
			text += ", " + names[gid.GIDAddr.String()]
		}
		list = append(list, text)
	}
	return list
}

// A notice is reported once for each subscription that matches, and not to a port
// where no program accepts Reports.
func TestInform(t *testing.T) {
	r := newRig(t, "ring:n=3")
	r.accept(r.conn, mad.ClassSubnAdm, mad.MethodReport)
	one := func(change func(i *mad.InformInfo)) mad.InformInfo {
		i := everything()
		change(&i)
		return i
	}
	gid := r.at("switch-2", 0).GID()
	for _, c := range []struct {
		name    string
		info    mad.InformInfo
		reports int // of trap 128 from switch 2, trap 65
	}{
		{"all", everything(), 2},
		{"trap 128", one(func(i *mad.InformInfo) { i.TrapNumber = 128 }), 1},
		{"trap 64", one(func(i *mad.InformInfo) { i.TrapNumber = 64 }), 0},
		{"a vendor's", one(func(i *mad.InformInfo) { i.IsGeneric = 0 }), 0},
		{"urgent", one(func(i *mad.InformInfo) { i.Type = mad.InformTypeUrgent }), 1},
		{"of switches", one(func(i *mad.InformInfo) { i.ProducerType = mad.ProducerTypeSwitch }), 1},
		{"of CAs", one(func(i *mad.InformInfo) { i.ProducerType = mad.ProducerTypeCA }), 0},
		{"LID", one(func(i *mad.InformInfo) { i.LIDRangeBegin, i.LIDRangeEnd = 2, 2 }), 1},
		{"LIDs around it", one(func(i *mad.InformInfo) { i.LIDRangeBegin, i.LIDRangeEnd = 1, 3 }), 1},
		{"LIDs, the subnet manager's too", one(func(i *mad.InformInfo) { i.LIDRangeBegin, i.LIDRangeEnd = 2, 4 }), 2},
		{"LIDs above", one(func(i *mad.InformInfo) { i.LIDRangeBegin, i.LIDRangeEnd = 5, 9 }), 0},
		{"GID", one(func(i *mad.InformInfo) { i.GID, i.LIDRangeBegin = gid, 0 }), 1},
	} {
		if s := r.inform(r.conn, c.info, 0); s != 0 {
			t.Errorf("%s: subscribe: %v", c.name, s)
		}
		r.Cables.Unlink(r.named("switch-2").GUID(), 1)
		if got := r.events(r.conn); len(got) != c.reports {
			t.Errorf("%s: %q, want %d", c.name, got, c.reports)
		}
		c.info.Subscribe = 0
		if s := r.inform(r.conn, c.info, 0); s != 0 {
			t.Errorf("%s: unsubscribe: %v", c.name, s)
		}
		if s := r.inform(r.conn, c.info, 0); s != mad.StatusRequestInvalid {
			t.Errorf("%s: unsubscribe again: %v", c.name, s)
		}
		r.Cables.Link(r.named("switch-2").GUID(), 1)
		if got := r.events(r.conn); got != nil {
			t.Errorf("%s: still %q", c.name, got)
		}
	}
	security := one(func(i *mad.InformInfo) { i.TrapNumber = 256 })
	if s := r.inform(r.conn, security, 0); s != mad.StatusRequestInvalid {
		t.Errorf("security traps, not trusted: %v", s)
	}
	if s := r.inform(r.conn, security, 1); s != 0 {
		t.Errorf("security traps: %v", s)
	}
	if s := r.inform(r.conn, one(func(i *mad.InformInfo) { i.Subscribe = 2 }), 0); s != mad.StatusRequestInvalid {
		t.Errorf("subscribe 2: %v", s)
	}
	if s := r.inform(r.conn, one(func(i *mad.InformInfo) { i.GID[15] = 9 }), 0); s != mad.StatusRequestInvalid {
		t.Errorf("GID of nobody: %v", s)
	}
}

// Subscriptions are records, until the subnet manager restarts.
func TestInformRecords(t *testing.T) {
	r := newRig(t, "ring:n=3")
	far := r.attach("node-0003 HCA-1")
	other := everything()
	other.TrapNumber = 128
	for range 2 { // a repeated subscription is one
		r.inform(r.conn, everything(), 0)
		r.inform(far, other, 0)
	}
	e := r.engine(engine.Options{})
	count := func() (list []string) {
		for _, data := range r.records(e, mad.AttrInformInfoRecord, 0, 0, nil) {
			var rec mad.InformInfoRecord
			rec.Decode(data)
			list = append(list, fmt.Sprintf("%x trap %d", rec.SubscriberGID.GUID()&0xff, rec.InformInfo.TrapNumber))
		}
		return list
	}
	want := []string{
		fmt.Sprintf("%x trap 65535", r.at("node-0001 HCA-1", 1).GUID&0xff),
		fmt.Sprintf("%x trap 128", r.at("node-0003 HCA-1", 1).GUID&0xff),
	}
	if diff := cmp.Diff(want, count()); diff != "" {
		t.Errorf("records (-want +got)\n%s", diff)
	}
	info := func() (lid mad.LID, act uint32) {
		c := saCall(mad.MethodGet, mad.AttrSMInfoRecord, 0, 0, nil, r.state.SM.LID)
		do(t, e, c)
		var rec mad.SMInfoRecord
		rec.Decode(c.Data())
		return rec.LID, rec.SMInfo.ActCount
	}
	r.Cables.Unlink(r.named("switch-2").GUID(), 1)
	if lid, act := info(); lid != 4 || act != 2 {
		t.Errorf("after a sweep: LID %d, ActCount %d", lid, act)
	}
	if err := r.SM.Restart(0); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != nil {
		t.Errorf("after a restart: %q", got)
	}
	if lid, act := info(); lid != 4 || act != 1 {
		t.Errorf("after a restart: LID %d, ActCount %d", lid, act)
	}
	if err := r.SM.Restart(r.named("node-0003 HCA-1").GUID()); err != nil {
		t.Fatal(err)
	}
	if lid, act := info(); lid != 6 || act != 1 {
		t.Errorf("elsewhere: LID %d, ActCount %d", lid, act)
	}
	var is []string
	for i := range r.state.Nodes {
		for _, p := range r.state.Nodes[i].EndPorts() {
			var info mad.PortInfo
			info.Decode(p.Info[:])
			if is = append(is, fmt.Sprint(info.MasterSMLID)); info.CapabilityMask&mad.CapabilityMaskIsSM != 0 {
				is = append(is, "here")
			}
		}
	}
	if got := strings.Join(is, " "); got != "6 6 6 6 6 6 here" {
		t.Errorf("the ports say %s", got)
	}
}

// A program that accepts traps gets the traps of agents whose MasterSMLID is its
// LID.
func TestAcceptTraps(t *testing.T) {
	r := newRig(t, "ring:n=3")
	far := r.attach("node-0003 HCA-1")
	if _, err := r.conn.Accept(mad.ClassSubn, mad.MethodTrap); err == nil {
		t.Error("the subnet manager's port gave its traps away")
	}
	stop, err := far.Accept(mad.ClassSubn, mad.MethodTrap)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := far.Accept(mad.ClassSubn, mad.MethodTrap); err == nil {
		t.Error("they were given away twice")
	}
	var info mad.PortInfo
	p := r.at("switch-2", 0)
	info.Decode(p.Info[:])
	info.MasterSMLID = 6
	p.SetInfo(&info)
	sw := r.named("switch-2").GUID()
	r.Cables.Unlink(sw, 1)
	if diff := cmp.Diff([]string{"Trap 1 2: trap 128 of LID 2, switch 2"}, r.events(far)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	stop()
	r.Cables.Link(sw, 1)
	if got := r.events(far); got != nil {
		t.Errorf("afterwards: %q", got)
	}
}

// A Set that takes a link down, or makes it train again, causes traps too.
func TestSetTells(t *testing.T) {
	r := newRig(t, "ring:n=3")
	r.accept(r.conn, mad.ClassSubnAdm, mad.MethodReport)
	r.inform(r.conn, everything(), 0)
	info := r.portInfo(1, mad.LID(2))
	for _, c := range []struct {
		name string
		set  func(i *mad.PortInfo)
		told int
	}{
		{"nothing", func(i *mad.PortInfo) {}, 0},
		{"bounce", func(i *mad.PortInfo) { i.PortState = mad.PortStateDown }, 1},
		{"disable", func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysicalStateDisabled }, 1},
		{"disable again", func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysicalStateDisabled }, 0},
		{"enable", func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysicalStatePolling }, 1},
	} {
		next := info
		next.PortState, next.PortPhysicalState = 0, 0
		c.set(&next)
		call := smp(mad.MethodSet, mad.AttrPortInfo, 1, mad.LID(2), encode(&next)[:64])
		if err := r.conn.Send(&engine.Datagram{Address: call.To, MAD: call.MAD[:]}); err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, e := range r.events(r.conn) {
			if strings.Contains(e, "trap 128 of LID 2 switch-2") {
				told++
			}
		}
		if told != c.told {
			t.Errorf("%s: told %d times, want %d", c.name, told, c.told)
		}
	}
}

// traps has node-0008 take the traps of leaf-4.
func (r *rig) traps() *program {
	c := r.attach("node-0008 HCA-1")
	r.accept(c, mad.ClassSubn, mad.MethodTrap)
	portInfoSMLIDField.SetUint(r.at("leaf-4", 0).Info[:], uint64(r.lid("node-0008 HCA-1")))
	return c
}

// TestRepress: a trap comes again and again, until it is repressed.
func TestRepress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, small)
		c := r.traps()
		r.state.SM.Node.Off = true // so that it does not sweep
		if err := r.Cables.Unlink(r.named("leaf-4").GUID(), 1); err != nil {
			t.Fatal(err)
		}
		const one = "Trap 1 4: trap 128 of LID 4, switch 4"
		time.Sleep(2500 * time.Millisecond)
		if diff := cmp.Diff([]string{one, one, one}, r.events(c)); diff != "" {
			t.Errorf("in 2.5 s (-want +got)\n%s", diff)
		}
		repress := func(tid uint64, number uint16) {
			n := mad.Notice{IsGeneric: true, TrapNumber: number}
			call := smp(mad.MethodTrapRepress, mad.AttrSubnNotice, 0, r.lid("leaf-4"), encode(&n)[:state.SMPSize])
			h := call.Header()
			h.TID = tid
			h.Put(call.MAD[:])
			if c.ask(t, call) {
				t.Error("TrapRepress was answered")
			}
		}
		repress(2, 128)
		repress(1, 129)
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{one}, r.events(c)); diff != "" {
			t.Errorf("others were repressed (-want +got)\n%s", diff)
		}
		repress(1, 128)
		time.Sleep(time.Minute)
		if got := r.events(c); got != nil {
			t.Errorf("after TrapRepress: %q", got)
		}
		if err := r.Cables.Unlink(r.named("leaf-4").GUID(), 2); err == nil { // its subnet manager's own
			time.Sleep(time.Hour)
		}
		r.state.Lock()
		repeated := len(r.Notices.Repeated)
		r.state.Unlock()
		if got := r.events(c); got != nil || repeated != 0 {
			t.Errorf("%q; %d traps are repeated for ever", got, repeated)
		}
	})
}

// TestTrap144Repeats: trap 144 is sent again at intervals of SubnetTimeOut, 8 times, until a
// TrapRepress with its transaction answers it.
func TestTrap144Repeats(t *testing.T) {
	for _, repressed := range []int{0, 1, 3} { // after so many; 0: never
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, small)
			c := r.traps()
			interval := 4096 * time.Nanosecond << r.at("leaf-4", 0).PortInfo().SubnetTimeOut
			if err := r.Notices.SendTrap(144, r.named("leaf-4").GUID(), 0, nil); err != nil {
				t.Fatal(err)
			}
			var got, want []string
			time.Sleep(interval / 2)
			for n := range 12 {
				for _, e := range r.events(c) {
					got = append(got, fmt.Sprint(n, ": ", e))
				}
				if n < 9 && (repressed == 0 || n < repressed) {
					want = append(want, fmt.Sprint(n, ": Trap 1 4: trap 144 of LID 4, "))
				}
				if n+1 == repressed {
					call := smp(mad.MethodTrapRepress, mad.AttrSubnNotice, 0, r.lid("leaf-4"), encode(&mad.Notice{IsGeneric: true, TrapNumber: 144})[:state.SMPSize])
					h := call.Header()
					h.TID = 1
					h.Put(call.MAD[:])
					c.ask(t, call)
				}
				time.Sleep(interval)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("repressed after %d: by interval (-want +got)\n%s", repressed, diff)
			}
		})
	}
}

// TestTakeTrap: a trap that a program sends to the subnet manager is reported, and answered by
// TrapRepress; not a trap that it sends to others.
func TestTakeTrap(t *testing.T) {
	r := newRig(t, small)
	listener, teller := r.attach("node-0003 HCA-1"), r.attach("node-0002 HCA-1")
	r.accept(listener, mad.ClassSubnAdm, mad.MethodReport)
	r.inform(listener, everything(), 0)
	tell := func(to mad.LID, attr *mad.Attribute) (answer mad.Method) {
		call := smp(mad.MethodTrap, attr, 0, to, encode(&mad.Notice{IsGeneric: true, Type: mad.NoticeTypeUrgent, TrapNumber: 128, IssuerLID: 9})[:state.SMPSize])
		if teller.ask(t, call) {
			answer = call.Header().Method
		}
		return answer
	}
	if got := tell(r.state.SM.LID, mad.AttrSubnNotice); got != mad.MethodTrapRepress {
		t.Errorf("the answer has method %v", got)
	}
	for _, got := range []mad.Method{tell(r.lid("leaf-1"), mad.AttrSubnNotice), tell(r.lid("node-0005 HCA-1"), mad.AttrSubnNotice), tell(r.state.SM.LID, mad.AttrNodeInfo)} {
		if got != 0 {
			t.Errorf("what is not for it is answered by method %v", got)
		}
	}
	if diff := cmp.Diff([]string{"Report 1 7: trap 128 of LID 9 node-0002 HCA-1, switch 0"}, r.events(listener)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestMKeyLease: after a wrong M_Key a lease runs, that a right one ends; when it is
// over, everybody may read the key.
func TestMKeyLease(t *testing.T) {
	now := time.Unix(0, 0)
	r := newRig(t, small+",mkey=0x1234,mkey_level=2")
	r.SetClock(func() time.Time { return now })
	p := r.at("node-0002 HCA-1", 1)
	portInfoLeaseField.SetUint(p.Info[:], 10)
	read := func(key uint64) (shown uint64, level uint64, answered bool) {
		c := smp(mad.MethodGet, mad.AttrPortInfo, 1, node2, nil)
		binary.BigEndian.PutUint64(c.MAD[mad.SMPKeyOffset:], key)
		answered = r.conn.ask(t, c)
		if answered {
			shown, level = portInfoKeyField.Uint(c.Data()), portInfoProtectField.Uint(c.Data())
		}
		return shown, level, answered
	}
	trusted := r.attach("node-0004 HCA-1")
	r.accept(trusted, mad.ClassSubnAdm, mad.MethodReport)
	security := everything()
	security.TrapNumber = 256
	if s := r.inform(trusted, security, 1); s != 0 {
		t.Fatal(s)
	}
	if _, _, answered := read(7); answered {
		t.Error("a wrong key was good")
	}
	now = now.Add(9 * time.Second)
	if _, level, answered := read(0x1234); !answered || level != 2 {
		t.Errorf("the right one: %v, level %d", answered, level)
	}
	now = now.Add(9 * time.Second)
	if _, _, answered := read(7); answered {
		t.Error("the right key did not end the lease")
	}
	now = now.Add(10 * time.Second)
	if shown, level, answered := read(7); !answered || shown != 0x1234 || level != 0 {
		t.Errorf("after the lease: %v, key %#x, level %d", answered, shown, level)
	}
	set := smp(mad.MethodSet, mad.AttrNodeDescription, 0, node2, []byte("x"))
	if r.conn.ask(t, set) {
		t.Error("a Set without the key")
	}
	if got := portInfoViolationsField.Uint(p.Info[:]); got != 3 {
		t.Errorf("M_KeyViolations %d", got)
	}
	if got := r.events(trusted); len(got) != 3 {
		t.Errorf("reports: %q", got)
	}
}

// TestMKeyTrap: a wrong M_Key is reported to the subnet manager, which reports it to who
// is trusted.
func TestMKeyTrap(t *testing.T) {
	r := newRig(t, small+",mkey=0x1234,mkey_level=2")
	portInfoSMLIDField.SetUint(r.at("node-0002 HCA-1", 1).Info[:], uint64(r.lid("node-0008 HCA-1")))
	c := r.attach("node-0008 HCA-1")
	r.accept(c, mad.ClassSubn, mad.MethodTrap)
	get := smp(mad.MethodGet, mad.AttrPKeyTable, 3, node2, nil)
	binary.BigEndian.PutUint64(get.MAD[mad.SMPKeyOffset:], 0xbad)
	r.conn.ask(t, get)
	get = smp(mad.MethodGet, mad.AttrPKeyTable, 4, r.lid("node-0002 HCA-1"), nil)
	r.conn.ask(t, get)
	var got []mad.NoticeBadMKey
	for c.Waiting() > 0 {
		var d engine.Datagram
		if err := c.Recv(&d); err != nil {
			t.Fatal(err)
		}
		var n mad.Notice
		n.Decode(append(append([]byte(nil), d.MAD[64:128]...), make([]byte, 16)...))
		if n.TrapNumber != 256 || n.Type != mad.NoticeTypeSecurity || n.ProducerType != mad.ProducerTypeCA || n.IssuerLID != r.lid("node-0002 HCA-1") {
			t.Errorf("%+v", n)
		}
		var details mad.NoticeBadMKey
		details.Decode(n.DataDetails[:])
		got = append(got, details)
	}
	want := []mad.NoticeBadMKey{
		{LIDAddr: 0xffff, DrSLID: 0xffff, Method: 1, AttributeID: 0x16, AttributeModifier: 3, MKey: 0xbad, DRNotice: true, DRHopCount: 2, DRNoticeReturnPath: [30]byte{1, 1}},
		{LIDAddr: r.state.SM.LID, Method: 1, AttributeID: 0x16, AttributeModifier: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNoticeGet: an agent keeps its latest notice until a Set with its toggle clears it.
func TestNoticeGet(t *testing.T) {
	r := newRig(t, small)
	get := func(m mad.Method, toggle bool) string {
		t.Helper()
		ask := mad.Notice{NoticeToggle: toggle}
		status, data := r.smp(smp(m, mad.AttrSubnNotice, 0, r.lid("leaf-2"), append(encode(&ask), make([]byte, 80)...)[:64]))
		var n mad.Notice
		n.Decode(append(data[:64:64], make([]byte, 16)...))
		return fmt.Sprintf("%v %v %d %s toggle %v count %d; ", status, n.Type, n.IssuerLID, n.Event(mad.ClassSubn), n.NoticeToggle, n.NoticeCount)
	}
	var b strings.Builder
	b.WriteString(get(mad.MethodGet, false))
	r.Notices.SendTrap(130, r.named("leaf-2").GUID(), 2, nil)
	b.WriteString(get(mad.MethodGet, false))
	r.Notices.SendTrap(129, r.named("leaf-2").GUID(), 2, nil)
	b.WriteString(get(mad.MethodGet, false))
	b.WriteString(get(mad.MethodSet, true))
	b.WriteString(get(mad.MethodSet, false))
	r.Notices.SendTrap(128, r.named("leaf-2").GUID(), 2, nil)
	b.WriteString(get(mad.MethodGet, false))
	lid := r.lid("leaf-2")
	want := strings.ReplaceAll("ok empty LID  toggle false count 0; ok urgent LID trap 130 (excessive buffer overrun threshold reached) toggle false count 1; "+
		"ok urgent LID trap 129 (local link integrity threshold reached) toggle false count 2; ok urgent LID trap 129 (local link integrity threshold reached) toggle false count 2; "+
		"ok empty LID  toggle true count 0; ok urgent LID trap 128 (link state changed) toggle true count 1; ", "LID", fmt.Sprint(lid))
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	for _, name := range []string{"leaf-2", "node-0001 HCA-1"} {
		if c := r.portInfo(0, r.lid(name)).CapabilityMask; c&mad.CapabilityMaskIsNoticeSupported == 0 || c&mad.CapabilityMaskIsDRNoticeSupported == 0 {
			t.Errorf("%s announces %v", name, c)
		}
	}
}

// TestNoTraps: an agent without IsTrapSupported sends none, and keeps the notice.
func TestNoTraps(t *testing.T) {
	r := newRig(t, small)
	r.accept(r.conn, mad.ClassSubnAdm, mad.MethodReport)
	r.inform(r.conn, everything(), 1)
	if err := r.Edit.Port(r.named("leaf-2").GUID(), 0, func(i *mad.PortInfo) { i.CapabilityMask &^= mad.CapabilityMaskIsTrapSupported }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leaf-1", "leaf-2"} {
		if err := r.Notices.SendTrap(130, r.named(name).GUID(), 2, nil); err != nil {
			t.Fatal(err)
		}
		if n := r.Notices.StoredNotice(r.at(name, 0)); n.TrapNumber != 130 {
			t.Errorf("%s keeps %+v", name, n)
		}
	}
	if got := r.events(r.conn); len(got) != 1 {
		t.Errorf("events: %q", got)
	}
}

// TestBadKeys: a packet with a P_Key or a Q_Key that its destination does not have is
// dropped, counted, and reported by trap 257 or 258; two limited members do not hear each
// other.
func TestBadKeys(t *testing.T) {
	for _, tt := range []struct {
		name             string
		sender, at       uint16 // P_Keys
		qkey             uint32
		answered         bool
		trap             uint16
		key              uint32
		badPKey, badQKey uint16
	}{
		{"right keys", 0xffff, 0xffff, 0, true, 0, 0, 0, 0},
		{"a limited sender", 0x7fff, 0xffff, mad.GeneralQKey, true, 0, 0, 0, 0},
		{"two limited members", 0x7fff, 0x7fff, 0, false, 257, 0x7fff, 1, 0},
		{"another partition", 0x8001, 0xffff, 0, false, 257, 0x8001, 1, 0},
		{"another Q_Key", 0xffff, 0xffff, 7, false, 258, 7, 0, 1},
		{"no P_Key", 0, 0xffff, 0, false, 0, 0, 0, 0},
	} {
		r := newRig(t, small)
		r.accept(r.conn, mad.ClassSubnAdm, mad.MethodReport)
		r.inform(r.conn, everything(), 1)
		const from, at = "node-0002 HCA-1", "node-0003 HCA-1"
		for name, key := range map[string]uint16{from: tt.sender, at: tt.at} {
			block := make([]byte, 64)
			block[0], block[1] = byte(key>>8), byte(key)
			if status, _ := r.set(mad.AttrPKeyTable, 0, r.lid(name), block); status != 0 {
				t.Fatal(status)
			}
		}
		c := &engine.Call{}
		c.PutPerf(mad.MethodGet, mad.AttrPerfClassPortInfo.ID, 0, nil)
		c.SetLID(r.lid(at))
		c.To.QKey = tt.qkey
		answered := r.attach(from).ask(t, c)
		if n := len(r.events(r.conn)); (n == 1) != (tt.trap != 0) {
			t.Errorf("%s: %d reports", tt.name, n)
		}
		info := r.portInfo(1, r.lid(at))
		got := fmt.Sprint(answered, info.PKeyViolations, info.QKeyViolations)
		if want := fmt.Sprint(tt.answered, tt.badPKey, tt.badQKey); got != want {
			t.Errorf("%s: answered, violations %s, want %s", tt.name, got, want)
		}
		kept := r.Notices.StoredNotice(r.at(at, 1))
		var bad mad.NoticeBadKey
		bad.Decode(kept.DataDetails[:])
		if kept.TrapNumber != tt.trap || bad.Key != tt.key || tt.trap != 0 && (bad.LIDAddr1 != r.lid(from) || bad.LIDAddr2 != r.lid(at) || bad.QP1 != 1 || bad.QP2 != 1) {
			t.Errorf("%s: trap %d %+v", tt.name, kept.TrapNumber, bad)
		}
	}
}

// TestManagers: agents of communication, baseboard and device management have what the port
// announces.
func TestManagers(t *testing.T) {
	r := newRig(t, small)
	const unit, other = "node-0002 HCA-1", "node-0003 HCA-1"
	if err := r.Edit.Port(r.named(unit).GUID(), 1, func(i *mad.PortInfo) {
		i.CapabilityMask |= mad.CapabilityMaskIsDeviceManagementSupported
	}); err != nil {
		t.Fatal(err)
	}
	ask := func(m mad.Method, a *mad.Attribute, modifier uint32, name string, key uint64, data []byte) (mad.Status, []byte) {
		t.Helper()
		c := &engine.Call{}
		c.PutMAD(mad.Header{Class: a.Class, ClassVersion: a.Version, Method: m, Attribute: a.ID, Modifier: modifier}, data)
		if a.Class == mad.ClassBM {
			for i := range 8 {
				c.MAD[mad.SMPKeyOffset+i] = byte(key >> (56 - 8*i))
			}
		}
		c.SetLID(r.lid(name))
		c.To.QP = 1
		if !r.conn.ask(t, c) {
			t.Fatalf("%s: no answer", a.Name)
		}
		return c.Header().Status, c.MAD[a.Offset():]
	}
	node := r.named(unit)
	guid := fmt.Sprintf("%016x", uint64(node.GUID()))
	for _, tt := range []struct {
		attr     *mad.Attribute
		modifier uint32
		name     string
		want     string // of a field
		status   mad.Status
	}{
		{mad.AttrComMgtClassPortInfo, 0, unit, "class_version 2", 0},
		{mad.AttrComMgtClassPortInfo, 0, "leaf-1", "", mad.StatusBadMethodAttribute},
		{mad.AttrBMClassPortInfo, 0, "leaf-1", "class_version 1", 0},
		{mad.AttrDevMgtClassPortInfo, 0, other, "class_version 1", 0},
		{mad.AttrIOUnitInfo, 0, unit, "max_controllers 1", 0},
		{mad.AttrIOUnitInfo, 0, other, "", mad.StatusBadMethodAttribute},
		{mad.AttrIOUnitInfo, 0, "leaf-1", "", mad.StatusBadMethodAttribute},
		{mad.AttrIOControllerProfile, 1, unit, "service_entries 1", 0},
		{mad.AttrIOControllerProfile, 1, unit, "protocol 264", 0},
		{mad.AttrIOControllerProfile, 2, unit, "", mad.StatusBadValue},
		{mad.AttrServiceEntries, 1 << 16, unit, "service_name SRP.T10:" + guid, 0},
		{mad.AttrServiceEntries, 1<<16 | 3<<8, unit, "service_name SRP.T10:" + guid, 0},
		{mad.AttrServiceEntries, 2 << 16, unit, "", mad.StatusBadValue},
		{mad.AttrServiceEntries, 1<<16 | 1, unit, "", mad.StatusBadValue},
	} {
		status, data := ask(mad.MethodGet, tt.attr, tt.modifier, tt.name, 0, nil)
		name, want, _ := strings.Cut(tt.want, " ")
		got := ""
		if f := tt.attr.Field(name); f != nil {
			got = fmt.Sprint(f.Uint(data))
			if f.Type == mad.FieldTypeText {
				got = f.Text(data)
			}
		}
		if status != tt.status || got != want {
			t.Errorf("%s %#x of %s: %v, %s %q; want %v, %q", tt.attr.Name, tt.modifier, tt.name, status, name, got, tt.status, want)
		}
	}
	key := make([]byte, 192)
	key[7], key[8] = 0x42, 9
	var lines []string
	bkey := func(m mad.Method, with uint64, data []byte) {
		status, data := ask(m, mad.AttrBKeyInfo, 0, unit, with, data)
		lines = append(lines, fmt.Sprintf("%v %d %d", status, data[7], data[8]))
	}
	bkey(mad.MethodGet, 0, nil)
	bkey(mad.MethodSet, 0, key)
	bkey(mad.MethodGet, 0, nil)
	bkey(mad.MethodGet, 0x42, nil)
	bkey(mad.MethodSet, 0, make([]byte, 192))
	bkey(mad.MethodSet, 0x42, make([]byte, 192))
	bkey(mad.MethodGet, 0, nil)
	if got, want := strings.Join(lines, "; "), "ok 0 0; ok 66 9; ok 0 9; ok 66 9; invalid attribute value 0 9; ok 0 0; ok 0 0"; got != want {
		t.Errorf("BKeyInfo: %s, want %s", got, want)
	}
}
