//go:build linux

package builtins

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestPeerSubscribe: OpenSM reports what ibsim's switches tell it, and what it
// finds itself, to us among other programs of the node; it has our subscription
// as saquery says, and after it has started anew it has it again. (Whether it
// ends one is not asked here: libumad2sim leaves the P_Key index of what it
// receives to chance, umad2sim_read in umad2sim.c, and OpenSM compares it, too.)
func TestPeerSubscribe(t *testing.T) {
	t.Parallel()
	o := ibsimtest.Options{SM: "host-3-3", SMArgs: []string{"-s", "1"}} // light sweeps move ActCount
	f := onIbsim(t, ibsimtest.FatTree(4, 2, 4), o, nil)
	env := f.Predeclared()
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
	thread := f.NewThread(t.Context(), "<test>")
	f.stderr.Reset()
	if _, err := starlark.ExecFileOptions(&dialect, thread, "<test>", code, env); err != nil {
		t.Fatal(f.Explain(err))
	}
	const all128 = "trap_num 128, trap_type 0xFFFF, is_generic 0x1, node_type 0xFFFFFF, lid_range_begin 65535, subscribe 0x1, \n"
	want := all128 + "\nNone None 0\n" +
		"the subnet manager at LID SM has started anew; subscribed again, but what happened in between was not told\n" +
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
