package hosts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestSlurmController: Slurm's controller (22.05) takes the commands: it drains nodes without a
// reason or with one of fabsh, and lifts only these drains. NodeName=all would be all nodes.
func TestSlurmController(t *testing.T) {
	s := ibsimtest.StartSlurm(t, "SwitchName=leaf Nodes=n[1-6]\n", "n[1-6]")
	const reasons = "sinfo -a -h -N -o '%N %E|%T'"
	// Without slurmd, only nodes that were down take UNDRAIN without an error.
	s.Shell(t, `for n in n1 n4 n5; do scontrol update NodeName=$n State=DOWN Reason='fabsh: down'; done
scontrol update NodeName=n2 State=DRAIN Reason='bad DIMM'
scontrol update NodeName=n6 State=DRAIN Reason='RMA'`)
	bad := func(name string) HostHealth {
		return HostHealth{Name: name, State: Unhealthy, Reasons: []Reason{{ID: "x.y:0x1", Check: "x.y", Text: `it's "bad"; $(reboot)`}}}
	}
	r := &HealthReport{Judged: []string{"x.y"}, Hosts: []HostHealth{bad("n1"), bad("n2"), bad("n3"), bad("n4"), {Name: "n5", State: Degraded}, {Name: "n6"}, bad("n7"), bad("all")}}
	text, refused := slurmFormat(t).Write(r, Output{})
	if out := s.Shell(t, text); out != "" || len(refused) != 1 {
		t.Errorf("%s\nrefused %v", out, refused)
	}
	const why = `fabsh: x.y it's "bad"; $(reboot)`
	want := "n1 " + why + "|drained\nn2 bad DIMM|drained\nn3 " + why + "|drained\nn4 " + why + "|drained\nn5 fabsh: down|down\nn6 RMA|drained\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(s.Shell(t, reasons), "*", "")); diff != "" {
		t.Errorf("drained: -want +got\n%s", diff)
	}
	drained, err := ReadDrained([]byte(s.Shell(t, "sinfo -a -h -N -o '%N %E'")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Hosts {
		r.Hosts[i] = HostHealth{Name: r.Hosts[i].Name, State: OK}
	}
	r.Hosts[3] = bad("n4")
	text, _ = slurmFormat(t).Write(r, Output{Drained: drained})
	s.Shell(t, "scontrol update NodeName=n4 State=DRAIN Reason='mine now'") // after the list was made
	s.Shell(t, text)
	want = "n1 " + why + "|down\nn2 bad DIMM|drained\nn3 none|unknown\nn4 mine now|drained\nn5 fabsh: down|down\nn6 RMA|drained\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(s.Shell(t, reasons), "*", "")); diff != "" {
		t.Errorf("lifted: -want +got\n%s", diff)
	}
	if asJSON := s.Shell(t, "scontrol show node --json"); strings.HasPrefix(asJSON, "{") {
		again, err := ReadDrained([]byte(asJSON))
		if err != nil || len(again) != 6 || again[0].Node != "n1" || again[0].Reason != why || again[1].Reason != "bad DIMM" {
			t.Errorf("%v, %v of\n%s", again, err, asJSON)
		}
	} else {
		t.Logf("no JSON: %s", asJSON)
	}
}
