//go:build linux

package server

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"fabsh/mad"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestToolBehaviour: tools that TestTools cannot compare line by line behave on ibsim and
// here as the README of fabric/sim lists.
func TestToolBehaviour(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := strings.Join(strings.Fields(string(b)), " ")
	o := ibsimtest.FixtureOptions{SM: "h1", SMArgs: []string{"-R", "minhop"}}
	theirs := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), o)
	s := serveNet(t, ibsimtest.Net(t, "ring"))
	ours := s.peers(t)
	ours.StartSM(t, o).Wait(t, "SUBNET UP")
	f := sweep(t, s.attach(t, ibsim.Options{Node: "h1"}))
	if n := len(toolCommands(f)); n < 190 {
		t.Errorf("TestTools compares %d calls, want at least 190", n)
	}
	var switches, hosts []mad.LID
	for i := range f.Nodes() {
		switch n := &f.Nodes()[i]; {
		case n.IsSwitch():
			switches = append(switches, n.LID())
		case n != f.From().Node():
			hosts = append(hosts, n.LID())
		}
	}
	own := f.From().Node().LID()
	vendor := "Requests of vendors' classes from 0x30 on time out, as on ibsim: ibsysstat ignores the status of an answer and would report that a server runs."
	for _, c := range []struct{ command, reason, theirs, ours string }{
		{fmt.Sprint("ibsysstat ", hosts[0]), vendor, "timed out", "timed out"},
		{fmt.Sprint("ibsysstat ", own), vendor, "timed out", "timed out"}, // not to itself
		{fmt.Sprint("ibsysstat ", switches[0]), vendor, "timed out", "timed out"},
		{fmt.Sprint("ibccquery CI ", own), "ibccquery reads the agents of congestion control; ibsim mistakes the class for another, and its answers are meaningless.",
			"ControlTableCap:.................0\n", "ControlTableCap:.................2\n"},
		{fmt.Sprintf("ibportstate %d 1 query", switches[0]), "Directed routes with a LID-routed part (ibportstate of a switch's port shows the peer): only here.",
			"iberror: failed", "Peer PortInfo:"},
	} {
		words := strings.Fields(c.command)
		if !strings.Contains(readme, c.reason) {
			t.Errorf("fabric/sim/README.md does not list: %s", c.reason)
		}
		if got := runTool(t, theirs, "h1", words); !strings.Contains(got, c.theirs) {
			t.Errorf("%s on ibsim: got\n%swant %q", c.command, got, c.theirs)
		}
		if got := runTool(t, ours, "h1", words); !strings.Contains(got, c.ours) {
			t.Errorf("%s here: got\n%swant %q", c.command, got, c.ours)
		}
	}
}
