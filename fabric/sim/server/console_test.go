//go:build linux

package server

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// serveNet serves a bare subnet of a net file.
func serveNet(t testing.TB, net string) *served {
	t.Helper()
	f, err := format.Load(strings.NewReader(net), "net", nil)
	if err != nil {
		t.Fatal(err)
	}
	return serveFabric(t, f, sim.Options{Bare: true})
}

// console gives the peers a console of the server.
func (s *served) console(t testing.TB) *ibsimtest.Fixture {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Console(inR, outW) }()
	t.Cleanup(func() { inW.Close(); <-done; inR.Close(); outW.Close(); outR.Close() })
	return ibsimtest.On(t, s.Name, inW, outR)
}

// consoleDifferences are what the two consoles say differently: times and process
// numbers; ibsim's tables end before LIDs do, port 0 of its switches has a speed of
// its own, and Route ends at the port of a switch where it comes in.
var consoleDifferences = []struct{ pattern, by string }{
	{`(?m)^# Net status - .*`, "# time"},
	{`pid \d+`, "pid N"},
	{`linearcap \d+`, "linearcap N"},
	{`("Sma Port"\[0\].*) +[\d.]+G `, "$1 speed "},
	{`(To node "s\d") port \d+`, "$1 port N"},
}

func normal(text string) string {
	for _, d := range consoleDifferences {
		text = regexp.MustCompile(d.pattern).ReplaceAllString(text, d.by)
	}
	return strings.TrimSpace(text)
}

// consoles are ibsim's and ours.
type consoles struct{ theirs, ours *ibsimtest.Fixture }

// same: both say the same to a command.
func (c *consoles) same(t *testing.T, commands ...string) {
	t.Helper()
	for _, cmd := range commands {
		want, got := c.theirs.Console(t, "%s", cmd), c.ours.Console(t, "%s", cmd)
		if normal(want) != normal(got) {
			t.Errorf("%s: ibsim says\n%s\nhere it is\n%s", cmd, want, got)
		}
	}
}

// The console says what ibsim's does.
func TestConsole(t *testing.T) {
	net := ibsimtest.Net(t, "ring")
	o := ibsimtest.FixtureOptions{SM: "h1", SMArgs: []string{"-R", "minhop"}}
	c := &consoles{ibsimtest.Start(t, net, o), serveNet(t, net).console(t)}
	c.ours.StartSM(t, o).Wait(t, "SUBNET UP")
	c.same(t, "Attached", "attached", "Route 1 2", "Route 2 5", "ROUTE 3 1", "#comment", "")
	for _, node := range []string{"h0", "h1", "s0", "s4", "c0", "c1"} {
		c.same(t, fmt.Sprintf("Dump %q", node))
	}
	if got := c.ours.Console(t, "Dump"); strings.Count(got, "nodeguid") != 13 || !strings.Contains(got, "#  dumped 13 nodes") {
		t.Errorf("Dump:\n%s", got)
	}
	c.ours.Console(t, "X 0")
	if got := c.ours.Attached(t); len(got) != 0 {
		t.Errorf("attached after X 0: %q", got)
	}
}

// The console does what ibsim's does: both fabrics are the same afterwards.
func TestConsoleChanges(t *testing.T) {
	net := ibsimtest.Net(t, "ring")
	c := &consoles{ibsimtest.Start(t, net, ibsimtest.FixtureOptions{}), serveNet(t, net).console(t)}
	for _, cmds := range [][]string{
		{`Unlink "s0"[1]`}, {`ReLink "s0"[1]`}, {`Unlink "s0"`}, {`ReLink "s0"`},
		{`unlink "h0"[1]`, `Unlink "s1"[5]`, `Link "h0"[1] "s1"[5]`}, {`Link "h1"[1] "s0"[5]`},
		{`Clear "s2"[5]`}, {`Baselid "h4"[1] 17 1`}, {`Clear "h4"`},
		{`Guid "h3" 0x1234`},
		{`Error "h2"[1] 100`}, {`Error "s3"[1] 50 21`}, {`Error "s3"[1] 0`}, {`Error "h2" 0`},
	} {
		for _, cmd := range cmds {
			if got := c.ours.Console(t, "%s", cmd); got != "" {
				t.Errorf("%s: %s", cmd, got)
			}
			c.theirs.Console(t, "%s", cmd)
		}
		for _, node := range []string{"h0", "h1", "h2", "h3", "h4", "s0", "s1", "s2", "s3", "s4", "c0"} {
			want := strings.ReplaceAll(c.theirs.Console(t, "Dump %q", node), "portchange 0", "portchange 1")
			got := strings.ReplaceAll(c.ours.Console(t, "Dump %q", node), "portchange 0", "portchange 1")
			if normal(want) != normal(got) {
				t.Errorf("%s, after %q: ibsim says\n%s\nhere it is\n%s", node, cmds, want, got)
			}
		}
	}
}

// ibsim's Guid leaves the ports of a switch as they are, and does nothing to a port:
// it reads the port's number for the GUID.
func TestConsoleGUID(t *testing.T) {
	c := serveNet(t, ibsimtest.Net(t, "ring")).console(t)
	c.Console(t, `Guid "s3" 0x5678`)
	c.Console(t, `Guid "c0"[2] 0x9abc`)
	if got := c.Console(t, `Dump "s3"`); !strings.Contains(got, "nodeguid 5678") || strings.Count(got, "\n5678\t[") != 9 {
		t.Errorf("s3:\n%s", got)
	}
	if got := c.Console(t, `Dump "c0"`); !strings.Contains(got, "\n9abc\t[2]") || !strings.Contains(got, "nodeguid 2c90300002000") {
		t.Errorf("c0:\n%s", got)
	}
}

