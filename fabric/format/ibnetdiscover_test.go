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
	"fabsh/mad"
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

// TestSystemGUID: of switchguid=0xSYSTEM(NODE), as ibdiagnet writes it for the chips of a
// director, the node has the GUID in parentheses. ibnetdiscover's switchguid=0xNODE(PORT) stays.
func TestSystemGUID(t *testing.T) {
	const file = `vendid=0x2c9
devid=0xd2f0
switchguid=0xb8cef60300734fa4(b8cef60300734f01)
Switch	41 "S-b8cef60300734f01"		# "MF0;director:MCS8500/L01/U1" enhanced port 0 lid 1 lmc 0
[1]	"S-b8cef60300734f02"[1]		# "MF0;director:MCS8500/L02/U1" lid 2 4xHDR

vendid=0x2c9
devid=0xd2f0
sysimgguid=0xb8cef60300734fa0
switchguid=0xb8cef60300734fa4(b8cef60300734f02)
Switch	41 "S-b8cef60300734f02"		# "MF0;director:MCS8500/L02/U1" enhanced port 0 lid 2 lmc 0
[1]	"S-b8cef60300734f01"[1]		# "MF0;director:MCS8500/L01/U1" lid 1 4xHDR
[2]	"S-0000000000000003"[2]		# "plain" lid 3 4xHDR

switchguid=0x3(4)
Switch	36 "S-0000000000000003"		# "plain" enhanced port 0 lid 3 lmc 0
[2]	"S-b8cef60300734f02"[2]		# "MF0;director:MCS8500/L02/U1" lid 2 4xHDR
`
	f, err := format.Load(strings.NewReader(file), "file", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []mad.GUID
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		got = append(got, n.GUID(), n.Port(0).GUID(), n.Info().SystemImageGUID)
	}
	want := []mad.GUID{
		3, 4, 0,
		0xb8cef60300734f01, 0xb8cef60300734f01, 0xb8cef60300734fa4,
		0xb8cef60300734f02, 0xb8cef60300734f02, 0xb8cef60300734fa0,
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	}
}
