package builtins

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// forger changes the records in answers of the subnet administrator.
type forger struct {
	engine.Transport
	attr   *mad.Attribute
	change func(record []byte)
}

func (f *forger) Recv(d *engine.Datagram) error {
	err := f.Transport.Recv(d)
	if err != nil || f.attr == nil || len(d.MAD) < mad.Size {
		return err
	}
	if h := mad.ParseHeader(d.MAD); mad.Lookup(h.Class.Family(), h.Attribute) != f.attr {
		return nil
	}
	const data = 56                          // beyond the headers of MAD, RMPP and SA
	f.change(d.MAD[data : data+f.attr.Size]) // one: those of a table may be in several datagrams
	return nil
}

// path changes the path records of the forger.
func (f *forger) path(change func(r *mad.PathRecord)) {
	f.attr, f.change = mad.AttrPathRecord, func(data []byte) {
		var r mad.PathRecord
		r.Decode(data)
		if r.SLID == 0 {
			return // the rest of the MAD
		}
		change(&r)
		r.Encode(data)
	}
}

// service registers a service of the local port, whose record the forger changes.
func (f *forger) service(t *testing.T, x *fixture, change func(r *mad.ServiceRecord)) {
	t.Helper()
	if _, explained, status := x.run(`sa_set("ServiceRecord", service_id=5, service_gid=gid(discover().cas[0].ports[1].guid, prefix=0xfe80000000000000), service_p_key=0xffff, service_lease=60, service_name="a\x1b[2J")`); status != 0 {
		t.Fatal(explained)
	}
	f.attr, f.change = mad.AttrServiceRecord, func(data []byte) {
		var r mad.ServiceRecord
		if r.Decode(data); r.ServiceID == 5 {
			change(&r)
			r.Encode(data)
		}
	}
}

