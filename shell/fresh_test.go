//go:build linux && freshtest

package shell

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// TestFresh: on a Debian with the packages that README.md names and Go, an ordinary user runs both
// of its commands, and what it has of installation, in a checkout whose path has blanks; the output is
// the transcript.
func TestFresh(t *testing.T) {
	checkout := ibsimtest.Root(t)
	readme, err := os.ReadFile(filepath.Join(checkout, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	packages := regexp.MustCompile(`(?m)^sudo apt install ([a-z0-9 -]+?) *(#.*)?$`).FindStringSubmatch(string(readme))
	if packages == nil {
		t.Fatal("README.md: no line that installs packages")
	}
	start := time.Now()
	r := newRoot(t, strings.Fields(packages[1])...)
	t.Logf("a minimal Debian with %s: %v", packages[1], time.Since(start).Round(time.Second))
	r.in("useradd --create-home --shell /bin/bash user")
	run(t, "/", "git", "clone", "-q", "--no-hardlinks", checkout, r.folder+"/home/user/my fabsh")
	r.in("chown -R user: /home/user")
	r.log = t.Output()

	for _, step := range []struct {
		user, line string
		want       string // in the output; "": any
	}{
		// At a terminal.
		{"user", `printf 'discover()\nexit()\n' | script -qec "make run" /dev/null`, "fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete"},
		{"user", "make test", "The ten slowest:"},
		// All is there now: neither modules nor packages are fetched again.
		{"user", "GOPROXY=off GOFLAGS=-mod=readonly http_proxy=http://127.0.0.1:1 make build peers quick", ""},
		// A home that cannot be written, and none.
		{"user", `HOME=/proc ./fabsh -F sim -c 'discover().links[0].speed'; env -u HOME ./fabsh -F sim audit links`, "\"hdr\"\n"},
		{"user", `make install PREFIX="$HOME/a place"; "$HOME/a place/bin/fabsh" version`, "fabsh 0."},
		{"", "make install", ""},
		{"user", `cd /; fabsh -F sim -c 'discover()'`, "fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete"},
		// This root has no bash-completion.
		{"user", `cd /; bash --norc -c 'source <(fabsh completion bash); COMP_LINE="fabsh aud" COMP_POINT=9 COMP_CWORD=1 COMP_WORDS=(fabsh aud); __start_fabsh fabsh; echo "${COMPREPLY[@]}"'`, "audit\n"},
		{"user", "make deb", ""},
		{"", "make -s uninstall; apt-get -qq install -y --no-install-recommends ./dist/fabsh_*_$(dpkg --print-architecture).deb", ""},
		{"user", `cd /; fabsh -F sim -c 'discover()'`, "fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete"},
	} {
		io.WriteString(r.log, "\n$ "+step.line+"\n")
		start := time.Now()
		out := r.as(step.user, `cd "/home/user/my fabsh"; `+step.line)
		t.Logf("%v: %s", time.Since(start).Round(time.Second), step.line)
		if !strings.Contains(out, step.want) {
			t.Errorf("%s: want %q", step.line, step.want)
		}
	}
}
