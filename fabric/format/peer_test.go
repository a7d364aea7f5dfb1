package format_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestIbnetdiscover compares a discovery and what is written of it with
// ibnetdiscover, on subnets that OpenSM brought up: the output, record for
// record, and the number of MADs.
func TestIbnetdiscover(t *testing.T) {
	for _, name := range ibsimtest.Nets() {
		t.Run(name, func(t *testing.T) {
			net := ibsimtest.Net(t, name)
			first := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net)[1]
			sim := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: first})
			want := sim.Run(t, "ibnetdiscover", "-m")

			tr, err := ibsim.Attach(ibsim.Options{Socket: sim.Name})
			if err != nil {
				t.Fatal(err)
			}
			e := engine.New(tr, engine.Options{})
			defer e.Close()
			f, err := discover.Sweep(t.Context(), e, discover.Options{})
			if err != nil {
				t.Fatal(err)
			}
			// What ibnetdiscover does not ask: whether a loop is one.
			loops := 0
			for _, p := range f.Problems() {
				if p.Kind != fabric.ProblemLoopback {
					t.Errorf("%v", p)
				}
				loops++
			}
			var got bytes.Buffer
			if err := format.Dump(&got, f, "ibnetdiscover"); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(records(want), records(got.String())); d != "" {
				t.Errorf("(-ibnetdiscover +fabsh):\n%s", d)
			}
			theirs, err := strconv.Atoi(regexp.MustCompile(`Total MADs used: (\d+)`).FindStringSubmatch(want)[1])
			if ours := e.Stats().Sent - e.Stats().Refused; err != nil || ours > uint64(theirs+loops) {
				t.Errorf("%d MADs sent; ibnetdiscover sent %d", ours, theirs)
			} else {
				t.Logf("%v: %d MADs; ibnetdiscover: %d", f, ours, theirs)
			}
		})
	}
}

// records are the records of a topology file, sorted, without the time it was
// made at and the figures of the sweep.
func records(s string) []string {
	s = regexp.MustCompile(`(?m)^# (Topology file: generated|Reported max hops|Total MADs).*\n`).ReplaceAllString(s, "")
	list := strings.Split(strings.TrimSpace(s), "\n\n")
	slices.Sort(list)
	return list
}

// TestPeerLists: lists that the tools print have the nodes and links of ibnetdiscover's dump.
func TestPeerLists(t *testing.T) {
	for _, name := range ibsimtest.Nets() {
		t.Run(name, func(t *testing.T) {
			net := ibsimtest.Net(t, name)
			first := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net)[1]
			sim := ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: first})
			load := func(tool string, args ...string) *fabric.Fabric {
				f, err := format.Load(strings.NewReader(sim.Run(t, tool, args...)), tool, nil)
				if err != nil {
					t.Fatalf("%s %v: %v", tool, args, err)
				}
				return f
			}
			want := load("ibnetdiscover")
			for _, c := range [][]string{{"ibnetdiscover", "-p"}, {"iblinkinfo"}, {"iblinkinfo", "-l"}, {"iblinkinfo", "-p"}} {
				if d := cmp.Diff(cables(want), cables(load(c[0], c[1:]...))); d != "" {
					t.Errorf("%v (-ibnetdiscover +):\n%s", c, d)
				}
			}
			for _, c := range [][]string{{"ibnetdiscover", "-l"}} {
				got := load(c[0], c[1:]...)
				if len(got.Nodes()) != len(want.Nodes()) {
					t.Errorf("%v: %s, want %s", c, got, want)
				}
				for i := range got.Nodes() {
					if a, b := &got.Nodes()[i], &want.Nodes()[i]; a.GUID() != b.GUID() || a.Type() != b.Type() || a.NumPorts() != b.NumPorts() {
						t.Errorf("%v: %s, want %s", c, a.Label(), b.Label())
					}
				}
			}
		})
	}
}

// cables are the ends of all links: types and port GUIDs, with LIDs, widths and speeds.
func cables(f *fabric.Fabric) (list []string) {
	for i := range f.Ports() {
		p := &f.Ports()[i]
		if q := p.Peer(); q != nil {
			list = append(list, fmt.Sprintln(p.Node().IsSwitch(), strings.TrimSpace(p.Node().Name()), p.GUID(), p.Num(), p.LID(), p.Width(), p.Speed(), q.GUID(), q.Num()))
		}
	}
	slices.Sort(list)
	return list
}
