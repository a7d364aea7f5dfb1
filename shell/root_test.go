//go:build linux

package shell

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// cleanRoot is a Debian in a folder, of the release and the package sources of this machine. It has
// no more than the packages it was made with, and what every Debian has.
type cleanRoot struct {
	t      *testing.T
	folder string
	log    io.Writer // where commands also write to
}

// newRoot makes one with debootstrap. It skips the test without root.
func newRoot(t *testing.T, packages ...string) cleanRoot {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("chroot(2) is root's")
	}
	release := strings.TrimSpace(run(t, "/", "sh", "-ec", ". /etc/os-release; echo $VERSION_CODENAME"))
	// Lists of our own: a machine may have none, or no Release files with them.
	lists := "Dir::State::Lists=" + t.TempDir()
	exec.CommandContext(t.Context(), "apt-get", "-qq", "-o", lists, "update").Run() // other sources may fail
	targets := run(t, "/", "apt-get", "-qq", "-o", lists, "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Identifier: Packages", "Origin: Debian")
	mirror := ""
	for line := range strings.Lines(targets) {
		if words := strings.Fields(line); words[2] == release && mirror == "" {
			mirror = words[1]
		}
	}
	if mirror == "" {
		t.Fatalf("apt: no source of Debian's release %q among\n%s", release, targets)
	}
	// Proxies, and whether old lists are valid.
	settings := run(t, "/", "sh", "-c", "apt-config dump | grep -E '^Acquire::(http|https|Check-[^:]*)( |::)'; true")

	r := cleanRoot{t, filepath.Join(t.TempDir(), "root"), io.Discard}
	own := filepath.Join(ibsimtest.Root(t), ".debootstrap/usr")
	run(t, own, "env", "DEBOOTSTRAP_DIR="+own+"/share/debootstrap", own+"/sbin/debootstrap", "--variant=minbase",
		"--include="+strings.Join(packages, ","), release, r.folder, mirror)
	r.write("/etc/apt/sources.list", targets)
	r.write("/etc/apt/apt.conf.d/90machine", settings)
	r.write("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 fresh\n")
	r.in("apt-get -qq update")
	return r
}

func (r cleanRoot) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.folder+name, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// enter mounts what a running Debian has, and this machine's Go and certificates, read-only, and runs
// the arguments. The processes end with it.
const enter = `
	hostname fresh
	mount -t proc proc "$0/proc"
	mount -t sysfs -o ro sysfs "$0/sys"
	mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$0/dev/pts"
	mkdir -p "$0/usr/local/go"
	mount --bind -o ro "$1" "$0/usr/local/go"
	certificates=/etc/ssl/certs/ca-certificates.crt
	[ ! -e "$0$certificates" ] || mount --bind -o ro "${SSL_CERT_FILE:-$certificates}" "$0$certificates"
	root=$0; shift
	chroot "$root" "$@" || exit # this shell stays: it waits for orphans, as init does`

// command prepares a line of the shell in the root, as root with no user, else as that user in
// their home. Its environment has the proxies of this machine, and no other of its settings.
func (r cleanRoot) command(user, line string) *exec.Cmd {
	r.t.Helper()
	var env map[string]string
	if err := json.Unmarshal([]byte(run(r.t, "/", "go", "env", "-json", "GOROOT", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE")), &env); err != nil {
		r.t.Fatal(err)
	}
	words := []string{"--mount", "--uts", "--pid", "--fork", "--kill-child", "sh", "-ec", enter, r.folder, env["GOROOT"]}
	delete(env, "GOROOT")
	words = append(words, "env", "-i", "PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=xterm", "DEBIAN_FRONTEND=noninteractive")
	for name, value := range env {
		if value != "" {
			words = append(words, name+"="+value)
		}
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasSuffix(strings.ToLower(name), "_proxy") {
			words = append(words, kv)
		}
	}
	if user != "" {
		words = append(words, "setpriv", "--reuid="+user, "--regid="+user, "--init-groups", "env", "HOME=/home/"+user, "USER="+user)
	}
	words = append(words, "sh", "-ec", "cd; "+line)
	return exec.CommandContext(r.t.Context(), "unshare", words...)
}

// in runs a line of the shell as root, and returns what it writes to stdout.
func (r cleanRoot) in(line string) string {
	r.t.Helper()
	return r.as("", line)
}

// as runs a line of the shell as a user, in their home, and returns what it writes to stdout.
func (r cleanRoot) as(user, line string) string {
	r.t.Helper()
	return finish(r.t, r.command(user, line), r.log)
}

// run runs a command in a folder, and returns what it writes to stdout.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	return finish(t, c, io.Discard)
}

// finish runs a command, which must succeed, and returns what it writes to stdout. What it
// writes also goes to log.
func finish(t *testing.T, c *exec.Cmd, log io.Writer) string {
	t.Helper()
	var out, errors bytes.Buffer
	c.Stdout, c.Stderr = io.MultiWriter(&out, log), io.MultiWriter(&errors, log)
	if err := c.Run(); err != nil {
		t.Fatalf("%q: %v\n%s%s", c.Args, err, out.Bytes(), errors.Bytes())
	}
	return out.String()
}
