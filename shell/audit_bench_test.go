package shell

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// largeFabric has 11,664 hosts and 1,620 switches.
const largeFabric = "sim:pgft:m=18/18/36,w=1/18/18,p=1/1/1"

// BenchmarkAudit audits 11,664 hosts in process: the standard set, and with what reads
// whole tables. The simulator's own time is in it, as is that of the sweep.
func BenchmarkAudit(b *testing.B) {
	path := builtFabsh(b)
	for _, run := range []struct {
		name string
		args []string
	}{{"standard", nil}, {"deep", []string{"--deep"}}} {
		b.Run(run.name, func(b *testing.B) {
			args := append([]string{"-F", largeFabric, "-q", "--state", b.TempDir(), "audit"}, run.args...)
			costs(b, 0, path, args...)
		})
	}
}

// BenchmarkDiff compares files of 11,664 hosts with their tables: equal, and with a link
// less.
func BenchmarkDiff(b *testing.B) {
	path := builtFabsh(b)
	dir := b.TempDir()
	old, less := filepath.Join(dir, "old"), filepath.Join(dir, "less")
	output(b, exec.Command(path, "-F", largeFabric, "-q", "snapshot", old))
	output(b, exec.Command(path, "-F", largeFabric+",remove_links=1,seed=5", "-q", "snapshot", less))
	b.Run("same", func(b *testing.B) { costs(b, 0, path, "-q", "diff", old, old) })
	b.Run("link_gone", func(b *testing.B) { costs(b, 1, path, "-q", "diff", old, less) })
}

// costs runs fabsh, which must end with that status, and reports the time it took of all
// cores, and the most memory that it had.
func costs(b *testing.B, status int, path string, args ...string) {
	var user, system time.Duration
	most := int64(0)
	for b.Loop() {
		c := exec.Command(path, args...)
		if out, _ := c.CombinedOutput(); c.ProcessState == nil || c.ProcessState.ExitCode() != status {
			b.Fatalf("%v ended with %v\n%s", args, c.ProcessState, out)
		}
		user, system = user+c.ProcessState.UserTime(), system+c.ProcessState.SystemTime()
		most = max(most, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	}
	report(b, user, "user-sec")
	report(b, system, "system-sec")
	b.ReportMetric(float64(most)/1024, "MiB") // in KiB on Linux
}
