//go:build linux

package shell

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestImage makes the image for this machine, and runs it.
func TestImage(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles programs")
	}
	dir := t.TempDir()
	name := dir + "/image.tar"
	run(t, ibsimtest.Root(t), "env", "CGO_ENABLED=0", "go", "build", "-o", dir+"/fabsh", "./shell/fabsh")
	run(t, ibsimtest.Root(t)+"/shell/dist/image", "go", "run", ".", "-version", "1.2.3", "-epoch", "1790000000", "-out", name, runtime.GOARCH+"="+dir+"/fabsh")
	testImage(t, name)
}

// testImage unpacks the image of this architecture, as a container engine does, and runs its program
// in it as the user that it names.
func testImage(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "tar", "xf", name)
	// blob decodes the JSON of a digest, or of index.json.
	blob := func(name string) (x struct {
		Manifests []struct {
			Digest   string
			Platform struct{ Architecture string }
		}
		Config json.RawMessage // of a manifest a descriptor, else of the program
		Layers []struct{ Digest string }
	}) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, strings.Replace(name, "sha256:", "blobs/sha256/", 1)))
		if err == nil {
			err = json.Unmarshal(text, &x)
		}
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	var program struct {
		User, WorkingDir string
		Env, Entrypoint  []string
	}
	root := filepath.Join(dir, "root")
	if err := os.MkdirAll(root+"/proc", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, m := range blob(blob("index.json").Manifests[0].Digest).Manifests {
		if m.Platform.Architecture != runtime.GOARCH {
			continue
		}
		manifest := blob(m.Digest)
		var config struct{ Digest string }
		err := json.Unmarshal(manifest.Config, &config)
		if err == nil {
			err = json.Unmarshal(blob(config.Digest).Config, &program)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range manifest.Layers {
			run(t, root, "tar", "xpzf", filepath.Join(dir, strings.Replace(l.Digest, "sha256:", "blobs/sha256/", 1)))
		}
	}
	if program.User != "65534" {
		t.Fatalf("the image is not for this architecture, or its user is %q, want 65534", program.User)
	}
	if os.Getuid() != 0 {
		t.Skip("chroot(2) is root's")
	}
	for parent := dir; parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil { // of tests, 0700
			t.Fatal(err)
		}
	}
	chroot, err := exec.LookPath("chroot")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"--mount", "--pid", "--fork", "sh", "-ec", `mount -t proc proc "$0/proc"; exec env -i "$@"`, root}
	words = append(append(words, program.Env...), chroot, "--userspec="+program.User+":"+program.User, root)
	words = append(append(words, program.Entrypoint...), "sim", "fattree:k=4", "--run", "fabsh", "-c", "discover()")
	c := exec.CommandContext(t.Context(), "unshare", words...)
	if got, want := finish(t, c, io.Discard), "fabric: 14 nodes (6 switches, 8 CAs), 16 links, complete\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPackage makes a release of the last commit twice, in two folders, and wants the
// same bytes; runs the image; installs the Debian package in a clean root, tries what it has,
// and takes it away again.
func TestPackage(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("a clean Debian has 400 MB and takes minutes: FABSH_SOAK")
	}
	r := newRoot(t, "systemd", "udev", "man-db", "bash-completion", "zsh", "fish")
	var sums [2]string
	var dist string
	for i := range sums {
		dir := filepath.Join(t.TempDir(), "fabsh")
		run(t, ".", "git", "clone", "-q", ibsimtest.Root(t), dir)
		run(t, dir, "make", "release")
		dist = dir + "/dist"
		sums[i] = run(t, dist, "cat", "SHA256SUMS")
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("made twice: -once +twice\n%s", diff)
	}
	if n := strings.Count(sums[0], "\n"); n != 12 {
		t.Errorf("%d files, want 4 programs with their SBOMs, 2 packages, the image and the notes:\n%s", n, sums[0])
	}
	run(t, dist, "sha256sum", "-c", "--quiet", "SHA256SUMS")

	testImage(t, dist+"/fabsh-image.tar")

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
		{"cd /usr/lib/systemd/system; systemd-analyze verify fabsh-audit.service fabsh-audit.timer fabsh-exporter.service fabsh-serve.service 2>&1", `^$`},
		{"systemd-analyze security --offline=true --threshold=20 fabsh-audit.service | tail -1", `exposure level .* OK`},
		{"systemd-analyze security --offline=true --threshold=20 fabsh-exporter.service | tail -1", `exposure level .* OK`},
		{"systemd-analyze security --offline=true --threshold=20 fabsh-serve.service | tail -1", `exposure level .* OK`},
		{"systemd-analyze calendar \"$(sed -n 's/^OnCalendar=//p' /usr/lib/systemd/system/fabsh-audit.timer)\"", `Normalized form: \*-\*-\* \*:00/5:00`},
		// What the service runs, as whom it runs it, with what /etc/fabsh says: twice, for --over=last.
		{`install -d -o fabsh -g fabsh -m 0750 /var/lib/fabsh
			run=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/fabsh-audit.service); . /etc/fabsh/audit.conf
			for i in 1 2; do setpriv --reuid=fabsh --regid=fabsh --clear-groups env FABSH_FABRIC=sim:errors=leaf-1/1@1000/s FABSH_AUDIT="$FABSH_AUDIT" sh -c "$run" >/dev/null || test $? = 1; done
			stat -c '%U %a' /var/lib/fabsh/audit.json; head -c 30 /var/lib/fabsh/audit.json`, `^fabsh 6\d\d\n{\n  "schema": "audit_report/1"`},
	} {
		if got := r.in("export LC_ALL=C.UTF-8; " + test.line); !regexp.MustCompile(test.want).MatchString(got) {
			t.Errorf("%s\ngot  %q\nwant %s", test.line, got, test.want)
		}
	}
	r.in("apt-get purge -y fabsh; rm -rf /var/lib/fabsh")
	left := r.in("find / -xdev '(' -path /proc -o -path /var/cache ')' -prune -o -name '*fabsh*' -print | sort")
	if diff := cmp.Diff(files, left); diff != "" {
		t.Errorf("after it was purged: -before +after\n%s", diff)
	}
}
