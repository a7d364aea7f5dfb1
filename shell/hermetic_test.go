//go:build linux

package shell

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/lang"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/hermetic"
)

// TestHermetic runs tests again as a user whose home, state, configuration, environment
// and system all have something that changes what fabsh does.
func TestHermetic(t *testing.T) {
	t.Parallel()
	garbage := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(garbage, name)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const port = 0x0002c90310000000 // the first host of simulated fabrics
	for _, state := range []string{"home/.local/state/fabsh", "state/fabsh", "lib/fabsh"} {
		for _, subnet := range []string{"sm-0x0002c90310000000", "sm-0x0002c90310000001", "sm-0x0002c90300100000", "port-0x0002c90310000000"} {
			write(path.Join(state, subnet, "acks"), `*:0x* 2999-01-01 "the user" "garbage"`+"\n")
			write(path.Join(state, subnet, "links.state"), "garbage")
			j, err := apply.NewJournal(filepath.Join(garbage, state, subnet, "change.journal"), &apply.Begin{ID: "x", Summary: "garbage", By: "the user", Port: port, Prefix: 0xfe80 << 48}, lang.RealClock{})
			if err != nil {
				t.Fatal(err)
			}
			j.Close()
		}
		write(path.Join(state, "history"), "garbage()\n")
		write(path.Join(state, "tour"), "garbage\n")
	}
	for _, dir := range []string{"home/.config/fabsh", "config/fabsh"} {
		write(path.Join(dir, "rc.star"), `fail("garbage")`+"\n")
	}
	write("infiniband-diags/ibdiag.conf", "CA=garbage\ntimeout=1\nm_key=0x77\n")
	for name := range strings.FieldsSeq("infiniband-diags/ib-node-name-map rdma/ib-node-name-map") {
		write(name, "0x0002c90300100000 \"garbage\"\n")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := []string{program, "-test.run", `^(TestScripts|TestTerminalStartup|TestTerminalTour)$/^(replay|auditjob|simserve|sim|)$`, "-test.count=1"}
	if mount := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/var/lib"); mount.Run() == nil {
		words = append([]string{"unshare", "-m", "sh", "-ec", `
			cp -a /etc "$0/etc"
			cp -a "$0/infiniband-diags" "$0/rdma" "$0/etc"
			mount --bind "$0/etc" /etc
			mount -t tmpfs none /var/lib
			cp -a "$0/lib/fabsh" /var/lib
			exec "$@"`, garbage}, words...)
	} else {
		t.Log("no mounts here: /var/lib and /etc stay as they are")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(words[0], words[1:]...)
	c.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, hermetic.RootVariable+"=") || kv == "HOME="+home
	})
	c.Env = append(c.Env, "HOME="+garbage+"/home", "XDG_STATE_HOME="+garbage+"/state", "XDG_CONFIG_HOME="+garbage+"/config", "FABSH_FABRIC=garbage:",
		"SIM_HOST=garbage", "IBSIM_SOCKNAME=garbage", "PAGER=false", "NO_COLOR=1", "TZ=Asia/Tokyo", "LANG=tr_TR.UTF-8", "COLUMNS=7", "SUDO_USER=garbage")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestUnisolated: a fabsh that a test starts without testEnv ends.
func TestUnisolated(t *testing.T) {
	c := exec.Command("fabsh", "version")
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, _ := c.CombinedOutput()
	if got, want := string(out), "fabsh: started by a test without testEnv\n"; got != want || c.ProcessState.ExitCode() != 2 {
		t.Errorf("got %q, status %d; want %q, status 2", got, c.ProcessState.ExitCode(), want)
	}
}
