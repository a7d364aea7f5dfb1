package builtins

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestSilentKind: where nobody answers registers, some of each kind of device are
// asked, and the coverage tells of all; where one answers, everybody is asked.
func TestSilentKind(t *testing.T) {
	const spec = "fattree:k=8,levels=2,registers=yes" // 8 and 4 switches of a kind, 32 CAs
	for _, test := range []struct {
		name    string
		answers int // CAs
		want    []audit.Row
		lacked  string
		most    uint64 // datagrams
	}{
		{"nobody", 0, nil, "MGIR: no answer to 44 of 44 requests", 450},
		{"half", 16, nil, "MGIR: no answer to 28 of 44 requests", 670},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, spec, nil, func(t *testing.T, f *fixture) {
				answers := test.answers
				base, err := topology.SweepQuietly(context.Background(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				for i := range base.Nodes() {
					n := &base.Nodes()[i]
					if !n.IsSwitch() && answers > 0 {
						answers--
						continue
					}
					for num := range n.NumPorts() + 1 {
						if err := f.Env.Sim.Faults.LosePackets(sim.End{Node: n.ID(), Num: num}, 100, mad.AttrAccessRegister.ID); err != nil && num > 0 {
							t.Fatal(err)
						}
					}
				}
				r := audited(t, f, audits.RunOptions{}, "health", "--over=1s")
				_, rows := statusOf(f, r)
				rows = slices.DeleteFunc(rows, func(r audit.Row) bool { return r.Attribute != "MGIR" })
				if diff := cmp.Diff(test.want, rows); diff != "" {
					t.Errorf("coverage -want +got\n%s", diff)
				}
				if len(r.Unjudged) != 9 || r.Unjudged[0].Lacked != test.lacked || r.Complete() || !r.Answered() {
					t.Errorf("not judged: %v; want 9 checks that lack %s", r.Unjudged, test.lacked)
				}
				if r.Datagrams > test.most {
					t.Errorf("%d datagrams, %d at most are expected", r.Datagrams, test.most)
				}
			})
		})
	}
}

// TestSilentOwnPort: a sweep that does not get beyond its own port is no whole one, live or
// kept in a file; nor is a file of a sweep that saw the fabric change.
func TestSilentOwnPort(t *testing.T) {
	want := []audit.Row{{Audit: "sweep", Attribute: "PortInfo", Requests: 1, TimedOut: 1}}
	x := &troubled{attr: mad.AttrPortInfo, lose: true}
	wrap := func(tr engine.Transport) engine.Transport { x.Transport = tr; return x }
	onSimWith(t, "ring:n=2", nil, wrap, nil, func(t *testing.T, f *fixture) {
		swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		file := ofFile(t, swept)
		defer file.Close()
		for _, of := range []*fixture{f, file} {
			code, rows := statusOf(of, audited(t, of, audits.RunOptions{}, "links"))
			if diff := cmp.Diff(want, rows); diff != "" || code != 3 {
				t.Errorf("live %v: status %d, coverage -want +got\n%s", of == f, code, diff)
			}
		}
	})
	b := fabric.NewBuilder()
	b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NodeGUID: 1, PortGUID: 1, NumPorts: 2}, Name: "switch-1"})
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemChanged, Text: "switch-1 was restarted"})
	file := ofFile(t, b.Build())
	defer file.Close()
	r := audited(t, file, audits.RunOptions{}, "links")
	if code := audits.RunStatus(r, audit.Warning); code != 3 || !slices.Equal(r.Notes, []string{"switch-1 was restarted"}) {
		t.Errorf("a fabric that changed: status %d, notes %q", code, r.Notes)
	}
}

