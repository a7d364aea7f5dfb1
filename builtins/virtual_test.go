package builtins

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// extendedScript reads virtual ports, by the modifier that the simulator has for VPortInfo.
const extendedScript = `f = discover(extended=True, vport_modifier=lambda port, index: index if index else None)
`

// TestDiscoverExtended: virtual ports, planes and health as values; VPortInfo is requested
// only by a modifier of the script.
func TestDiscoverExtended(t *testing.T) {
	onSim(t, "ring:n=2,vports=2", nil, func(t *testing.T, f *fixture) {
		for _, test := range []struct{ code, want string }{
			{"f = discover(extended=True)\n" + `for v in f.virtual_ports: print(v.port.name, v.index, v.state, v.lid, v.guid)`, `node-0001 HCA-1/1 0 active 0 None
node-0001 HCA-1/1 1 active 0 None
node-0001 HCA-1/1 2 active 0 None
node-0002 HCA-1/1 0 active 0 None
node-0002 HCA-1/1 1 active 0 None
node-0002 HCA-1/1 2 active 0 None`},
			{extendedScript + `for v in f.virtual_ports:
    if v.index == None and v.port.node.name == "node-0002 HCA-1": print(v, v.state, v.lid, v.guid)`, `virtual_port("node-0002 HCA-1/1", index=None) active 6 0x0002ca0310000011
virtual_port("node-0002 HCA-1/1", index=None) active 0 0x0002cb0310000011`},
			{extendedScript + `print([(l.plane, l.unhealthy, l.a.unhealthy) for l in f.links][0], f.nodes[0].next_hops, f.nodes[0].router_info, len(discover().virtual_ports))`,
				`(None, None, None) None None 0`},
			{`discover(vport_modifier=lambda p, i: 0)`, `discover: for parameter vport_modifier: requires extended=True`},
			{`discover(via="sa", extended=True)`, `discover: extended is not supported with via="sa"`},
			{`discover(extended=True, vport_modifier=lambda p, i: "a")`, `discover: for parameter vport_modifier: returned "a", want a modifier of 32 bits or None`},
			{`discover(extended=True, vport_modifier=lambda p, i: 1 << 32)`, `discover: for parameter vport_modifier: returned 4294967296, want a modifier of 32 bits or None`},
			{`discover(extended=True, vport_modifier=lambda p, i: fail("my own"))`, `fail: my own`},
			{`print(len(discover(extended=True, vport_modifier=lambda p, i: 77 if i == 1 else None).virtual_ports))`, `6`}, // index 77 does not exist
		} {
			out, explained, _ := f.run(test.code)
			if got := strings.TrimSpace(out + strings.SplitN(explained, "\n", 2)[0]); got != test.want {
				t.Errorf("%s\ngot  %s\nwant %s", test.code, got, test.want)
			}
		}
	})
}

// TestVirtualPortAudits: LIDs and GUIDs of virtual ports count for the audits identity and
// sm, and partitions with virtual ports are not judged by their number of members.
func TestVirtualPortAudits(t *testing.T) {
	onSimWith(t, "ring:n=3,vports=2", smKey, nil, nil, func(t *testing.T, f *fixture) {
		all := kept(t, f)
		f.run(extendedScript)
		read := topology.EnvOf(f.Runtime).Current.Fabric
		healthy := slices.Concat(all.Answers(), read.Answers())
		cas := read.OfType(mad.NodeTypeCA)
		first, second := cas[0].Port(1).GUID(), cas[1].LID() // of physical ports
		// edited returns the answers with VPortInfo of the last node changed, where it has a LID.
		edited := func(change func(v *mad.VPortInfo)) []fabric.Answer {
			list := slices.Clone(healthy)
			for i := range list {
				if a := &list[i]; a.Class == mad.ClassSubn && a.ID == mad.AttrVPortInfo.ID && int(a.Node) == cas[2].ID() {
					var v mad.VPortInfo
					if v.Decode(a.Data); v.LIDRequired {
						change(&v)
						a.Data = make([]byte, len(a.Data))
						v.Encode(a.Data)
					}
				}
			}
			return list
		}
		record := func(lid mad.LID) fabric.Answer {
			data := make([]byte, mad.AttrNodeRecord.Size)
			(&mad.NodeRecord{LID: lid, NodeInfo: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 0x77}}).Encode(data)
			return fabric.Answer{Node: fabric.NoNode, Port: fabric.NoPort, Class: mad.ClassSubnAdm, ID: mad.AttrNodeRecord.ID, Data: data}
		}
		// A partition of one host alone, with virtual ports and without.
		lonely := slices.Clone(healthy)
		for i := range lonely {
			if a := &lonely[i]; a.Class == mad.ClassSubn && a.ID == mad.AttrPKeyTable.ID && a.Modifier&0xffff == 0 && int(a.Node) == cas[2].ID() {
				a.Data = slices.Clone(a.Data)
				a.Data[2], a.Data[3] = 0x80, 0x05
			}
		}
		physical := slices.DeleteFunc(slices.Clone(lonely), func(a fabric.Answer) bool {
			return a.ID == mad.AttrVPortState.ID || a.ID == mad.AttrVPortInfo.ID
		})
		for _, test := range []struct {
			name    string
			answers []fabric.Answer
			want    string
		}{
			{"healthy", healthy, ""},
			{"LID", edited(func(v *mad.VPortInfo) { v.LID = second }), "lid.dup  node-0003 HCA-1/1: LID 5 of a virtual port of this port is also the LID of node-0002 HCA-1/1"},
			{"LID of a virtual port", edited(func(v *mad.VPortInfo) { v.LID -= 1 }), "lid.dup  node-0003 HCA-1/1: LID 8 of a virtual port of this port is also the LID of node-0002 HCA-1/1"},
			{"GUID", edited(func(v *mad.VPortInfo) { v.PortGUID = first }), "guid.dup  node-0003 HCA-1/1: a virtual port of this port has the port GUID of node-0001 HCA-1/1: 0x0002c90310000001"},
			{"record of a virtual port", append(slices.Clone(healthy), record(9)), ""},
			{"record of another node", append(slices.Clone(healthy), record(99)), `node.silent  0x0000000000000077: the subnet administrator has "" at LID 99, but the sweep did not reach it`},
			{"partition", lonely, ""},
			{"partition without virtual ports", physical, "pkey.lonely  node-0003 HCA-1/1: no other port is in partition 0x0005"},
		} {
			var b bytes.Buffer
			if err := format.WriteSnapshot(&b, all.With(fabric.Reading{Answers: test.answers})); err != nil {
				t.Fatal(err)
			}
			snap, err := format.ReadSnapshot(&b, "snapshot")
			if err != nil {
				t.Fatal(err)
			}
			file := ofFile(t, snap)
			r := audited(t, file, audits.RunOptions{}, "identity", "partitions", "sm")
			var got []string
			for i := range r.Findings {
				if x := &r.Findings[i]; !aboutRun(x.ID()) {
					got = append(got, x.Check+"  "+x.Subject.Name()+": "+x.Message)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
			file.Close()
		}
	})
}
