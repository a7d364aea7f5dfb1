//go:build linux

package shell

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTerminalCommands: commands run in the session of the prompt, on its fabric, and
// Ctrl-C stops them alone.
func TestTerminalCommands(t *testing.T) {
	home := t.TempDir()
	slow := "def main():\n    smp_get('NodeInfo', 1)\n    sleep('1h')\n"
	if err := errors.Join(os.Mkdir(filepath.Join(home, "sub"), 0o700), os.WriteFile(filepath.Join(home, "sub", "slow.star"), []byte(slow), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := startTerminalOf(t, terminalOf{home: home, columns: 120, pager: "cat"}, "-F", "sim:fattree:k=4,levels=2,traffic=1GB/s", "-t", "1h") // nothing is sent twice
	run := func(line, want string) string {
		t.Helper()
		s.expect("> ")
		s.send(line + "\r")
		return s.expect(want)
	}
	run("f = discover(); d = port_disable('leaf-1/3')", "\r\n")
	run("snapshot before.fab", "15 links, complete, the tables of 6 switches\r\n") // this session's fabric, as it is now
	run("verify", "\nverdict      ok")
	run("fabsh route ftree --verify", "\nverdict      ok")
	run("diff before.fab", "nothing differs\r\n")
	run("topology slurm --levels 1", "tree:")
	run("decode 0101010100000000000000000000000100110000aabbccdd", "SubnGet(NodeInfo)")
	run("graph leaf-1 -o dot", "graph ")
	run("change plan --routes minhop --exact --out p.plan", "\r\nok: ")
	run("change show p.plan", "made from: --routes minhop")
	run("change apply p.plan --confirm-within 5s", "ok: the change is confirmed\r\n")
	run("verify", "\nverdict      ok")
	run("exporter --listen :1", "exporter: not available at the prompt; run `fabsh exporter` in a shell\r\n")
	run("audit links --write", "--write: cannot be changed in an open session; start another one with fabsh --write\r\n")
	run("gra\t node-9 -o dot", "graph: unknown node \"node-9\"") // the name is completed
	for _, line := range []string{"top --every 2s", "top --every 2s"} {
		run(line, "first read; rates follow in 2s")
		s.send("q")
		run("6*7", "\n42\r\n") // not one key is lost
	}
	run("top --every 2s", "first read; rates follow in 2s")
	s.send(ctrlC)
	s.expect("interrupted\r\n")
	run("decode -", "\n")
	s.send("01 01\r")
	s.interrupts()
	run("report sub/slow.star", "1 MAD sent, 1 answered (")
	s.send(ctrlC)
	s.expect("interrupted")
	run("fs.exists('before.fab')", "\nTrue\r\n") // the directory of the script is not that of the prompt
	run("graph = 5", "> ")
	s.send("graph\r")
	s.expect("note: graph is your own name here; the command is fabsh graph\r\n5\r\n")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
}

// TestTerminalCommandsReadOnly: commands have no more rights than their session.
func TestTerminalCommandsReadOnly(t *testing.T) {
	s := startTerminalOf(t, terminalOf{home: t.TempDir(), columns: 200, pager: "cat"}, "-F", "sim:fattree:k=4,levels=2", "--read-only")
	s.expect("> ")
	s.send("change plan --routes updn --out p.plan\r")
	s.expect("ok: nothing to change\r\n")
	s.expect("> ")
	s.send("change apply p.plan\r")
	s.expect("change apply: it would change the fabric, which requires --write (before the word change)\r\n")
	s.expect("> ")
	s.send("route ftree --watch --out x\r")
	s.expect("it requires --write")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
}

// TestTerminalTrial: at a terminal, a trial asks before it sends anything.
func TestTerminalTrial(t *testing.T) {
	for _, tt := range []struct {
		answer, want string
		status       int
	}{
		{"n\r", "trial: not confirmed; nothing was sent\r\n", 2},
		{"\r", "trial: not confirmed; nothing was sent\r\n", 2},
		{ctrlC, "interrupted", 130},
		{"y\r", "6 nodes, 2 models\r\n", 0},
	} {
		s := startTerminalOf(t, terminalOf{home: t.TempDir(), columns: 200, pager: "cat"}, "-F", "sim:ring:n=3", "trial", "--events", "0")
		s.expect("at most 100000 datagrams; nothing is written\r\nContinue? [y/N] ")
		s.send(tt.answer)
		s.expect(tt.want)
		s.exit(tt.status)
	}
}

// TestTerminalFollow: cabling --follow reports an action when hands have done it, and Ctrl-C ends it alone.
func TestTerminalFollow(t *testing.T) {
	home := t.TempDir()
	hands := "def scenario(sim):\n    sim.unlink('leaf-3/3')\n    sim.unlink('leaf-4/4')\n    at('12s', lambda: sim.link('leaf-4/4'))\n    at('2m', lambda: sim.link('leaf-3/3'))\n"
	if err := os.WriteFile(filepath.Join(home, "hands.star"), []byte(hands), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startTerminalOf(t, terminalOf{home: home, columns: 200, pager: "cat"}, "-F", "sim:fattree:k=4,levels=2", "--virtual-time")
	run := func(line, want string) {
		t.Helper()
		s.expect("> ")
		s.send(line + "\r")
		s.expect(want)
	}
	run("snapshot plan.fab", "16 links, complete, the tables of 6 switches\r\n")
	run("sim.play('hands.star')", "\r\n")
	run("cabling plan.fab --follow", "2 actions; at most 8 requests every 5s, and a sweep a minute while ports are out of reach; Ctrl-C ends\r\n")
	s.expect(": leaf-4/4 is linked with spine-2/4\r\n1 of 2 done\r\n")
	s.expect(": leaf-3/3 is linked with spine-1/3\r\n2 of 2 done\r\n16 of 16 cables as planned\r\n")
	run("sim.unlink('leaf-3/3')", "\r\n")
	run("cabling plan.fab --follow", "1 action; at most 4 requests every 5s")
	s.send(ctrlC)
	s.expect("interrupted") // perhaps with a request that was under way
	run("6*7", "\n42\r\n")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
}