// TestUnreadLID: of a port whose PortInfo a sweep did not get nobody says that it has no LID.
func TestUnreadLID(t *testing.T) {
	onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
		base, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Env.Sim.Faults.LosePackets(sim.End{Node: base.NodeByName("node-0002 HCA-1")[0].ID(), Num: 1}, 100, mad.AttrPortInfo.ID); err != nil {
			t.Fatal(err)
		}
		const want = `perf_get: "node-0002 HCA-1" (0x0002c90310000010): its LID is unknown, because the sweep did not read its PortInfo; run discover() again`
		_, explained, code := f.run(`perf_get("PortCounters", discover().node("node-0002 HCA-1"), 1)`)
		if first, _, _ := strings.Cut(explained, "\n"); first != want || code != 3 {
			t.Errorf("status %d, got %s\nwant %s", code, first, want)
		}
	})
}

// troubled is a transport that loses requests for an attribute, or turns their
// answers into refusals, or loses a part of the tables that answer them.
type troubled struct {
	engine.Transport
	attr *mad.Attribute
	node mad.LID // it only, by its place among the requests; 0: all
	lose bool
	cut  bool
	seen map[string]bool // routes of the requests so far
}

// hits: the MAD is about the attribute.
func (x *troubled) hits(m []byte) bool {
	h := mad.ParseHeader(m)
	a := mad.Lookup(h.Class.Family(), h.Attribute)
	return a != nil && a == x.attr
}

// chosen: a request goes to the one that has the trouble: the first that is asked.
func (x *troubled) chosen(m []byte, lid mad.LID) bool {
	if !x.hits(m) {
		return false
	}
	if x.node == 0 {
		return true
	}
	key := string(binary.BigEndian.AppendUint16(slices.Clone(m[mad.SMPInitialPathOffset:]), uint16(lid)))
	if len(x.seen) == 0 {
		x.seen = map[string]bool{key: true}
	}
	return x.seen[key]
}

func (x *troubled) Send(d *engine.Datagram) error {
	if x.lose && x.chosen(d.MAD, d.LID) {
		return nil
	}
	if !x.lose {
		x.chosen(d.MAD, d.LID)
	}
	return x.Transport.Send(d)
}

func (x *troubled) TrySend(d *engine.Datagram) (bool, error) { return true, x.Send(d) }

func (x *troubled) Recv(d *engine.Datagram) error {
	err := x.Transport.Recv(d)
	if err != nil || x.lose || !x.hits(d.MAD) {
		return err
	}
	if x.cut {
		d.Cut = binary.BigEndian.Uint32(d.MAD[mad.RMPPOffset+4:]) > 1 // all segments but the first
		return nil
	}
	binary.BigEndian.PutUint16(d.MAD[mad.StatusOffset:], binary.BigEndian.Uint16(d.MAD[mad.StatusOffset:])&0x8000|uint16(mad.StatusBadMethodAttribute))
	return nil
}

