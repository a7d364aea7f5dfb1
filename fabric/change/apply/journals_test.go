package apply_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric"
	"fabsh/fabric/change/apply"
	"fabsh/mad"
)

// TestOtherSubnet: a journal is used only in its own subnet, although another one has a port and
// switches with equal GUIDs. In its own subnet it is found wherever the switches are now.
func TestOtherSubnet(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		moved      bool     // other nodes are where the switches were
		others     mad.GUID // added to the GUIDs of all switches but the first
		want       string
	}{
		{"same", "fattree:k=4,levels=2", false, 0, ""},
		{"moved", "fattree:k=4,levels=2", true, 0, ""},
		{"outage", "ring:n=2", true, 0, ""},
		{"other", "ring:n=2", false, 0x100000, "is of another subnet (prefix 0xfe80000000000000, 6 switches from 0x0002c90300100000), not of this one (prefix 0xfe80000000000000, 2 switches from 0x0002c90300100000, with 1 of those 6); give --state DIR for the changes of this subnet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of, here := newRig(t, "fattree:k=4,levels=2"), newRig(t, test.spec)
				port := here.f.From()
				state := t.TempDir()
				dir := filepath.Join(state, fabric.SubnetOf(of.f, "").Key())
				b := &apply.Begin{Summary: "test", Port: port.GUID(), Prefix: fabric.DefaultPrefix}
				for i := range of.f.Nodes() {
					if n := &of.f.Nodes()[i]; n.IsSwitch() {
						route := n.Route()
						if test.moved {
							route = mad.DirectedRoute{0}
						}
						guid := n.GUID()
						if len(b.Switches) > 0 {
							guid += test.others
						}
						b.Switches = append(b.Switches, apply.Member{GUID: guid, Route: route})
					}
				}
				os.MkdirAll(dir, 0o700)
				j, err := apply.NewJournal(apply.JournalIn(dir), b, clock{})
				if err != nil {
					t.Fatal(err)
				}
				j.Close()
				run, end := here.run(dir)
				defer end()
				want := test.want
				if want != "" {
					want = apply.JournalIn(dir) + " " + want
				}
				found, err := run.Host.Latest(t.Context())
				if want == "" && (err != nil || found.Dir != dir) || want != "" && (err == nil || err.Error() != want) {
					t.Errorf("Latest: %v, want %q", err, want)
				}
				open, damaged := run.Host.Unended(t.Context())
				if refused := test.moved || want != ""; (open == nil) != refused || (len(damaged) == 1) != refused || refused && !strings.HasPrefix(damaged[0].Error(), `interrupted change "test": its journal `+apply.JournalIn(dir)+" may be of another subnet: ") {
					t.Errorf("Unended: %v, %q", open, damaged)
				}
				if want == "" {
					want = (&apply.OpenError{Begin: b}).Error()
				}
				if outcome, err := run.Apply(t.Context(), here.f, nil, &apply.Begin{Cells: here.cells}); outcome != apply.Unresolved || err == nil || err.Error() != want {
					t.Errorf("Apply: %v, %v, want %q", outcome, err, want)
				}
			})
		})
	}
}
