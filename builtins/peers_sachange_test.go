//go:build linux

package builtins

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/lang"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestSAChangesOpenSM makes the changes of TestSAChanges beside OpenSM.
func TestSAChangesOpenSM(t *testing.T) {
	f := onIbsim(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{SM: "h1", SMArgs: quiet}, func(o *SessionOptions) { o.Write = true })
	want, err := os.ReadFile(saChangesWanted)
	if err != nil {
		t.Fatal(err)
	}
	// The end of a request of 256 bytes does not come through libumad2sim.
	end := regexp.MustCompile(`"service_data64":\[\d+,\d+\]`)
	lines := func(s string) []string {
		return strings.Split(end.ReplaceAllString(s, `"service_data64":[]`), "\n")
	}
	theirs, ours := lines(saAnswers(t, f.fixture)), lines(string(want))
	for i, step := range saChangeSteps {
		if diff := cmp.Diff(strings.Split(theirs[i], ","), strings.Split(ours[i], ",")); diff != "" {
			t.Errorf("%s (-OpenSM +wanted):\n%s", step, diff)
		}
	}
}

// TestSAOptional asks OpenSM for what it need not know. The paths between sets
// of ports are those that it tells one by one; traces it does not know.
func TestSAOptional(t *testing.T) {
	f := onIbsimFor(t, 2*time.Second, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{SM: "h1", SMArgs: quiet, RMPP: true}, nil) // some of it is not answered
	f.Format = lang.FormatText
	const gids = `g = [gid(p.guid, prefix="0xfe80000000000000") for c in discover().cas for p in c.ports if p.peer]; `
	for _, test := range []struct {
		code, out, err string
		status         int
	}{
		{gids + `sa_getmulti(sgids=g[:2], dgids=g[2:]) == [sa_get("PathRecord", sgid=s, dgid=d) for s in g[:2] for d in g[2:]]`, "True\n", "", 0},
		{gids + `len(sa_getmulti(sgids=g, dgids=g[0], numb_path=2))`, "2\n", "", 0},
		{gids + `sa_getmulti(sgids=g, dgids=g[0], mtu_selector="greater_than", mtu="4096")`, "[]\n", "", 0},
		{`m = sa_get("PathRecord", slid=1, dlid=2).mtu; [[r.mtu for r in sa_gettable("PathRecord", slid=1, dlid=2, mtu=x)] for x in (m, "4096")] == [[m], []]`, "True\n", "", 0},
		{`sa_getmulti(sgids="fe80::1234", dgids="fe80::1234")`, "",
			"sa_getmulti: MultiPathRecord of the subnet administrator: SubnAdmGetMulti(PathRecord) to LID 1: invalid gid (status 0x0500); check that a port has this GID, which is the subnet prefix and the port GUID", 3},
		{`sa_gettrace(slid=1, dlid=2)`, "",
			"sa_gettrace: TraceRecord of the subnet administrator: SubnAdmGetTraceTable(TraceRecord) to LID 1: timed out after 3 attempts in 6s; method probably not supported: the subnet administrator answers other requests (OpenSM drops requests that it does not support)", 3},
		{`sa_gettable("RandomForwardingTableRecord")`, "",
			"sa_gettable: RandomForwardingTableRecord of the subnet administrator: SubnAdmGetTable(RandomForwardingTableRecord) to LID 1: timed out after 3 attempts in 6s; record probably not supported: the subnet administrator answers other requests (OpenSM drops requests that it does not support); or the answer takes long or was lost: increase --timeout and --retries", 3},
	} {
		out, explained, status := f.run(test.code)
		if explained = firstLines(explained, test.err); out != test.out || explained != test.err || status != test.status {
			t.Errorf("%s\n%s%s\nstatus %d", test.code, out, explained, status)
		}
	}
}
