package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"fabsh/shell/session"
)

// exampleFiles make, in a folder, the files that the examples of help name.
const exampleFiles = `set -e
cp "$ROOT"/examples/links*.star "$ROOT"/examples/dmodk.star .
mkdir -p scripts audits var/lib/fabsh var/lib/node_exporter etc/slurm
cp links*.star scripts
printf 'def test_links():\n    pass\n' >audits/links_test.star
printf 'def audit(fabric):\n    """Finds nothing."""\n    return []\n' >mine.star
printf 'def main(*, rack=0):\n    port_disable(discover().switches[0].ports[7 + rack %% 2])\n' >maintenance.star
for f in yesterday.fab today.fab golden.fab monday.snap yesterday.snap today.snap; do fabsh snapshot $f --all; done
fabsh sim fattree:k=4 --out cluster.net; cp cluster.net plan.topo
fabsh route minhop --out lfts.dump; fabsh change plan --routes updn --out new.plan
fabsh -c '[n.guid for n in discover().switches][0]' | tr -d '"' >roots.guids
fabsh topology slurm-conf --out etc/slurm/topology.conf
printf '0101010100000000000000000000000100110000' >hex; for i in $(seq 236); do printf 00 >>hex; done; xxd -r -p hex datagram || true
`

// notHere are examples, by a part of the line, that need what a test has not.
var notHere = map[string]string{
	"exporter":                        "serves until it is interrupted: TestExporter",
	"serve":                           "serves until it is interrupted: TestServe",
	"ibsim-run":                       "ibsim's programs: TestPeers",
	"--listen mysock":                 "serves until it is interrupted",
	"--watch":                         "runs until it is interrupted",
	"fabsh top\n":                     "runs until it is interrupted: TestTerminalTop",
	"top --by":                        "runs until it is interrupted",
	"fabsh ports":                     "a device: TestKernel",
	"fabsh tour":                      "a terminal: TestTerminalTour",
	"opensm-subnet.lst":               "files of OpenSM: TestScripts/files",
	"change status":                   "a fabric that outlives the program: TestScripts/plan",
	"change confirm":                  "a change under way",
	"change revert":                   "a change under way",
	"change resume":                   "a change under way",
	"change apply":                    "a change under way",
	"--over yesterday.fab":            "two snapshots of one fabric that runs on: TestScripts/audit",
	"xxd":                             "xxd may be missing",
	"-F sim                         ": "the prompt",
}

// TestHelpExamples runs the examples of help, which are those of the man pages, on a
// simulated fabric: each ends with status 0, or 1, which is findings.
func TestHelpExamples(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("fifty programs take long, and what they do has tests of its own: FABSH_SOAK")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sh := func(line string) (string, int) {
		c := exec.Command("sh", "-c", line)
		c.Dir = dir
		c.Env = append(testEnv(t), "HOME="+dir, "ROOT="+root, "FABSH_FABRIC=sim")
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
	if out, status := sh(exampleFiles); status != 0 {
		t.Fatalf("files: status %d\n%s", status, out)
	}
	used := map[string]bool{}
	ran := 0
	var all func(*cobra.Command)
	all = func(c *cobra.Command) {
		help := manPage(t, c)
		_, examples, _ := strings.Cut(help, ".SH EXAMPLES\n.nf\n")
		examples, _, _ = strings.Cut(examples, "\n.fi\n")
		for line := range strings.Lines(strings.NewReplacer(`\-`, "-", `\e`, `\`, `\(ti`, "~").Replace(examples) + "\n") {
			if !strings.HasPrefix(line, "  ") {
				continue
			}
			if left := notHereOf(line); left != "" {
				used[left] = true
				continue
			}
			line = regexp.MustCompile(`   +\S.*`).ReplaceAllString(strings.TrimSpace(line), "") // what it does
			line = strings.NewReplacer("-F ibsim", "-F sim", " /etc/", " etc/", " /var/", " var/", "| dot -Tpdf", "| cat", "00110000...", `00110000$(head -c 472 /dev/zero | tr "\0" 0)`).Replace(line)
			line = strings.ReplaceAll(line, "fabsh ", "fabsh --state state ") // not the host's
			if out, status := sh(line); status != 0 && status != 1 {
				t.Errorf("%s\nstatus %d\n%.600s", line, status, out)
			}
			ran++
		}
		for _, sub := range c.Commands() {
			all(sub)
		}
	}
	p := newProgram(session.NewConsole(os.Stdout, os.Stderr))
	command := rootCommand(p)
	all(command)
	if ran < 30 {
		t.Errorf("%d examples were run", ran)
	}
	for part := range notHere {
		if !used[part] {
			t.Errorf("no example has %q", part)
		}
	}
}

// notHereOf is the part of a line for which it is not run, "" where it is.
func notHereOf(line string) string {
	for part := range notHere {
		if strings.Contains(line, part) {
			return part
		}
	}
	return ""
}
