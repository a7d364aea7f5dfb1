package ibsim

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// message is what ibsim writes: addresses, status, length, and a MAD that
// begins with h and RMPP version v.
func message(dlid, slid mad.LID, dqp, sqp, status uint32, length uint64, h mad.Header, v byte) []byte {
	m := make([]byte, MessageSize)
	PutLID(m[OffDLID:], dlid)
	PutLID(m[OffSLID:], slid)
	binary.BigEndian.PutUint32(m[OffDQP:], dqp)
	binary.BigEndian.PutUint32(m[OffSQP:], sqp)
	binary.BigEndian.PutUint32(m[OffStatus:], status)
	binary.BigEndian.PutUint64(m[OffLength:], length)
	h.Put(m[OffMAD:])
	m[OffMAD+mad.RMPPOffset] = v
	m[MessageSize-1] = 0xee
	return m
}

func TestReceived(t *testing.T) {
	header := func(c mad.Class, m mad.Method) mad.Header {
		return mad.Header{Class: c, ClassVersion: c.Version(), Method: m}
	}
	table := header(mad.ClassSubnAdm, mad.MethodGetTableResp)
	us, them := mad.LID(3), mad.LID(0x1234)
	for _, c := range []struct {
		name string
		m    []byte
		want engine.Datagram // MAD aside
		size int
	}{
		{"response", message(us, them, 1, 1, 0, 256, header(mad.ClassPerf, mad.MethodGetResp), 0),
			engine.Datagram{Address: engine.Address{LID: them, QP: 1}}, 256},
		{"undelivered request", message(them, us, 1, 1, 110, 256, header(mad.ClassPerf, mad.MethodGet), 0),
			engine.Datagram{Address: engine.Address{LID: them, QP: 1}, Undelivered: true}, 256},
		{"undelivered response", message(us, them, 0, 0, 110, 256, header(mad.ClassSubn, mad.MethodGetResp), 0),
			engine.Datagram{Address: engine.Address{LID: them}, Undelivered: true}, 256},
		{"directed route", message(mad.PermissiveLID, mad.PermissiveLID, 0, 0, 0, 256, header(mad.ClassSubnDirected, mad.MethodGetResp), 0),
			engine.Datagram{Address: engine.Address{LID: mad.PermissiveLID}}, 256},
		{"empty table", message(us, them, 1, 1, 0, 56, table, 0), engine.Datagram{Address: engine.Address{LID: them, QP: 1}}, 56},
		{"table of one", message(us, them, 1, 1, 0, 168, table, 0), engine.Datagram{Address: engine.Address{LID: them, QP: 1}}, 168},
		{"table cut", message(us, them, 1, 1, 0, 256, table, 0), engine.Datagram{Address: engine.Address{LID: them, QP: 1}, Cut: true}, 256},
		{"traces cut", message(us, them, 1, 1, 0, 256, header(mad.ClassSubnAdm, mad.MethodGetTraceTableResp), 0),
			engine.Datagram{Address: engine.Address{LID: them, QP: 1}, Cut: true}, 256},
		{"segment of a table", message(us, them, 1, 1, 0, 256, table, 1), engine.Datagram{Address: engine.Address{LID: them, QP: 1}}, 256},
		{"record", message(us, them, 1, 1, 0, 256, header(mad.ClassSubnAdm, mad.MethodGetResp), 0),
			engine.Datagram{Address: engine.Address{LID: them, QP: 1}}, 256},
		{"undelivered table", message(us, them, 1, 1, 110, 256, table, 0),
			engine.Datagram{Address: engine.Address{LID: them, QP: 1}, Undelivered: true}, 256},
		{"no length", message(us, them, 1, 1, 0, 0, header(mad.ClassPerf, mad.MethodGetResp), 0),
			engine.Datagram{Address: engine.Address{LID: them, QP: 1}}, 256},
		{"length of nonsense", message(us, them, 1, 1, 0, 1<<60, header(mad.ClassPerf, mad.MethodGetResp), 0),
			engine.Datagram{Address: engine.Address{LID: them, QP: 1}}, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			// What d held before does not shine through.
			got := engine.Datagram{Undelivered: true, Cut: true, Timeout: 1, Address: engine.Address{SL: 5, HasGRH: true}, MAD: []byte{1}}
			decodeMessage(&got, c.m)
			c.want.MAD = c.m[OffMAD : OffMAD+c.size]
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func FuzzReceived(f *testing.F) {
	f.Add(message(1, 2, 1, 1, 0, 256, mad.Header{Class: mad.ClassSubnAdm, Method: mad.MethodGetTableResp}, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d engine.Datagram
		decodeMessage(&d, append(b, make([]byte, MessageSize)...)[:MessageSize])
		if n := len(d.MAD); n < mad.HeaderSize || n > mad.Size {
			t.Errorf("a MAD of %d bytes", n)
		}
	})
}

func TestRefuse(t *testing.T) {
	smp := func(m mad.Method, a *mad.Attribute, modifier uint32, data []byte) *engine.Call {
		c := &engine.Call{}
		c.PutSMP(m, a.ID, modifier, data)
		c.SetLID(5)
		return c
	}
	class := func(class mad.Class, m mad.Method) *engine.Call {
		c := &engine.Call{}
		h := mad.Header{Class: class, ClassVersion: 1, Method: m}
		h.Put(c.MAD[:])
		c.SetLID(5)
		return c
	}
	portInfo := func(lid mad.LID) []byte {
		b := make([]byte, 64)
		(&mad.PortInfo{LID: lid}).Encode(b)
		return b
	}
	switchInfo := func(top uint16) []byte {
		b := make([]byte, 64)
		(&mad.SwitchInfo{LinearFDBTop: top}).Encode(b)
		return b
	}
	route := func(change func(c *engine.Call)) *engine.Call {
		c := smp(mad.MethodGet, mad.AttrNodeInfo, 0, nil)
		c.SetRoute(mad.DirectedRoute{0, 1, 2})
		change(c)
		return c
	}
	const port255 = "port 255: the highest valid number is 254"
	for _, c := range []struct {
		name string
		call *engine.Call
		want string // "": sent
	}{
		{"Subn", class(mad.ClassSubn, mad.MethodGet), ""},
		{"SubnAdm", class(mad.ClassSubnAdm, mad.MethodGet), ""},
		{"Perf", class(mad.ClassPerf, mad.MethodGet), ""},
		{"BM", class(mad.ClassBM, mad.MethodGet), ""},
		{"vendor 0x32", class(0x32, mad.MethodGet), ""},
		{"CC", class(mad.ClassCongestion, mad.MethodGet), "ibsim would handle class CC as Subn, and change its tables"},
		{"application 0x11", class(0x11, mad.MethodGet), "ibsim would handle class Application(0x11) as Subn, and change its tables"},
		{"application 0x14", class(0x14, mad.MethodGet), "ibsim would handle class Application(0x14) as Perf, and change its tables"},
		{"vendor 0x31", class(0x31, mad.MethodSet), "ibsim would handle class Vendor(0x31) as Subn, and change its tables"},
		{"vendor 0x44", class(0x44, mad.MethodSet), "ibsim would handle class Vendor(0x44) as Perf, and change its tables"},
		{"response", class(mad.ClassSubnAdm, mad.MethodReportResp), ""},
		{"route", route(func(c *engine.Call) {}), ""},
		{"route too long", route(func(c *engine.Call) { c.MAD[7] = 64 }), "a directed route of 64 hops; maximum: 63"},
		{"route from a LID", route(func(c *engine.Call) { c.MAD[mad.SMPDrSLIDOffset] = 0 }), "ibsim does not support directed routes with a LID-routed part"},
		{"route to a LID", route(func(c *engine.Call) { c.MAD[mad.SMPDrDLIDOffset] = 0 }), "ibsim does not support directed routes with a LID-routed part"},
		{"route after a LID", route(func(c *engine.Call) { c.To.LID = 5 }), "ibsim does not support directed routes with a LID-routed part"},
		{"global route", route(func(c *engine.Call) { c.To.HasGRH = true }), "ibsim does not support global route headers"},
		{"P_Keys of port 254", smp(mad.MethodGet, mad.AttrPKeyTable, 254<<16, nil), ""},
		{"P_Keys of port 255", smp(mad.MethodGet, mad.AttrPKeyTable, 255<<16, nil), port255},
		{"VLArb of port 254", smp(mad.MethodGet, mad.AttrVLArbitrationTable, 1<<16|254, nil), ""},
		{"VLArb of port 65535", smp(mad.MethodGet, mad.AttrVLArbitrationTable, 1<<16|0xffff, nil), "port 65535: the highest valid number is 254"},
		{"SL2VL of ports 254", smp(mad.MethodGet, mad.AttrSLtoVLMappingTable, 254<<8|254, nil), ""},
		{"SL2VL of input port 255", smp(mad.MethodGet, mad.AttrSLtoVLMappingTable, 255<<8, nil), port255},
		{"SL2VL of output port 255", smp(mad.MethodGet, mad.AttrSLtoVLMappingTable, 255, nil), port255},
		{"LFT block 479", smp(mad.MethodGet, mad.AttrLinearForwardingTable, 479, nil), ""},
		{"LFT block 480", smp(mad.MethodGet, mad.AttrLinearForwardingTable, 480, nil), "block 480: the forwarding tables of ibsim end with block 479"},
		{"LinearFDBTop 30719", smp(mad.MethodSet, mad.AttrSwitchInfo, 0, switchInfo(30719)), ""},
		{"LinearFDBTop 30720", smp(mad.MethodSet, mad.AttrSwitchInfo, 0, switchInfo(30720)), "LinearFDBTop 30720: the forwarding tables of ibsim end with LID 30719"},
		{"Get of the like", smp(mad.MethodGet, mad.AttrSwitchInfo, 0, switchInfo(30720)), ""},
		{"LID 30719", smp(mad.MethodSet, mad.AttrPortInfo, 1, portInfo(30719)), ""},
		{"LID 30720", smp(mad.MethodSet, mad.AttrPortInfo, 1, portInfo(30720)), "LID 30720: the highest LID of ibsim is 30719"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := new(Transport).refuse(&engine.Datagram{Address: c.call.To, MAD: c.call.MAD[:]}); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	if err := new(Transport).refuse(&engine.Datagram{MAD: make([]byte, 1000)}); err == nil || err.Error() != "a MAD of 1000 bytes; ibsim carries only MADs of 256 bytes" {
		t.Errorf("a long MAD: %v", err)
	}
}
