//go:build linux

package builtins

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestCutTables: what libumad2sim cuts is an error, and what fits is whole.
func TestCutTables(t *testing.T) {
	f := onIbsim(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-3-3"}, nil)
	fab := f.sweep(t)
	leaf := fab.From().Peer().Node()
	for _, test := range []struct {
		code   string
		want   string // all that is written to stdout
		err    string
		status int
	}{
		{`len(sa_gettable("NodeRecord", lid=1))`, "1\n", "", 0},
		{fmt.Sprintf(`len(sa_gettable("LinkRecord", from_lid=%d))`, leaf.LID()), "6\n", "", 0},
		{`len(sa_gettable("NodeRecord", lid=1000))`, "0\n", "", 0},
		{`print("first"); len(sa_gettable("NodeRecord")); print("second")`, "first\n", "sa_gettable: NodeRecord of the subnet administrator: " +
			"SubnAdmGetTable(NodeRecord) to LID 1: table cut by the transport, which cannot carry long tables; request fewer records", 3},
		{`catch(sa_gettable, "PathRecord", slid=1).status`, "\"table cut by the transport, which cannot carry long tables; request fewer records\"\n", "", 0},
		{`len(sa_gettable("PathRecord", slid=1, dlid=2))`, "1\n", "", 0},
	} {
		f.Format = lang.FormatText
		out, explained, status := f.run(test.code)
		if diff := cmp.Diff(test.want, out); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.code, diff)
		}
		if diff := cmp.Diff(test.err, firstLines(explained, test.err)); diff != "" || status != test.status {
			t.Errorf("%s: status %d, want %d (-want +got):\n%s", test.code, status, test.status, diff)
		}
	}
}

// TestWholeTables gets tables of thousands of records from an OpenSM that
// sends them in segments, as a kernel would.
func TestWholeTables(t *testing.T) {
	const leaves, spines, hosts = 36, 18, 18
	const cas, switches = leaves * hosts, leaves + spines
	f := onIbsim(t, ibsimtest.FatTree(leaves, spines, hosts), ibsimtest.FixtureOptions{SM: "host-35-17", RMPP: true}, nil)
	fab := f.sweep(t)
	if got := len(fab.Nodes()); got != cas+switches {
		t.Fatalf("%d nodes", got)
	}
	for _, test := range []struct {
		query string
		want  int
	}{
		{`"NodeRecord"`, cas + switches},
		{`"NodeRecord", node_type="switch"`, switches},
		{`"SwitchInfoRecord"`, switches},
		{`"LinkRecord"`, 2 * (cas + leaves*spines)},
		{`"LinearForwardingTableRecord"`, switches * ((cas+switches)/64 + 1)},
		{`"PortInfoRecord"`, cas + switches*(36+1)},
		{`"PortInfoRecord", port_state="active", port_num=1`, cas + switches},
		{fmt.Sprintf(`"PathRecord", slid=%d`, fab.From().LID()), cas + switches},
		{fmt.Sprintf(`"PathRecord", dlid=%d`, fab.From().LID()), cas + switches},
	} {
		var n int
		if f.eval(t, &n, "len(sa_gettable(%s))", test.query); n != test.want {
			t.Errorf("%s: %d records, want %d", test.query, n, test.want)
		}
	}
	compareNodeRecords(t, f, fab)
	comparePaths(t, f, fab)

	// Many tables at once come whole, too.
	var counts []int
	f.eval(t, &counts, `parallel(lambda i: len(sa_gettable("NodeRecord", node_type=["ca", "switch"][i %% 2])), range(8))`)
	if diff := cmp.Diff([]int{cas, switches, cas, switches, cas, switches, cas, switches}, counts); diff != "" {
		t.Errorf("in parallel (-want +got):\n%s", diff)
	}
}

// compareNodeRecords: OpenSM says of every node what the node says of itself.
func compareNodeRecords(t *testing.T, f *peerFixture, fab *fabric.Fabric) {
	t.Helper()
	type node struct {
		Name  string `json:"node_string"`
		GUID  string `json:"node_guid"`
		Ports int    `json:"num_ports"`
		Type  string `json:"node_type"`
	}
	var records []struct {
		LID mad.LID
		node
	}
	f.eval(t, &records, `sa_gettable("NodeRecord")`)
	got, want := map[mad.LID]node{}, map[mad.LID]node{}
	for _, r := range records {
		got[r.LID] = r.node
	}
	for i := range fab.Nodes() {
		n := &fab.Nodes()[i]
		want[n.LID()] = node{n.Name(), n.GUID().String(), n.NumPorts(), n.Type().String()}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("NodeRecords (-want +got):\n%s", diff)
	}
}

// comparePaths: there is one path to each LID.
func comparePaths(t *testing.T, f *peerFixture, fab *fabric.Fabric) {
	t.Helper()
	var lids []mad.LID
	f.eval(t, &lids, `[p.dlid for p in sa_gettable("PathRecord", slid=%d)]`, fab.From().LID())
	got, want := map[mad.LID]int{}, map[mad.LID]int{}
	for _, lid := range lids {
		got[lid]++
	}
	for i := range fab.Nodes() {
		want[fab.Nodes()[i].LID()] = 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths to each LID (-want +got):\n%s", diff)
	}
}
