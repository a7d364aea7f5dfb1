package builtins

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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
			"", 1, []audit.Row{{Audit: "sm", Attribute: "NodeRecord", Asked: 1, Unsupported: 1}}},
		{"no records of groups", &troubled{attr: mad.AttrMCMemberRecord}, nil, "", 1,
			[]audit.Row{{Audit: "multicast", Attribute: "MCMemberRecord", Asked: 1, Unsupported: 1}}},
		{"P_Key tables time out", &troubled{attr: mad.AttrPKeyTable, lose: true}, nil, "", 3,
			[]audit.Row{{Audit: "partitions", Attribute: "P_KeyTable", Asked: 44, TimedOut: 44}}},
		{"one P_Key table times out", &troubled{attr: mad.AttrPKeyTable, lose: true, node: 1}, nil, "", 3,
			[]audit.Row{{Audit: "partitions", Attribute: "P_KeyTable", Asked: 44, Answered: 43, TimedOut: 1}}},
		{"no P_Key tables", &troubled{attr: mad.AttrPKeyTable}, nil, "", 1,
			[]audit.Row{{Audit: "partitions", Attribute: "P_KeyTable", Asked: 44, Unsupported: 44}}},
		{"no SMInfo", &troubled{attr: mad.AttrSMInfo, lose: true}, nil, "", 3,
			[]audit.Row{{Audit: "sm", Attribute: "SMInfo", Asked: 1, TimedOut: 1}}},
		{"one multicast table times out", &troubled{attr: mad.AttrMulticastForwardingTable, lose: true, node: 1}, []string{"config", "multicast", "--deep"}, "", 3,
			[]audit.Row{{Audit: "multicast", Attribute: "MulticastForwardingTable", Asked: 12, Answered: 11, TimedOut: 1}}},
		{"no mapping of service levels", &troubled{attr: mad.AttrSLtoVLMappingTable}, []string{"config", "--deep"}, "", 1,
			[]audit.Row{{Audit: "config", Attribute: "SLtoVLMappingTable", Asked: 128, Unsupported: 128}}},
		{"no arbitration", &troubled{attr: mad.AttrVLArbitrationTable}, []string{"config", "--deep"}, "", 1,
			[]audit.Row{{Audit: "config", Attribute: "VLArbitrationTable", Asked: 127, Unsupported: 127}}},
		{"no congestion control", &troubled{attr: mad.AttrCongestionInfo}, []string{"config", "--deep"}, "", 1,
			[]audit.Row{{Audit: "config", Attribute: "CongestionInfo", Asked: 44, Unsupported: 44}}},
		{"congestion control times out", &troubled{attr: mad.AttrCACongestionSetting, lose: true}, []string{"config", "--deep"}, "", 1, nil},
		{"no counters", &troubled{attr: mad.AttrPortCounters}, []string{"config", "mine.star"}, "", 1,
			[]audit.Row{{Audit: "mine", Attribute: "PortCounters", Asked: 32, Unsupported: 32}}},
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
						want += fmt.Sprintf("warning audit.coverage fabric: requests without an answer: %s of %s: %d of %d\n", row.Attribute, row.Audit, row.TimedOut+row.Failed, row.Asked)
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
