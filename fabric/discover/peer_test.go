package discover_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/discover"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// onIbsim starts an engine on the first node of a private ibsim.
func onIbsim(t *testing.T, sim *ibsimtest.Fixture, o engine.Options) *engine.Engine {
	t.Helper()
	tr, err := ibsim.Attach(ibsim.Options{Socket: sim.Name})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(tr, o)
	t.Cleanup(func() { e.Close() })
	return e
}

// TestIbsimOddities sweeps what the console of ibsim can make: nodes that share
// a GUID, a link that is removed, a port that loses all packets.
func TestIbsimOddities(t *testing.T) {
	sim := ibsimtest.Start(t, ibsimtest.FatTree(3, 2, 2), ibsimtest.FixtureOptions{})
	e := onIbsim(t, sim, engine.Options{})
	summary := func() string {
		f, err := discover.Sweep(t.Context(), e, discover.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprintln(f)
		for _, p := range f.Problems() {
			s += fmt.Sprintf("%s: %s\n", p.Kind, p.Text)
		}
		// Where ibsim takes long to give datagrams back, more are sent meanwhile.
		return regexp.MustCompile(`after ([6-9]|[1-9][0-9]) attempts`).ReplaceAllString(s, "after 6 attempts")
	}
	hosts := func(route string) string {
		return `duplicate guid: node GUID 0x0002c90300000010 belongs to 2 nodes: CA "host-0-0 HCA-1" on route 0, CA "host-1-1 HCA-1" on route ` + route +
			"; change all but one with their vendor's tool: subnet managers treat them as one node\n"
	}
	leaves := `duplicate guid: node GUID 0x0002c90300000030 belongs to 2 nodes: switch "leaf-0" on route 0,1, switch "leaf-2" on route 0,1,3,3` +
		"; change all but one with their vendor's tool: subnet managers treat them as one node\n"
	for _, step := range []struct{ command, want string }{
		{"", "fabric: 11 nodes (5 switches, 6 CAs), 12 links, complete; no subnet manager; port in Init\n"},
		{`Guid "host-1-1" 0x2c90300000010`, "fabric: 11 nodes (5 switches, 6 CAs), 12 links, complete; no subnet manager; port in Init\n" + hosts("0,1,3,2,2")},
		{`Guid "leaf-2" 0x2c90300000030`, "fabric: 11 nodes (5 switches, 6 CAs), 12 links, complete; no subnet manager; port in Init\n" + hosts("0,1,3,2,2") + leaves},
		{`Unlink "leaf-1"[3]`, "fabric: 11 nodes (5 switches, 6 CAs), 11 links, complete; no subnet manager; port in Init\n" + hosts("0,1,4,2,2") + leaves},
		{`Error "host-0-1"[1] 100`, "fabric: 10 nodes (5 switches, 5 CAs), 10 links, incomplete: 1 timed out; no subnet manager; port in Init\n" + hosts("0,1,4,2,2") + leaves +
			`timed out: port 2 of "leaf-0" (0x0002c90300000030): the node at the other end is unknown: SubnGet(NodeInfo) to route 0,1,2: timed out after 6 attempts; the link is up, so check that node and the cable` + "\n"},
	} {
		if step.command != "" {
			sim.Console(t, "%s", step.command)
		}
		if d := cmp.Diff(step.want, summary()); d != "" {
			t.Errorf("%s: (-want +got):\n%s", step.command, d)
		}
	}
}

// TestIbsimKilled: an ibsim that dies in mid-sweep ends the sweep.
func TestIbsimKilled(t *testing.T) {
	sim := ibsimtest.Start(t, ibsimtest.FatTree(18, 9, 9), ibsimtest.FixtureOptions{})
	e := onIbsim(t, sim, engine.Options{Timeout: 200 * time.Millisecond})
	begin := time.Now()
	f, err := discover.Sweep(t.Context(), e, discover.Options{Progress: func(nodes int) {
		if nodes == 20 {
			sim.Kill(t) // the sweep waits: a fast one would end before it
		}
	}})
	t.Logf("%v: %v, %v", time.Since(begin), f, err)
	if err == nil && f.Complete() {
		t.Errorf("%v after ibsim was killed", f)
	}
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("took %v", d)
	}
}
