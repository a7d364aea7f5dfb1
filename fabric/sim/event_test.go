package sim

import (
	"fmt"
	"strings"
	"testing"

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

// A cable is unplugged, and plugged in again: the switches at its ends send traps,
// ports without another route disappear and appear, others get another route.
func TestCable(t *testing.T) {
	const spec = "ring:n=3" // with a host each: port 1; the SM is on node-0001's
	r := newRig(t, spec)
	far := r.attach("node-0003 HCA-1")
	for _, c := range []*program{r.conn, far} {
		r.accept(c, mad.ClassSubnAdm, mad.MethodReport)
		if s := r.inform(c, everything(), 0); s != 0 {
			t.Fatal(s)
		}
	}
	sw := func(i int) mad.GUID { return r.named(fmt.Sprintf("switch-%d", i)).GUID() }
	change := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, c *program, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, r.events(c)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	// TIDs are the subnet administrator's, of all reports.
	change(r.Cables.Unlink(sw(2), 1))
	want("a host's cable", r.conn, "Report 1 4: trap 128 of LID 2 switch-2, switch 2", "Report 3 4: trap 65 of LID 4 node-0001 HCA-1, node-0002 HCA-1")
	want("a host's cable, elsewhere", far, "Report 2 4: trap 128 of LID 2 switch-2, switch 2", "Report 4 4: trap 65 of LID 4 node-0001 HCA-1, node-0002 HCA-1")
	change(r.Cables.Unlink(sw(2), 1))
	want("nothing more to pull", r.conn)
	change(r.Cables.Link(r.named("node-0002 HCA-1").GUID(), 1))
	want("plugged in at the other end", r.conn, "Report 5 4: trap 128 of LID 2 switch-2, switch 2", "Report 7 4: trap 64 of LID 4 node-0001 HCA-1, node-0002 HCA-1")
	if p := r.at("node-0002 HCA-1", 1); p.State != mad.PortStateActive {
		t.Errorf("the port is %v", p.State)
	}
	r.events(far)

	// Of the ring, a chain is left: all stay, by other ways.
	from := r.named("switch-1")
	toward3 := 0
	for p := range from.Ports() {
		if q := p.Peer(); q != nil && q.Node().Name() == "switch-3" {
			toward3 = p.Num()
		}
	}
	change(r.Cables.Unlink(from.GUID(), toward3))
	// switch-3 had its way to the subnet manager over that cable.
	want("a cable between switches", r.conn, "Report 9 4: trap 128 of LID 1 switch-1, switch 1", "Report 11 4: trap 128 of LID 3 switch-3, switch 3")
	if to := state.ForwardLID(r.at("node-0003 HCA-1", 1), 4, false); to == nil {
		t.Error("node-0003 has no way to node-0001")
	}
	r.events(far)
	change(r.Cables.Unlink(sw(3), 1)) // far's own: it hears no more
	want("a host", r.conn, "Report 13 4: trap 128 of LID 3 switch-3, switch 3", "Report 15 4: trap 65 of LID 4 node-0001 HCA-1, node-0003 HCA-1")
	want("itself, without a way", far)
}

// Errors of Unlink and its like.
func TestCableErrors(t *testing.T) {
	r := newRig(t, "ring:n=1") // whose ports 2 and 3 have no cable
	sw := r.named("switch-1").GUID()
	for _, c := range []struct {
		node mad.GUID
		num  int
		want string
	}{
		{1, 1, "the simulated fabric has no node with GUID 0x0000000000000001"},
		{sw, 0, "no port 0"},
		{sw, 99, "no port 99"},
		{sw, 2, "has no cable"},
	} {
		if err := r.Cables.Unlink(c.node, c.num); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Unlink(%v, %d): %v", c.node, c.num, err)
		}
	}
	if err := r.SM.Restart(1); err == nil {
		t.Error("RestartSM on no node")
	}
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
	for range 2 { // the same again is one
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

// A program that accepts traps gets those of the agents whose MasterSMLID is its
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
