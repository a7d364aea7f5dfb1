//go:build linux

package server

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestTools: the tools of infiniband-diags print the same here and on ibsim, of the
// same net file, brought up by OpenSM, but for toolDifferences.
func TestTools(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	known := map[string]bool{}
	b, err := os.ReadFile(hiddenFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		known[strings.TrimSuffix(line, "\n")] = true
	}
	for net, host := range map[string]string{"ring": "h1", "mesh": "login"} {
		t.Run(net, func(t *testing.T) {
			if net != "ring" && os.Getenv("FABSH_SOAK") == "" {
				t.Skip("one is enough but for make soak")
			}
			o := ibsimtest.FixtureOptions{SM: host, SMArgs: []string{"-R", "minhop"}}
			theirs := ibsimtest.Start(t, ibsimtest.Net(t, net), o)
			s := serveNet(t, ibsimtest.Net(t, net))
			ours := s.peers(t)
			ours.StartSM(t, o).Wait(t, "SUBNET UP")
			f := sweep(t, s.attach(t, ibsim.Options{Node: host}))
			for _, cmd := range toolCommands(f) {
				out := func(f *ibsimtest.Fixture) (said string) {
					for range 4 { // a busy machine has no time for OpenSM
						if said = runTool(t, f, host, cmd); !strings.Contains(said, "timed out") {
							break
						}
					}
					return said
				}
				want, _ := normalTool(out(theirs))
				got, hidden := normalTool(out(ours))
				for _, line := range hidden {
					if !known[line] {
						t.Errorf("%s: here is %q, where ibsim is known to differ, which is not in %s", strings.Join(cmd, " "), line, hiddenFile)
					}
				}
				if strings.Contains(want, "timed out") && !strings.Contains(got, "timed out") {
					t.Logf("%s: ibsim is too slow", strings.Join(cmd, " "))
					continue
				}
				if diff := lineDiff(want, got); diff != "" {
					t.Errorf("%s: -ibsim +here%s", strings.Join(cmd, " "), diff)
				}
			}
		})
	}
}

// linkedPeers is a link to the peers, whose name tools write: see ibsimtest.
var linkedPeers = regexp.MustCompile(`/\S*/fabsh-peers-\d+`)

// runTool is what a tool writes and how it ends.
func runTool(t *testing.T, f *ibsimtest.Fixture, host string, cmd []string) string {
	c := f.Command(t, host, cmd[0], append([]string{"-t", "1000"}, cmd[1:]...)...)
	hung := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	defer hung.Stop()
	b, err := c.CombinedOutput()
	return linkedPeers.ReplaceAllString(fmt.Sprintf("%s%v", b, err), "")
}

// lineDiff shows the lines that are only in want, and those only in got.
func lineDiff(want, got string) string {
	count := map[string]int{}
	for line := range strings.SplitSeq(want, "\n") {
		count[line]--
	}
	for line := range strings.SplitSeq(got, "\n") {
		count[line]++
	}
	var out strings.Builder
	for _, line := range slices.Sorted(maps.Keys(count)) {
		switch n := count[line]; {
		case strings.Trim(line, "~ \t") == "": // how many there are is of no interest
		case n < 0:
			fmt.Fprintf(&out, "\n-%s", line)
		case n > 0:
			fmt.Fprintf(&out, "\n+%s", line)
		}
	}
	return out.String()
}

// toolCommands ask for all that the tools can ask.
func toolCommands(f *fabric.Fabric) (list [][]string) {
	add := func(format string, args ...any) { list = append(list, strings.Fields(fmt.Sprintf(format, args...))) }
	add("ibnetdiscover")
	add("ibnetdiscover -p")
	add("ibnetdiscover -f")
	add("ibnetdiscover -g")
	add("ibnetdiscover -l")
	add("ibnetdiscover -H")
	add("ibnetdiscover -S")
	add("saquery -g")
	add("saquery -m")
	add("saquery -L")
	add("iblinkinfo")
	add("iblinkinfo -l")
	add("ibhosts")
	add("ibswitches")
	add("ibqueryerrors")
	add("sminfo")
	add("dump_fts")
	add("saquery SMIR")
	add("saquery -c")
	from := f.From().Node().LID()
	seen := map[string]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		lid := n.LID()
		if lid == 0 {
			continue
		}
		add("smpquery nodedesc %d", lid)
		add("saquery NR %d", lid)
		add("ibtracert %d %d", from, lid)
		kind := fmt.Sprint(n.Type(), n.Info().DeviceID)
		if seen[kind]++; seen[kind] > 1 {
			continue
		}
		add("smpquery nodeinfo %d", lid)
		add("smpquery guids %d", lid)
		add("smpquery switchinfo %d", lid)
		add("smpquery mepi %d", lid)
		add("saquery PR --slid %d --dlid %d", from, lid)
		add("ibroute %d", lid)
		add("ibroute -M %d", lid)
		if n.IsSwitch() {
			add("perfquery -a %d", lid)
			add("perfquery -l %d", lid)
			add("saquery SWIR %d", lid)
			add("saquery LFTR %d/0", lid)
		}
		add("ibaddr %d", lid)
		add("ibsysstat %d", lid)
		for _, num := range []int{0, 1, 2, n.NumPorts()} {
			if n.Port(num) == nil {
				continue
			}
			for _, what := range []string{"portinfo", "pkeys", "sl2vl", "vlarb"} {
				add("smpquery %s %d %d", what, lid, num)
			}
			add("ibportstate %d %d query", lid, num)
			add("saquery PIR %d/%d", lid, num)
		}
		add("smpquery pie %d 1", lid)
		add("saquery GIR %d/0", lid)
		add("saquery PKTR %d/1/0", lid)
		add("saquery VLAR %d/1/1", lid)
		add("saquery SL2VL %d/0/1", lid)
		add("saquery LR %d/1", lid)
		for _, what := range []string{"", "-r", "-x", "--rcverr", "--xmtdisc", "--oprcvcounters", "--flowctlcounters", "--vloppackets", "--vlopdata", "--vlxmitflowctlerrors", "--vlxmitcounters"} {
			add("perfquery %s %d 1", what, lid)
		}
	}
	return list
}

