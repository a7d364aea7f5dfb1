package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim/agent"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// rawSMP is a datagram, byte by byte: a directed-route SubnGet(NodeInfo) over
// route, which each row of the tests below changes.
func rawSMP(route ...byte) *engine.Datagram {
	m := make([]byte, mad.Size)
	m[0], m[1], m[2], m[3] = 1, 0x81, 1, 0x01 // BaseVersion, MgmtClass, ClassVersion, Method
	m[7] = byte(len(route))                   // HopCount
	m[15] = 9                                 // TransactionID
	m[17] = 0x11                              // AttributeID
	copy(m[32:36], []byte{255, 255, 255, 255})
	copy(m[129:], route)
	return &engine.Datagram{Address: engine.Address{LID: mad.PermissiveLID}, MAD: m}
}

// answerTo sends a datagram and gives the answer's method and status, D left out;
// "": there is none.
func (r *rig) answerTo(d *engine.Datagram) []byte {
	r.t.Helper()
	if err := r.conn.Send(d); err != nil {
		r.t.Fatal(err)
	}
	if r.conn.Waiting() == 0 {
		return nil
	}
	var answer engine.Datagram
	if err := r.conn.Recv(&answer); err != nil {
		r.t.Fatal(err)
	}
	return answer.MAD
}

