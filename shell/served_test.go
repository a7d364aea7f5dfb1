package shell

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	servedVerdict = `verdict      ok
policy       live
judged       static forwarding tables, SL 0
endpoints    all 243 ports of CAs and routers (243 cn)
pairs        7527168
unreachable  0
loops        0
acyclic      True
max_hops     3
hops         2 links: 2488320 pairs, 3 links: 5038848 pairs
detours      none: 7527168 pairs
to switches: 729 of 729
several LIDs: 243 ports, up to 128; of 39366 pairs, paths without a common link: 1 for 39366; without a common switch: 1 for 39366
`
	servedAudit = `fabric    246 nodes (3 switches, 243 CAs), 246 links, complete
audits    adaptive config counters health identity keys links multicast partitions routing sa self sm topology virtual
coverage  183 of 192 checks; 100 % of 8873 requests; MGIR of health: 246 not supported of 246
not judged  health: nothing could be judged (246 of 246 devices do not support MGIR)
findings  none
`
)

// TestServedLargeLIDs: on fabsh's own server, commands read tables of LIDs that ibsim does
// not have, above 30,719: 243 CAs of 128 LIDs each.
func TestServedLargeLIDs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("abstract sockets")
	}
	if testing.Short() {
		t.Skip("the audits pace thousands of requests")
	}
	t.Parallel()
	name, dir := fmt.Sprintf("fabsh-%016x", rand.Uint64()), t.TempDir()
	serveSim(t, name, "ring:n=3,hosts=81,lmc=7")
	file := filepath.Join(dir, "x.snapshot")
	const top = `print(max([p.lid for p in f.ports if p.lid != None]), [len([lid for lid in range(30720, 31232) if row[lid] != None]) for row in [routes[s] for s in f.switches]])`
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"snapshot", file}, "FILE: fabric: 246 nodes (3 switches, 243 CAs), 246 links, complete, the tables of 3 switches\n"},
		{[]string{"-c", "f = discover()\nroutes = get_routes(f)\n" + top}, "31104 [512, 512, 512]\n"},
		{[]string{"-I", dir, "-c", "f = load_fabric(" + fmt.Sprintf("%q", file) + ")\nroutes = get_routes(f)\n" + top}, "31104 [512, 512, 512]\n"},
		{[]string{"verify"}, servedVerdict},
		{[]string{"audit", "--deep"}, servedAudit},
	} {
		got := outcome(fabsh(t, nil, append([]string{"-q", "-F", "ibsim:" + name, "-t", "5s", "--state", dir}, test.args...)...))
		if diff := cmp.Diff(test.want+"[exit status 0]\n", strings.ReplaceAll(got, file, "FILE")); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.args[0], diff)
		}
	}
}
