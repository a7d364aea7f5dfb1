//go:build linux

package shell

import "testing"

// At the prompt a statement that takes too much ends, and the session goes on,
// also where variables keep what it took.
func TestTerminalLimits(t *testing.T) {
	s := startTerminal(t, t.TempDir(), "-F", "sim:ring:n=2", "--memory", "200MiB", "--max-steps", "1000000")
	s.expect("rw> ")
	s.send("parallel(lambda i: catch(lambda: ['y' * 1000000 for j in range(100000)]), [1, 2]); 1\r")
	s.expect("fabsh: memory limit of 200 MiB exceeded by the script; keep fewer values at a time, or raise\r\n--memory\r\n")
	s.expect("rw> ")
	s.send("len(discover().nodes)\r")
	s.expect("\n4\r\n")
	s.expect("> ")
	s.send("x = []\r")
	s.expect("> ")
	s.send("for i in range(100000): x.append('y' * 1000000)\r")
	s.expect("... ")
	s.send("\r")
	s.expect("memory limit of 200 MiB exceeded")
	s.expect("> ")
	s.send("x = len(x) > 100\r")
	s.expect("> ")
	s.send("x\r")
	s.expect("\nTrue\r\n")
	s.expect("> ")
	s.send("for i in range(10000000): pass\r")
	s.expect("... ")
	s.send("\r")
	s.expect("fabsh: limit of 1000000 steps exceeded by the script; raise --max-steps\r\n")
	s.expect("> ")
	s.send("6 * 7\r")
	s.expect("\n42\r\n")
	s.expect("> ")
	s.send(ctrlD)
	s.exit(0)
}
