package sim

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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

// TestTakeTrap: what a program tells the subnet manager is reported, and answered by
// TrapRepress; not what it tells others.
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

// TestMKeyTrap: a wrong M_Key is told to the subnet manager, which reports it to who
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