// TestTroubles: what is not answered, or cut, makes the coverage less than 100 %
// and the status 3; what is not supported is named, and changes no status. Other
// findings are as they are, and nothing is taken for broken that is not known.
func TestTroubles(t *testing.T) {
	const other = "error vl.oper leaf-5/4 - node-0020 HCA-1/1: different numbers of data VLs in use: vl0_7 and vl0\n"
	for _, test := range []struct {
		name    string
		trouble *troubled
		words   []string
		told    string // besides the other finding
		status  int
		rows    []audit.Row
	}{
		{"a cut table of nodes", &troubled{attr: mad.AttrNodeRecord, cut: true}, nil,
			"", 1, []audit.Row{{Audit: "sm", Attribute: "NodeRecord", Requests: 1, Unsupported: 1}}},
		{"no records of groups", &troubled{attr: mad.AttrMCMemberRecord}, nil, "", 1,
			[]audit.Row{{Audit: "multicast", Attribute: "MCMemberRecord", Requests: 1, Unsupported: 1}}},
		{"P_Key tables time out", &troubled{attr: mad.AttrPKeyTable, lose: true}, nil, "", 3,
			[]audit.Row{{Audit: "partitions", Attribute: "P_KeyTable", Requests: 44, TimedOut: 44}}},
		{"one P_Key table times out", &troubled{attr: mad.AttrPKeyTable, lose: true, node: 1}, nil, "", 3,
			[]audit.Row{{Audit: "partitions", Attribute: "P_KeyTable", Requests: 44, Answered: 43, TimedOut: 1}}},
		{"no P_Key tables", &troubled{attr: mad.AttrPKeyTable}, nil, "", 1,
			[]audit.Row{{Audit: "partitions", Attribute: "P_KeyTable", Requests: 44, Unsupported: 44}, {Audit: "sa", Attribute: "P_KeyTable", Requests: 32, Unsupported: 32}}},
		{"no SMInfo", &troubled{attr: mad.AttrSMInfo, lose: true}, nil, "", 3,
			[]audit.Row{{Audit: "sm", Attribute: "SMInfo", Requests: 1, TimedOut: 1}}},
		{"one multicast table times out", &troubled{attr: mad.AttrMulticastForwardingTable, lose: true, node: 1}, []string{"config", "multicast", "--deep"}, "", 3,
			[]audit.Row{{Audit: "multicast", Attribute: "MulticastForwardingTable", Requests: 12, Answered: 11, TimedOut: 1}}},
		{"no mapping of service levels", &troubled{attr: mad.AttrSLtoVLMappingTable}, []string{"config", "--deep"}, "", 1,
			[]audit.Row{{Audit: "config", Attribute: "SLtoVLMappingTable", Requests: 128, Unsupported: 128}}},
		{"no arbitration", &troubled{attr: mad.AttrVLArbitrationTable}, []string{"config", "--deep"}, "", 1,
			[]audit.Row{{Audit: "config", Attribute: "VLArbitrationTable", Requests: 127, Unsupported: 127}}},
		{"no congestion control", &troubled{attr: mad.AttrCongestionInfo}, []string{"config", "--deep"}, "", 1,
			[]audit.Row{{Audit: "config", Attribute: "CongestionInfo", Requests: 44, Unsupported: 44}}},
		{"congestion control times out", &troubled{attr: mad.AttrCACongestionSetting, lose: true}, []string{"config", "--deep"}, "", 1, nil},
		{"no counters", &troubled{attr: mad.AttrPortCounters}, []string{"config", "mine.star"}, "", 3,
			[]audit.Row{{Audit: "mine", Attribute: "PortCounters", Requests: 32, Unsupported: 32}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			wrap := func(tr engine.Transport) engine.Transport {
				test.trouble.Transport = tr
				return test.trouble
			}
			onSimWith(t, "fattree", smKey, wrap, nil, func(t *testing.T, f *fixture) {
				write(t, f.fs, "/work/mine.star", `
def audit(fabric):
    for p, r in zip(fabric.cas, perf_get("PortCounters", fabric.cas, 1)):
        if r and r.link_downed > 0:
            finding("mine.downed", p, "went down")
`)
				base, err := topology.SweepQuietly(context.Background(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				for i := range base.Nodes() { // without it, multicast tables are read whole
					f.Env.Sim.Edit.Node(base.Nodes()[i].GUID(), func(_ *string, _ *mad.NodeInfo, sw *mad.SwitchInfo) { sw.MulticastFDBTop = 0 })
				}
				f.Env.Sim.Edit.Port(end(t, base, "node-0020 HCA-1", 1).Node, 1, func(i *mad.PortInfo) { i.OperationalVLs = mad.OperationalVLs0 })
				r := audited(t, f, audits.RunOptions{}, test.words...)
				want := test.told + other
				if !r.Answered() && test.words == nil { // the audit self is in the standard set
					for _, row := range test.rows {
						want += fmt.Sprintf("warning audit.coverage fabric: requests without an answer: %s of %s: %d of %d\n", row.Attribute, row.Audit, row.TimedOut+row.Failed, row.Requests)
					}
				}
				if diff := cmp.Diff(want, told(r)); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
				code, rows := statusOf(f, r)
				if diff := cmp.Diff(test.rows, rows); diff != "" || code != test.status {
					t.Errorf("status %d, want %d; coverage -want +got\n%s", code, test.status, diff)
				}
			})
		})
	}
}
