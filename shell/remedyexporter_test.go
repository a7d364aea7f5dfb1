package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRemedyUnits: the commands of the examples for cron and systemd run.
func TestRemedyUnits(t *testing.T) {
	for _, name := range []string{"cron", "fabsh-remedy.service"} {
		data, err := os.ReadFile(filepath.Join("..", "examples", "remedy", name))
		if err != nil {
			t.Fatal(err)
		}
		commands := regexp.MustCompile(`(?m)(fabsh -q.* remedy .*remedy\.plan)`).FindAllString(string(data), -1)
		if len(commands) == 0 {
			t.Errorf("%s has no command", name)
		}
		dir := t.TempDir()
		for _, command := range commands {
			command = strings.ReplaceAll(command[strings.LastIndex(command, "fabsh -q"):], "/var/lib/fabsh", dir)
			command = strings.Replace(command, "fabsh ", "fabsh -F sim:ring:n=3 --state "+dir+"/state ", 1)
			command = strings.Replace(command, "--state "+dir+" ", "", 1)
			if err := os.WriteFile(dir+"/busy", []byte("node-0001\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := exec.Command("sh", "-c", command)
			c.Env = testEnv(t)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
			if _, err := os.Stat(dir + "/remedy.plan"); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRemedyMetrics: the exporter has the metrics of the log of remedies, and none of a log that
// is missing or damaged.
func TestRemedyMetrics(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "mine.star")
	if err := os.WriteFile(script, []byte("def remedy(fabric, findings):\n    return [isolate(fabric.cas[2].ports[1], \"x\")]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"-F", "sim:ring:n=3", "--state", filepath.Join(dir, "state")}
	metrics := func() (isolated, refused bool, n float64) {
		m := startExporter(t, append([]string{}, flags...)).metrics(t)
		return m["fabsh_isolated_ports"] != nil, m["fabsh_remedy_refused_total"] != nil, value(m, "fabsh_remedy_refused_total")
	}
	if isolated, refused, _ := metrics(); isolated || refused {
		t.Error("metrics of a log that does not exist")
	}
	c := exec.Command("fabsh", append(append([]string{}, flags...), "remedy", script, "--audits", "links", "--out", filepath.Join(dir, "plan"))...)
	c.Env = testEnv(t)
	if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	if isolated, refused, n := metrics(); !isolated || !refused || n != 1 {
		t.Errorf("isolated %t, refused %t: %g", isolated, refused, n)
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "state", "*", "remedies"))
	if len(logs) != 1 || os.WriteFile(logs[0], []byte("damaged\n"), 0o600) != nil {
		t.Fatal(logs)
	}
	if isolated, refused, _ := metrics(); isolated || refused {
		t.Error("metrics of a damaged log")
	}
}