// toolDifferences are what tools print differently on ibsim and here, and why. The
// README of fabric/sim has the reasons; they must be the same ones.
var toolDifferences = []struct{ reason, pattern string }{
	{"Widths and speeds supported and enabled: ibsim's ports have all, ours those of their link in the file, and lower ones. So iblinkinfo reports on ibsim that every link could be faster.", `(?m)^\s*Link(Width|Speed|SpeedExt)(Supported|Enabled):.*`},
	{"", `\((Could be [^)]*| *)\)`},
	{"LinkSpeedActive of a link at an extended speed: 10 Gb/s on ibsim, 0 here.", `(?m)^\s*LinkSpeedActive:.*| s=\d`},
	{"LinkSpeedExtActive of ports without a link, port 0 among them.", `(?m)^\s*LinkSpeedExtActive:.*`},
	{"Sizes of tables of P_Keys, forwarding and multicast, and what of them switches enforce: other devices. ibsim's forwarding tables end at LID 30719 and 49151, ours at 49151.", `(?m)^(PartCap|PartEnforceCap|InboundPartEnf|OutboundPartEnf|FilterRawInbound|FilterRawOutbound|LinearFdbCap|McastFdbCap):.*|partition_cap\.*0x\w+|(?m)^\s*(LinearFDBCap|MulticastFDBCap|PartitionEnforcementCap|flags)\.+0x\w+|Multicast mlids \[[^]]*\]`},
	{"", `(?m)^ *\d+: (0x\w{4} ?)+$|^\d+ pkeys capacity.*`},
	{"DefMcastPrimPort before a subnet manager sets it: 0 on ibsim, 255 (none) here.", `(?m)^DefMcast(Not)?PrimPort:.*|DefaultMulticast(Not)?PrimaryPort\.+\d+`},
	{"MulticastFDBTop: switches have it only here, and OpenSM sets it.", `MulticastFDBTop(:\.+0x\w+|\.+0x\w+)`},
	{"Revision and the part of NodeInfo that no file has.", `(?m)^Revision:.*|revision\.*0x\w+`},
	{"VL arbitration and SL to VL mapping before a subnet manager sets them: ours have as many VLs as the port, all of one weight.", `(?m)^(WEIGHT: |ports: in ).*`},
	{"MKeyLeasePeriod: an uninitialised number on ibsim, 0 here.", `(?m)^\s*MkeyLeasePeriod:.*`},
	{"Capabilities of ports, their times and thresholds: other devices. Ours are of a ConnectX-6 and a Quantum, whose links take 4096 bytes.",
		`(?m)^\s*(CapMask|CapabilityMask2|RoundTrip|OverrunErr|LocalPhysErr|RespTimeVal|SubnetTimeout|NeighborMTU|MtuCap|HoqLife|VLStallCount|VLCap|VLHighLimit|VLArbHighCap|VLArbLowCap|InitReply|OperVLs|GuidCap|PartEnforce(In|Out)b|FilterRaw(In|Out)b|MkeyViolations|PkeyViolations|QkeyViolations|ProtectBits|LinkDownDefState|DiagCode|MaxCreditHint):.*`},
	{"", `(?m)^\s*Is[A-Z]\w+$`},
	{"MTU of paths: ibsim's CAs have 2048 bytes, ours 4096; the rate of a path to oneself follows from the speed.", `\t(mtu|rate)\.+0x\w+`},
	{"Counters of data and packets: ibsim's count each datagram, ours what sim.traffic sends.", `(?m)^Port(Xmit|Rcv|UnicastXmit|UnicastRcv)(Data|Pkts):.*`},
	{"PerfMgt's CapabilityMask: ours has more bits, and AllPortSelect on CAs, so that ibqueryerrors counts all their ports.", `\(CapMask: 0x\w+|\d+ ports checked`},
	{"The GID prefix of ports that no subnet manager has reached: 0 on ibsim, fe80:: here.", `(?m)^GidPrefix:.*`},
	{"Directed routes with a LID-routed part (ibportstate of a switch's port shows the peer): only here.", `(?s:Peer PortInfo:.*)|\S*ibportstate: iberror:.*|(?m)^ibwarn: \[\d+\] .*|^exit status 255|^<nil>$`},
	{"LocalPort of PortInfo of another port: ibsim returns the number of that port.", `(?m)^\s*LocalPort:.*`},
}