func TestConsoleMistakes(t *testing.T) {
	c := serve(t, "ring:n=3", true).console(t)
	for cmd, want := range map[string]string{
		`Unlink "nobody"`:                    "# nodeid \"nobody\" not found\n",
		`Unlink "switch-1"[9]`:               "# nodeid \"switch-1\": bad port \"9\"\n",
		`Unlink switch-1`:                    "# expected a node id in quotes: \"switch-1\"\n",
		`Unlink "switch-1`:                   "# expected a quote at the end of the node id: \"\\\"switch-1\"\n",
		`ReLink "switch-1"[1]`:               "# port 1 at nodeid \"switch-1\" was not linked before\n",
		`Link "switch-1"[1] "switch-2"[1]`:   "# can't link: a port is linked already\n",
		`Error "switch-1"[1] 101`:            "# error rate must be in [0..100] range (\"101\")\n",
		`Error "switch-1"[1]`:                "# error rate is missing\n",
		`Guid "switch-1" x`:                  "# nodeid \"switch-1\": expected a GUID, as 0x2c9000100010001: \"x\"\n",
		`Route 1 2`:                          "# to/from lid unconfigured. Usage: route from-lid to-lid\n",
		`Route`:                              "# bad lid value. Usage: route from-lid to-lid: \"\"\n",
		`X 3`:                                "# disconnect client: bad clientid \"3\"\n",
		`Unlnk "switch-1"`:                   "command \"Unlnk \\\"switch-1\\\"\" unknown - skipped (did you mean Unlink?)\n",
		`Set "switch-1"[1] PortCounters.X=1`: "# field X cannot be found in attribute PortCounters\n",
		`Set "switch-1"[1] PortCounter.X=1`:  "# attribute PortCounter not found (did you mean PortCounters?)\n",
		`Set "switch-1"[1] PortCounters.PortXmitWait=x`: "# value \"x\" is not valid integer\n",
		`Baselid "switch-1"[0] 49152`:                   "# LID 49152, LMC 0: not a range of unicast LIDs\n",
		`Wait 0`:                                        "# wait: bad param \"0\"\n",
		`Verbose 2`:                                     "",
		`Start`:                                         "",
	} {
		if got := c.Console(t, "%s", cmd); got != want {
			t.Errorf("%s: %q, want %q", cmd, got, want)
		}
	}
}

// Counters set at the console are read by perfquery.
func TestConsoleCounters(t *testing.T) {
	s := serve(t, "ring:n=3", false)
	c := s.console(t)
	for cmd, want := range map[string]string{
		`PerformanceSet "switch-1"[1] PortCounters.SymbolErrorCounter=77`:                             "switch-1[1] PortCounters.SymbolErrorCounter has been set to 77\n",
		`PerformanceSet "switch-1"[1] portcounters.linkdownedcounter=5000`:                            "switch-1[1] portcounters.linkdownedcounter has been set to 255\n",
		`PerformanceSet "switch-1"[1] PortRcvErrorDetails.PortLocalPhysicalErrors=3`:                  "switch-1[1] PortRcvErrorDetails.PortLocalPhysicalErrors has been set to 3\n",
		`PerformanceSet "switch-1"[1] PortVLXmitFlowCtlUpdateErrors.PortVLXmitFlowCtlUpdateErrors2=2`: "switch-1[1] PortVLXmitFlowCtlUpdateErrors.PortVLXmitFlowCtlUpdateErrors2 has been set to 2\n",
	} {
		if got := c.Console(t, "%s", cmd); got != want {
			t.Errorf("%s: %q, want %q", cmd, got, want)
		}
	}
	lid := sweep(t, s.attach(t, ibsim.Options{})).NodeByName("switch-1")[0].LID()
	out := c.Run(t, "perfquery", fmt.Sprint(lid), "1")
	for _, want := range []string{"SymbolErrorCounter:..............77\n", "LinkDownedCounter:...............255\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("perfquery does not show %q:\n%s", want, out)
		}
	}
}

// Error loses as many as it says.
func TestConsoleErrors(t *testing.T) {
	c := serve(t, "ring:n=3", false).console(t)
	all := c.Run(t, "ibnetdiscover")
	c.Console(t, `Error "node-0003 HCA-1"[1] 100`)
	if less := c.Run(t, "ibnetdiscover"); strings.Count(less, "\nCa") != strings.Count(all, "\nCa")-1 {
		t.Errorf("with a port that loses everything, ibnetdiscover shows\n%s", less)
	}
	c.Console(t, `Error "node-0003 HCA-1"[1] 100 16`) // NodeDescription
	if out := c.Run(t, "ibnetdiscover"); strings.Count(out, "\nCa") != strings.Count(all, "\nCa") || strings.Contains(out, "node-0003") {
		t.Errorf("with a node that has no name, ibnetdiscover shows\n%s", out)
	}
	c.Console(t, `Error "node-0003 HCA-1" 0`)
}

// Quit ends the server, and so does the end of a context.
func TestQuit(t *testing.T) {
	s := serve(t, "ring:n=3", true)
	s.Console(strings.NewReader("Help\nQuit\nDump\n"), io.Discard)
	if s.stop(); s.ended != ErrQuit {
		t.Errorf("Serve returned %v", s.ended)
	}
	s.Console(strings.NewReader("Dump\n"), io.Discard)
}