// TestAuditSA: answers of the subnet administrator that differ from the fabric are findings, one for
// each fault, and a fabric whose answers are right has none.
func TestAuditSA(t *testing.T) {
	const all, example = "56 paths, such as node-0001 HCA-1/1 to node-0002 HCA-1/1", ", such as node-0001 HCA-1/1 to node-0002 HCA-1/1"
	for _, test := range []struct {
		name, spec string
		do         func(t *testing.T, f *fixture, x *forger)
		want       string
	}{
		{name: "nothing", want: ""},
		{name: "rate", do: func(_ *testing.T, _ *fixture, x *forger) { x.path(func(r *mad.PathRecord) { r.Rate = mad.Rate40 }) },
			want: "sa.rate  fabric: rate of 56 paths: 40 Gb/s by the subnet administrator, 200 Gb/s by the slowest link" + example + "; the subnet manager does not know the speed HDR and takes QDR (OpenSM 3.3): update it"},
		{name: "more rate", do: func(_ *testing.T, _ *fixture, x *forger) { x.path(func(r *mad.PathRecord) { r.Rate = mad.Rate400 }) },
			want: "sa.rate  fabric: rate of 56 paths: 400 Gb/s by the subnet administrator, 200 Gb/s by the slowest link" + example},
		{name: "MTU", do: func(_ *testing.T, _ *fixture, x *forger) { x.path(func(r *mad.PathRecord) { r.MTU = mad.MTU2048 }) },
			want: "sa.mtu  fabric: MTU 2048, less than that of each link on the path: " + all},
		{name: "lifetime", do: func(_ *testing.T, _ *fixture, x *forger) { x.path(func(r *mad.PathRecord) { r.PacketLifeTime = 12 }) },
			want: "sa.lifetime  fabric: packet lifetime 12, shorter than the LifeTimeValue of a switch on the path, 18: " + all},
		{name: "reversible", do: func(_ *testing.T, _ *fixture, x *forger) { x.path(func(r *mad.PathRecord) { r.Reversible = false }) },
			want: "sa.reversible  fabric: not marked as reversible, and the tables lead back: " + all},
		{name: "P_Key", do: func(_ *testing.T, _ *fixture, x *forger) { x.path(func(r *mad.PathRecord) { r.PKey = 0x8001 }) },
			want: "sa.pkey  fabric: the ends do not share P_Key 0x8001: " + all},
		{name: "name", do: func(_ *testing.T, _ *fixture, x *forger) {
			x.attr, x.change = mad.AttrNodeRecord, func(data []byte) {
				var r mad.NodeRecord
				if r.Decode(data); r.LID == 7 {
					copy(r.NodeDescription.NodeString[:], "other\x00")
					r.Encode(data)
				}
			}
		}, want: "sa.node  fabric: nodes with another name at the subnet administrator: 1, such as node-0001 HCA-1"},
		{name: "ports", do: func(_ *testing.T, _ *fixture, x *forger) {
			x.attr, x.change = mad.AttrNodeRecord, func(data []byte) {
				var r mad.NodeRecord
				if r.Decode(data); r.LID == 7 {
					r.NodeInfo.NumPorts = 9
					r.Encode(data)
				}
			}
		}, want: "sa.node  fabric: nodes with another GUID, type or number of ports at the subnet administrator: 1, such as node-0001 HCA-1"},
		{name: "port", do: func(_ *testing.T, _ *fixture, x *forger) {
			x.attr, x.change = mad.AttrPortInfoRecord, func(data []byte) {
				var r mad.PortInfoRecord
				if r.Decode(data); r.EndportLID == 7 {
					r.PortInfo.NeighborMTU = mad.MTU1024
					r.Encode(data)
				}
			}
		}, want: "sa.port  node-0001 HCA-1/1: other values at the subnet administrator: MTU"},
		{name: "services", do: func(t *testing.T, f *fixture, x *forger) {
			x.service(t, f, func(*mad.ServiceRecord) {})
		}, want: ""},
		{name: "service of a port that is gone", do: func(t *testing.T, f *fixture, x *forger) {
			x.service(t, f, func(r *mad.ServiceRecord) { r.ServiceGID = mad.MakeGID(0xfe80<<48, 0x1234) })
		}, want: `sa.service  fabric: services of ports that are not in the fabric: 1, such as "a\x1b[2J" (0x0000000000000005) at fe80::1234`},
		{name: "service that ended", do: func(t *testing.T, f *fixture, x *forger) {
			x.service(t, f, func(r *mad.ServiceRecord) { r.ServiceLease = 0 })
		}, want: `sa.service  fabric: services whose lease has ended: 1, such as "a\x1b[2J" (0x0000000000000005) at fe80::2:c903:1000:1`},
		{name: "SL without a lane", do: func(t *testing.T, f *fixture, x *forger) {
			swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Env.Sim.Edit.Table(mad.AttrSLtoVLMappingTable, swept.NodeByName("node-0003 HCA-1")[0].GUID(), 1, 0, func(data []byte) { data[1] = 0xff }); err != nil {
				t.Fatal(err)
			}
			x.path(func(r *mad.PathRecord) { r.SL = 3 })
		}, want: "sa.sl  node-0003 HCA-1/1: packets of SL 3 are dropped (VL 15): 7 paths by the subnet administrator, such as node-0003 HCA-1/1 to node-0001 HCA-1/1"},
		{name: "busy", do: func(_ *testing.T, f *fixture, _ *forger) { f.Env.Sim.SA.Mute(true) }, want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := &forger{}
			onSimWith(t, "fattree:k=4", smKey, func(tr engine.Transport) engine.Transport { x.Transport = tr; return x }, nil, func(t *testing.T, f *fixture) {
				if test.do != nil {
					test.do(t, f, x)
				}
				runs := [][]string{{"sa", "--pairs", "56"}, {"sa", "--deep"}}
				if x.attr == mad.AttrNodeRecord {
					runs = runs[:1]
				}
				for _, words := range runs {
					var got []string
					for _, line := range strings.Split(textOf(audited(t, f, audits.RunOptions{}, words...)), "\n") {
						if !strings.HasPrefix(line, "not judged") {
							got = append(got, line)
						}
					}
					if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
						t.Errorf("%q: -want +got:\n%s", words, diff)
					}
				}
			})
		})
	}
}