// TestValidation has a row for each rule of what an agent drops, and of the status
// of what it answers (IBA 13.4.7, 14.2; Shanley, InfiniBand Network Architecture,
// "SMP Validation", table 27-2). Two rules are of what a datagram here does not have: a
// virtual lane and an opcode. BUSY and redirection are in TestBusy and TestRedirect.
func TestValidation(t *testing.T) {
	r := newRig(t, small)
	dr := func(change func(m []byte)) *engine.Datagram {
		d := rawSMP(1)
		change(d.MAD)
		return d
	}
	byLID := func(change func(m []byte)) *engine.Datagram {
		d := rawSMP()
		d.Address.LID, d.MAD[1] = 1, 0x01 // leaf-1
		change(d.MAD)
		return d
	}
	general := func(class byte, change func(m []byte)) *engine.Datagram {
		d := rawSMP()
		clear(d.MAD[32:])
		d.Address, d.MAD[1] = engine.Address{LID: 1, QP: 1}, class
		d.MAD[17] = 0x12
		d.MAD[65] = 1
		change(d.MAD)
		return d
	}
	same := func([]byte) {}
	for _, test := range []struct {
		rule string
		d    *engine.Datagram
		want string // method and status; "": dropped
	}{
		{"directed route", dr(same), "81 8000"},
		{"by LID", byLID(same), "81 0000"},
		{"BaseVersion 0", dr(func(m []byte) { m[0] = 0 }), ""},
		{"BaseVersion 2", dr(func(m []byte) { m[0] = 2 }), ""},
		{"BaseVersion 2, by LID", byLID(func(m []byte) { m[0] = 2 }), ""},
		{"MgmtClass 0x02", byLID(func(m []byte) { m[1] = 2 }), ""},
		{"MgmtClass 0x82", dr(func(m []byte) { m[1] = 0x82 }), ""},
		{"a general class at queue pair 0", byLID(func(m []byte) { m[1] = 4 }), ""},
		{"ClassVersion 0", dr(func(m []byte) { m[2] = 0 }), "81 8004"},
		{"ClassVersion 2", byLID(func(m []byte) { m[2] = 2 }), "81 0004"},
		{"Method 0", dr(func(m []byte) { m[3] = 0 }), ""},
		{"Send", byLID(func(m []byte) { m[3] = 0x03 }), ""},
		{"reserved method", byLID(func(m []byte) { m[3] = 0x04 }), ""},
		{"Trap", byLID(func(m []byte) { m[3] = 0x05; m[17] = 2 }), ""},
		{"Report", dr(func(m []byte) { m[3] = 0x06 }), ""},
		{"TrapRepress", byLID(func(m []byte) { m[3] = 0x07; m[17] = 2 }), ""},
		{"method of another class", dr(func(m []byte) { m[3] = 0x12 }), ""},
		{"GetResp", dr(func(m []byte) { m[3] = 0x81 }), ""},
		{"unknown attribute", dr(func(m []byte) { m[16] = 0x77 }), "81 800c"},
		{"unknown attribute, by LID", byLID(func(m []byte) { m[16] = 0x77 }), "81 000c"},
		{"Set of what cannot be set", dr(func(m []byte) { m[3] = 2 }), "81 800c"},
		{"attribute of switches at a CA", &engine.Datagram{Address: engine.Address{LID: mad.PermissiveLID}, MAD: func() []byte { m := rawSMP(1, 2).MAD; m[17] = 0x12; return m }()}, "81 800c"},
		{"no such port", dr(func(m []byte) { m[17], m[23] = 0x15, 9 }), "81 801c"},
		{"a modifier where there is none", dr(func(m []byte) { m[23] = 5 }), "81 801c"},
		{"a value that is not valid", dr(func(m []byte) { m[3], m[17], m[23] = 2, 0x15, 1; m[64+33] = 0x0f; m[64+36] = 0xf0 }), "81 801c"},

		{"HopPointer 1", dr(func(m []byte) { m[6] = 1 }), ""},
		{"HopPointer behind HopCount", dr(func(m []byte) { m[6] = 9 }), ""},
		{"HopCount 64", dr(func(m []byte) { m[7] = 64 }), ""},
		{"D set", dr(func(m []byte) { m[4] = 0x80 }), ""},
		{"port that is not there", dr(func(m []byte) { m[7], m[130] = 2, 9 }), ""},
		{"port 0", dr(func(m []byte) { m[7], m[130] = 2, 0 }), ""},
		{"through a CA", dr(func(m []byte) { m[7], m[130], m[131] = 3, 2, 1 }), ""},

		{"LID 0", func() *engine.Datagram { d := byLID(same); d.Address.LID = 0; return d }(), ""},
		{"LID of nobody", func() *engine.Datagram { d := byLID(same); d.Address.LID = 4000; return d }(), ""},
		{"multicast LID", func() *engine.Datagram { d := byLID(same); d.Address.LID = 0xc000; return d }(), ""},
		{"permissive LID, not directed", func() *engine.Datagram { d := byLID(same); d.Address.LID = 0xffff; return d }(), ""},

		{"performance management", general(4, same), "81 0000"},
		{"performance management, wrong version", general(4, func(m []byte) { m[2] = 2 }), "81 0004"},
		{"performance management, method of another class", general(4, func(m []byte) { m[3] = 0x12 }), "92 0008"},
		{"performance management, unknown attribute", general(4, func(m []byte) { m[17] = 0x77 }), "81 000c"},
		{"class without an agent", general(8, same), "81 000c"},
		{"subnet administration where there is none", general(3, func(m []byte) { m[2] = 2 }), "81 000c"},
		{"general, BaseVersion 2", general(4, func(m []byte) { m[0] = 2 }), ""},
		{"general, a response", general(4, func(m []byte) { m[3] = 0x81 }), ""},
		{"an SMP at queue pair 1", general(1, same), ""},
	} {
		got, before := "", r.Image()
		if m := r.answerTo(test.d); m != nil {
			got = hexBytes(m[3:4]) + " " + hexBytes(m[4:6])
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
		if r.Image() != before {
			t.Errorf("%s changes something", test.rule)
		}
	}
	if err := r.conn.Send(&engine.Datagram{MAD: make([]byte, 255)}); err == nil {
		t.Error("a MAD of 255 bytes was sent")
	}
}

func hexBytes(b []byte) (s string) {
	const digits = "0123456789abcdef"
	for _, x := range b {
		s += string([]byte{digits[x>>4], digits[x&15]})
	}
	return s
}

// TestRefusedSets: a Set that is refused changes nothing, and its answer shows what
// there is.
func TestRefusedSets(t *testing.T) {
	r := newRig(t, small)
	port := r.portInfo(3, leaf1)
	for _, test := range []struct {
		name     string
		attr     *mad.Attribute
		modifier uint32 // of the Set
		valid    uint32 // of a Get
		data     []byte
	}{
		{"NodeDescription with a modifier", mad.AttrNodeDescription, 5, 0, []byte("renamed")},
		{"SwitchInfo with a modifier", mad.AttrSwitchInfo, 1, 0, encode(&mad.SwitchInfo{LinearFDBTop: 1})},
		{"LinearFDBTop above the capacity", mad.AttrSwitchInfo, 0, 0, encode(&mad.SwitchInfo{LinearFDBTop: 49152, LifeTimeValue: 3})},
		{"PortInfo of no port", mad.AttrPortInfo, 9, 3, encode(&mad.PortInfo{})},
		{"MTU above the capacity", mad.AttrPortInfo, 3, 3, encode(func() *mad.PortInfo { p := port; p.NeighborMTU, p.HOQLife = 7, 3; return &p }())},
		{"LFT past the capacity", mad.AttrLinearForwardingTable, 768, 0, make([]byte, 64)},
		{"MFT past the capacity", mad.AttrMulticastForwardingTable, 128, 0, []byte{1, 2, 3}},
		{"P_Keys past the capacity", mad.AttrPKeyTable, 1, 0, []byte{1, 2, 3}},
		{"SL2VL of no port", mad.AttrSLtoVLMappingTable, 9, 1, []byte{1, 2, 3}},
		{"VLArb, no such block", mad.AttrVLArbitrationTable, 5<<16 | 1, 1<<16 | 1, []byte{1, 2, 3}},
		{"GUIDs past the capacity", mad.AttrGUIDInfo, 1, 0, []byte{1, 2, 3}},
		{"light of no port", mad.AttrLedInfo, 9, 1, []byte{0x80}},
	} {
		_, before := r.get(test.attr, test.valid, leaf1)
		before = append([]byte(nil), before...)
		if status, _ := r.set(test.attr, test.modifier, leaf1, test.data); status != mad.StatusBadValue {
			t.Errorf("%s: %v", test.name, status)
		}
		if _, after := r.get(test.attr, test.valid, leaf1); !cmp.Equal(before, after) {
			t.Errorf("%s changed something (-before +after)\n%s", test.name, cmp.Diff(before, after))
		}
	}
	if status, data := r.set(mad.AttrLedInfo, 1, leaf1, []byte{0x80}); status != 0 || data[0] != 0x80 {
		t.Errorf("light: %v, %x", status, data[0])
	}
	if _, data := r.get(mad.AttrLedInfo, 2, leaf1); data[0] != 0 {
		t.Error("another port's light is on")
	}
}

// TestSetsRefused: whatever a Set or Delete asks of the agents of a switch or a CA, or of
// the subnet administrator, it has changed nothing if its answer has a status.
func TestSetsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	const spec = small + ",registers=yes"
	r := newRig(t, spec)
	before := r.Image()
	random := rand.New(rand.NewPCG(3, 4))
	modifiers := []uint32{0, 1, 4, 5, 0x405, 0xffff, 1<<16 | 1, 1<<16 | 5, 3<<16 | 1, 1 << 17, 1<<18 | 1, 1 << 28, 1<<31 | 9, 1<<32 - 1}
	refused := map[string]bool{}
	try := func(attr *mad.Attribute, method mad.Method, modifier uint32, lid mad.LID) {
		t.Helper()
		data := make([]byte, attr.Size)
		most := []int{1, 6, 256}[random.IntN(3)]
		for i := range data {
			data[i] = byte(random.IntN(most))
		}
		c := &engine.Call{}
		c.PutMAD(mad.Header{Class: attr.Class, ClassVersion: attr.Class.Version(), Method: method, Attribute: attr.ID, Modifier: modifier}, nil)
		copy(c.MAD[attr.Offset():], data)
		if attr.Class == mad.ClassSubnAdm {
			mask := []uint64{0, random.Uint64() & 0xffff, 1<<64 - 1}[random.IntN(3)]
			mad.PutSA(c.MAD[:], mask, min(attr.Size, len(c.MAD)-attr.Offset()))
		}
		c.SetLID(lid)
		m := r.answerTo(&engine.Datagram{Address: c.To, MAD: c.MAD[:]})
		after := r.Image()
		if m != nil && binary.BigEndian.Uint16(m[4:]) != 0 {
			refused[attr.Name] = true
			if after != before {
				t.Fatalf("%s(%s) with modifier %#x has status %x, and changed something (-before +after)\n%s", method.Name(attr.Class, attr.Class.Version()), attr.Name, modifier, m[4:6], cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
			}
		}
		if after != before {
			r = newRig(t, spec)
		}
	}
	sets := 0
	for _, attr := range mad.Attributes() {
		known := agent.Has(attr.Class) || attr.Class == mad.ClassSubnAdm
		if !known || !slices.Contains(attr.Methods, mad.MethodSet) {
			continue
		}
		sets++
		for _, lid := range []mad.LID{r.lid("leaf-1"), r.lid("node-0008 HCA-1"), r.state.SM.LID} {
			for _, modifier := range append(modifiers, random.Uint32()) {
				try(attr, mad.MethodSet, modifier, lid)
				if attr.Class == mad.ClassSubnAdm {
					try(attr, mad.MethodDelete, modifier, lid)
				}
			}
		}
		if !refused[attr.Name] {
			t.Errorf("no Set(%s) was refused", attr.Name)
		}
	}
	if sets < 30 {
		t.Errorf("only %d attributes can be Set", sets)
	}
}

// TestCombinedRoutes: a directed-route SMP is routed by LID to the switch where its
// directed part begins, and from where that ends; and back.
func TestCombinedRoutes(t *testing.T) {
	r := newRig(t, small)
	leaf4, far := r.lid("leaf-4"), r.lid("node-0008 HCA-1")
	for _, test := range []struct {
		name           string
		lid            mad.LID
		drSLID, drDLID mad.LID
		route          []byte
		want           string // the node; "": dropped
		break_         func()
	}{
		{"by LID, then directed", leaf4, r.state.SM.LID, 0xffff, []byte{2}, "node-0008 HCA-1", nil},
		{"directed, then by LID", 0xffff, 0xffff, far, []byte{1}, "node-0008 HCA-1", nil},
		{"by LID, directed, by LID", leaf4, r.state.SM.LID, far, []byte{3}, "node-0008 HCA-1", nil},
		{"by LID alone", leaf4, r.state.SM.LID, leaf4, nil, "leaf-4", nil},
		{"the source's LID, though directed from there on", 0xffff, r.state.SM.LID, 0xffff, []byte{1}, "leaf-1", nil},
		{"no way back: DrSLID is permissive", leaf4, 0xffff, 0xffff, []byte{2}, "", nil},
		{"no way back: DrSLID is another's", leaf4, far, 0xffff, []byte{2}, "", nil},
		{"through a CA", far, r.state.SM.LID, 0xffff, []byte{1}, "", nil},
		{"on from a CA", 0xffff, 0xffff, leaf4, []byte{1, 2}, "", nil},
		{"to no LID", 0xffff, 0xffff, 4000, []byte{1}, "", nil},
		{"no way back: a wrong entry", 0xffff, 0xffff, far, []byte{1}, "", func() { r.Edit.LFT(r.named("leaf-4").GUID(), r.lid("leaf-1"), mad.NoPort) }},
	} {
		if test.break_ != nil {
			test.break_()
		}
		d := rawSMP(test.route...)
		d.Address.LID = test.lid
		binary.BigEndian.PutUint16(d.MAD[mad.SMPDrSLIDOffset:], uint16(test.drSLID))
		binary.BigEndian.PutUint16(d.MAD[mad.SMPDrSLIDOffset+2:], uint16(test.drDLID))
		got := ""
		if m := r.answerTo(d); m != nil {
			var info mad.NodeInfo
			info.Decode(m[64:])
			got = r.NodeByGUID(info.NodeGUID)[0].Name()
			if m[4] != 0x80 || m[6] != 0 {
				t.Errorf("%s: D and hop pointer % x", test.name, m[4:8])
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