// The README has the reasons of all differences.
func TestToolDifferences(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(b)), " ")
	for _, d := range toolDifferences {
		if !strings.Contains(text, d.reason) {
			t.Errorf("fabric/sim/README.md does not say: %s", d.reason)
		}
	}
}

// hiddenFile has all the lines that tools print here in the places where they print
// others on ibsim. A new one is added to it by hand, if it is right.
const hiddenFile = "testdata/tools-here.txt"

// ofNoMeaning are times and process ids.
const ofNoMeaning = `generated on .*|\[\d+\] sim_|(?i)act(ivity count|count\.*) ?\d+`

// places are ports and process ids, which make many lines of one.
var places = regexp.MustCompile(`in +\d+, out +\d+|\[\d{3,}\]`)

// normalTool is text without what toolDifferences tell; hidden are the lines of that.
func normalTool(text string) (normal string, hidden []string) {
	text = regexp.MustCompile(ofNoMeaning).ReplaceAllString(text, "~")
	for _, d := range toolDifferences {
		text = regexp.MustCompile(d.pattern).ReplaceAllStringFunc(text, func(part string) string {
			for line := range strings.Lines(part) {
				if line = strings.TrimSpace(places.ReplaceAllString(line, "~")); strings.Trim(line, "~ ") != "" {
					hidden = append(hidden, line)
				}
			}
			return "~"
		})
	}
	return text, hidden
}

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

// Programs that read what the tools of infiniband-diags print. They are no part of
// this module: make soak gets them, where the network lets it.
const (
	topograph          = "github.com/NVIDIA/topograph/pkg/ib@v1.0.0"
	infinibandExporter = "github.com/treydock/infiniband_exporter@v0.10.0"
)

// A program around topograph's parser: how many switches, hosts, and cables of
// switches it finds.
const topographMain = `package main

import (
	"fmt"
	"io"
	"os"

	"github.com/NVIDIA/topograph/pkg/ib"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	switches, hosts, err := ib.ParseIbnetdiscoverFile(text)
	if err != nil {
		panic(err)
	}
	cables := 0
	for _, s := range switches {
		cables += len(s.Conn)
	}
	fmt.Println(len(switches), len(hosts), cables)
}
`

// A fat tree: 20 switches, whose 4 ports all have cables, and 16 hosts.
const readersSpec = "fattree:k=4,levels=3"

func TestTopograph(t *testing.T) {
	dir := modules(t, topographMain, "get", topograph)
	f := serve(t, readersSpec, false).peers(t)
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "reader"))
	c.Stdin = strings.NewReader(f.Run(t, "ibnetdiscover"))
	if got := ibsimtest.Output(t, c); got != "20 16 80\n" {
		t.Errorf("switches, hosts, cables: %s", got)
	}
}

// infiniband_exporter runs ibnetdiscover, and perfquery of each node.
func TestInfinibandExporter(t *testing.T) {
	dir := modules(t, "", "install", infinibandExporter)
	f := serve(t, readersSpec, false).peers(t)
	c := f.Command(t, "", "ibnetdiscover")
	out := filepath.Join(dir, "metrics")
	c.Path = filepath.Join(dir, "infiniband_exporter")
	c.Args = []string{c.Path, "--exporter.runonce", "--exporter.output=" + out, "--exporter.lockfile=" + filepath.Join(dir, "lock"), "--collector.hca"}
	ibsimtest.Output(t, c)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]int{
		"infiniband_switch_info": 20, "infiniband_hca_info": 16,
		"infiniband_switch_uplink_info": 80, "infiniband_hca_uplink_info": 16,
		"infiniband_switch_port_symbol_error_total": 80, "infiniband_hca_port_transmit_data_bytes_total": 16,
	} {
		if n := len(regexp.MustCompile(`(?m)^`+metric+`\{`).FindAll(b, -1)); n != want {
			t.Errorf("%d of %s, want %d", n, metric, want)
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^\w+_(collect_errors?|collect_timeouts?)\{.*\} [^0]`).FindAll(b, -1) {
		t.Errorf("%s", line)
	}
}

// modules has go build a program with a module, in a folder that it returns: what
// main says, as "reader", or what go install makes.
func modules(t *testing.T, main, command, module string) (dir string) {
	t.Helper()
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("only make soak gets other modules")
	}
	dir = t.TempDir()
	run := func(args ...string) error {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOBIN="+dir)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	for name, text := range map[string]string{"go.mod": "module reader\n\ngo 1.26\n", "main.go": main} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(command, module); err != nil {
		t.Skipf("it cannot be had here: %v", err)
	}
	if main != "" {
		if err := run("build", "-o", "reader", "."); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
