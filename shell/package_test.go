//go:build linux

package shell

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// cleanRoot is a Debian in a folder.
type cleanRoot struct {
	t      *testing.T
	folder string
}

// newRoot makes one with debootstrap, with what the package has something for.
func newRoot(t *testing.T) cleanRoot {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "root")
	own := filepath.Join(ibsimtest.Root(t), ".debootstrap/usr")
	run(t, own, "env", "DEBOOTSTRAP_DIR="+own+"/share/debootstrap", own+"/sbin/debootstrap", "--variant=minbase",
		"--include=systemd,udev,man-db,bash-completion,zsh,fish", "bookworm", folder, "http://deb.debian.org/debian")
	return cleanRoot{t, folder}
}

// in runs a line of the shell in the root, with its /proc.
func (r cleanRoot) in(line string) string {
	r.t.Helper()
	return run(r.t, r.folder, "unshare", "--mount", "sh", "-ec", `mount -t proc proc "$0/proc"; exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -ec "$1"`, r.folder, line)
}

// run runs a command in a folder, and is what it writes.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	if err := c.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out.Bytes(), log.Bytes())
	}
	return out.String()
}

// TestPackage makes the packages of the last commit twice, in two folders, and wants the
// same bytes; installs the Debian package in a clean root, tries what it has, and takes
// it away again.
func TestPackage(t *testing.T) {
	switch {
	case os.Getenv("FABSH_SOAK") == "":
		t.Skip("a clean Debian has 400 MB and takes minutes: FABSH_SOAK")
	case os.Getuid() != 0:
		t.Skip("chroot(2) is root's")
	}
	var sums [2]string
	var dist string
	for i := range sums {
		dir := filepath.Join(t.TempDir(), "fabsh")
		run(t, ".", "git", "clone", "-q", ibsimtest.Root(t), dir)
		run(t, dir, "make", "dist", "deb")
		dist = dir + "/dist"
		sums[i] = run(t, dist, "sh", "-c", "cat SHA256SUMS; sha256sum *.deb")
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("made twice: -once +twice\n%s", diff)
	}
	if n := strings.Count(sums[0], "\n"); n != 6 {
		t.Errorf("%d files, want 4 programs and 2 packages:\n%s", n, sums[0])
	}
	run(t, dist, "sha256sum", "-c", "--quiet", "SHA256SUMS")

	r := newRoot(t)
	run(t, dist, "sh", "-ec", `cp fabsh_*_amd64.deb "$0/fabsh.deb"`, r.folder)
	files := r.in("find / -xdev '(' -path /proc -o -path /var/cache ')' -prune -o -name '*fabsh*' -print | sort")
	r.in("apt-get install -y --no-install-recommends /fabsh.deb")
	commit := strings.TrimSpace(run(t, dist, "git", "rev-parse", "--short=12", "HEAD"))
	for _, test := range []struct{ line, want string }{
		{"fabsh version", `^fabsh \d+\.\d+\.\d+\S* \(commit ` + commit + `, go\S+, linux/amd64\)\n$`},
		{"fabsh -q -F sim -c 1+1", `^2\n$`},
		{"MANWIDTH=80 man -P cat fabsh-audit", `(?s)^FABSH-AUDIT\(1\).*\nEXAMPLES\n`},
		{"cd /usr/share/man; for p in man1/fabsh* man7/fabsh*; do man --warnings -l $p 2>&1 >/dev/null; done", `^$`},
		{"man -w $(fabsh --help | sed -n '/^Commands:/,/^$/s/^  \\([a-z]*\\) .*/fabsh-\\1/p' | grep -v help) | wc -l", `^[12]\d\n`},
		{`bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader fabsh
			COMP_LINE="fabsh aud" COMP_POINT=9 COMP_TYPE=9 COMP_CWORD=1 COMP_WORDS=(fabsh aud); __start_fabsh fabsh aud fabsh; echo ${COMPREPLY[@]}'`, `^audit\n$`},
		{`zsh -fc 'autoload -U compinit; compinit -u -D; autoload +X $_comps[fabsh]; print $_comps[fabsh]'`, `^_fabsh\n$`},
		{`fish -c 'complete -C"fabsh aud"'`, `^audit\tAudit `},
		{"getent passwd fabsh; getent group fabsh", `^fabsh:x:\d+:\d+:.*:/var/lib/fabsh:/usr/sbin/nologin\nfabsh:x:\d+:\n$`},
		{"cd /usr/lib/systemd/system; systemd-analyze verify fabsh-audit.service fabsh-audit.timer fabsh-exporter.service 2>&1", `^$`},
		{"systemd-analyze security --offline=true --threshold=20 fabsh-audit.service | tail -1", `exposure level .* OK`},
		{"systemd-analyze security --offline=true --threshold=20 fabsh-exporter.service | tail -1", `exposure level .* OK`},
		{"systemd-analyze calendar \"$(sed -n 's/^OnCalendar=//p' /usr/lib/systemd/system/fabsh-audit.timer)\"", `Normalized form: \*-\*-\* \*:00/5:00`},
		// What the service runs, as whom it runs it, with what /etc/fabsh says: twice, for --over=last.
		{`install -d -o fabsh -g fabsh -m 0750 /var/lib/fabsh
			run=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/fabsh-audit.service); . /etc/fabsh/audit.conf
			for i in 1 2; do setpriv --reuid=fabsh --regid=fabsh --clear-groups env FABSH_FABRIC=sim:errors=leaf-1/1@1000/s FABSH_AUDIT="$FABSH_AUDIT" sh -c "$run" >/dev/null || test $? = 1; done
			stat -c '%U %a' /var/lib/fabsh/audit.json; head -c 30 /var/lib/fabsh/audit.json`, `^fabsh 6\d\d\n{\n  "schema": "audit_report/1"`},
	} {
		if got := r.in(test.line); !regexp.MustCompile(test.want).MatchString(got) {
			t.Errorf("%s\ngot  %q\nwant %s", test.line, got, test.want)
		}
	}
	r.in("apt-get purge -y fabsh; rm -rf /var/lib/fabsh")
	left := r.in("find / -xdev '(' -path /proc -o -path /var/cache ')' -prune -o -name '*fabsh*' -print | sort")
	if diff := cmp.Diff(files, left); diff != "" {
		t.Errorf("after it was purged: -before +after\n%s", diff)
	}
}
