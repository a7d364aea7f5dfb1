//go:build linux

package builtins

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/mad/capture"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestPeerSubscribe: OpenSM reports what ibsim's switches tell it, and what it
// finds itself, to us among other programs of the node; it has our subscription
// as saquery says, and after it has started anew it has it again. (Whether it
// ends one is not asked here: libumad2sim leaves the P_Key index of what it
// receives to chance, umad2sim_read in umad2sim.c, and OpenSM compares it, too.)
func TestPeerSubscribe(t *testing.T) {
	t.Parallel()
	o := ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "1"}} // light sweeps move ActCount
	f := onIbsim(t, ibsimtest.FatTree(4, 2, 4), o, nil)
	env := maps.Clone(f.Interpreter.Globals)
	do := func(name string, fn func(arg string) string) {
		env[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			arg := ""
			if len(args) > 0 {
				arg = string(args[0].(starlark.String))
			}
			return starlark.String(fn(arg)), nil
		})
	}
	do("console", func(line string) string { return f.peer.Console(t, "%s", line) })
	do("restart", func(string) string { f.peer.RestartSM(t, o); return "" })
	do("known", func(string) string { return informsOf(f.peer.Run(t, "saquery", "-I")) })
	const code = `
f = discover()
leaf = [s for s in f.switches if s.name == "leaf-1"][0]
host = leaf.ports[1].peer
host_gid = gid(host.guid, prefix="0xfe80000000000000")
links = sa_subscribe(trap=128)
print(known())
ports = sa_subscribe(trap=[64, 65], producer_type="subnet_management")
other = sa_subscribe(trap=128, lid_range_begin=host.lid)

def told(sub, trap):
    n = sub.next(timeout="60s")
    if not n or n.trap_number != trap:
        fail("%s, want trap %d" % (n, trap))
    return n

for i in range(3):
    console('Unlink "leaf-1"[1]')
    n = told(links, 128)
    if (n.issuer_lid, n.lid_addr, n.type, n.producer_type, n.issuer_gid) != (leaf.lid, leaf.lid, "urgent", "switch", gid(leaf.guid, prefix="0xfe80000000000000")):
        fail(n)
    if told(ports, 65).gid_addr != host_gid:
        fail("another port went")
    console('Link "leaf-1"[1] "host-1-0"[1]')
    told(links, 128)
    if told(ports, 64).gid_addr != host_gid:
        fail("another port came")
print(links.next(timeout=0), other.next(timeout=0), stats().dropped)

other.close()
ports.close()
restart()
print(links.next(timeout="60s").reason)
print(known())
console('Unlink "leaf-1"[1]')
print(told(links, 128).lid_addr == leaf.lid)
links.close()
`
	thread := f.newThread(t.Context(), "<test>")
	f.stderr.Reset()
	if _, err := starlark.ExecFileOptions(&lang.Dialect, thread, "<test>", code, env); err != nil {
		t.Fatal(f.Explain(err))
	}
	const all128 = "trap_num 128, trap_type 0xFFFF, is_generic 0x1, node_type 0xFFFFFF, lid_range_begin 65535, subscribe 0x1, \n"
	want := all128 + "\nNone None 0\n" +
		"the subnet manager at LID SM has restarted; subscribed again, but events in between were not reported\n" +
		all128 + "\nTrue\n"
	got := f.stderr.String()
	if i := strings.Index(got, "at LID "); i >= 0 {
		i += len("at LID ")
		got = got[:i] + "SM" + got[i+strings.IndexByte(got[i:], ' '):]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// informsOf are the subscriptions that saquery shows, each in a line.
func informsOf(out string) string {
	var b strings.Builder
	for i, dump := range strings.Split(out, "InformInfoRecord dump:") {
		for _, name := range []string{"trap_num", "trap_type", "is_generic", "node_type", "lid_range_begin", "subscribe"} {
			if m := regexp.MustCompile(`(?m)^\s*` + name + `\.+(.*)$`).FindStringSubmatch(dump); m != nil {
				fmt.Fprintf(&b, "%s %s, ", name, m[1])
			}
		}
		if i > 0 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// TestSubscribeTshark: what goes over the wire for a subscription is, to tshark,
// what it is meant to be.
func TestSubscribeTshark(t *testing.T) {
	ibsimtest.Path(t, "tshark")
	path := filepath.Join(t.TempDir(), "a.pcap")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	subnet, transport := attachSubnet(t, "ring:n=3")
	transport, err = capture.Record(transport, file)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(transport, engine.Options{Write: true})
	s, err := NewSession(SessionOptions{Facts: topology.Facts{Engine: e, Sim: subnet, Write: true}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	err = program.RunCode(t.Context(), s.Interpreter, "<test>", `
sub = sa_subscribe(trap=128, type="urgent", producer_type="switch", lid_range_begin=1, lid_range_end=5)
sim.unlink("switch-2/1")
sub.next(timeout="10s")
`)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	fields := []string{"mad.method", "mad.attributeid", "mad.status", "sa.componentmask",
		"informinfo.lidrangebegin", "informinfo.lidrangeend", "informinfo.isgeneric", "informinfo.subscribe", "informinfo.type", "informinfo.trapnumberdeviceid",
		"informinfo.qpn", "informinfo.resptimevalue", "informinfo.producertypevendorid",
		"notice.isgeneric", "notice.type", "notice.producertypevendorid", "notice.trapnumberdeviceid", "notice.issuerlid", "trap.lidaddr"}
	args := []string{"-r", path, "-Y", "infiniband.mad.mgmtclass == 3 && (infiniband.mad.attributeid == 2 || infiniband.mad.attributeid == 3)",
		"-T", "fields", "-E", "separator=,"}
	for _, f := range append(fields, "mad.transactionid") {
		args = append(args, "-e", "infiniband."+f)
	}
	cmd := ibsimtest.Command(t, "tshark", args...)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
	got := strings.Split(strings.TrimSpace(ibsimtest.Output(t, cmd)), "\n")
	tids := map[string]string{}
	for i, line := range got {
		at := strings.LastIndexByte(line, ',')
		tid := line[at+1:]
		if tids[tid] == "" {
			tids[tid] = fmt.Sprintf("TID %d", len(tids)+1)
		}
		got[i] = line[:at+1] + tids[tid]
	}
	const asks, tells = "0x0001,0x0005,0x01,%s,0x0001,0x0080,%s,0x12,0x000002,,,,,,,TID %d", ",,,,,,,,,0x01,0x01,0x000002,0x0080,0x0002,0x0002,TID 2"
	want := []string{
		"0x02,0x0003,0x0000,0x00000000000014f7," + fmt.Sprintf(asks, "0x01", "0x000000", 1), // Set(InformInfo)
		"0x81,0x0003,0x0000,0x00000000000014f7," + fmt.Sprintf(asks, "0x01", "0x000000", 1),
		"0x06,0x0002,0x0000,0x0000000000000000," + tells,                                    // Report(Notice)
		"0x86,0x0002,0x0000,0x0000000000000000," + tells,                                    // ReportResp(Notice)
		"0x02,0x0003,0x0000,0x00000000000015f7," + fmt.Sprintf(asks, "0x00", "0x000001", 3), // with the queue pair
		"0x81,0x0003,0x0000,0x00000000000015f7," + fmt.Sprintf(asks, "0x00", "0x000001", 3),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
