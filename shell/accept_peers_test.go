//go:build linux

package shell

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// acceptance is what accept -o json prints.
type acceptance struct {
	Items []struct {
		Item, Outcome, Reason string
		Findings              []struct{ ID string }
	}
}

// TestAcceptBesideOpenSM: profiles judge a fabric of ibsim with an OpenSM. Each item passes, fails with
// findings, or states why it is not judged; what passes was read by requests that are in the recording, and
// without OpenSM its item fails and those that need LIDs are not judged.
func TestAcceptBesideOpenSM(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute: counters are compared over 10 s")
	}
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{})
	sm := f.StartSM(t, ibsimtest.FixtureOptions{SM: "host-0-0", SMArgs: []string{"-s", "1"}})
	sm.Wait(t, "SUBNET UP")
	other := f.StartSM(t, ibsimtest.FixtureOptions{SM: "host-3-3", SMArgs: []string{"-s", "1"}})
	other.Wait(t, "Entering STANDBY state")
	dir := t.TempDir()
	run := func(status int, profile string, words ...string) string {
		t.Helper()
		c := on(t, f, append([]string{"-q", "-C", "host-1-1", "--state", filepath.Join(dir, "state"), "-o", "json"}, append(words, "accept", profile, "--out", filepath.Join(dir, profile+".html"))...)...)
		out, err := c.Output()
		if got := c.ProcessState.ExitCode(); got != status {
			t.Errorf("%s: exit status %d, want %d: %v", profile, got, status, err)
		}
		var a acceptance
		if err := json.Unmarshal(out, &a); err != nil {
			t.Fatalf("%s: %v in %s", profile, err, out)
		}
		var b strings.Builder
		for _, i := range a.Items {
			if i.Outcome == "not judged" && i.Reason == "" || (i.Outcome == "fail") != (len(i.Findings) > 0) {
				t.Errorf("%s: %+v", profile, i)
			}
			fmt.Fprintf(&b, "%s %s", i.Outcome, i.Item)
			for _, x := range i.Findings {
				check, _, _ := strings.Cut(x.ID, ":")
				fmt.Fprintf(&b, " %s", check)
			}
			if i.Reason != "" {
				fmt.Fprintf(&b, ": %s", i.Reason)
			}
			b.WriteString("\n")
		}
		page, err := os.ReadFile(filepath.Join(dir, profile+".html"))
		if err != nil || strings.Count(string(page), "<article ") != len(a.Items) {
			t.Errorf("%s: the page: %v, %d items of %d", profile, err, strings.Count(string(page), "<article "), len(a.Items))
		}
		return b.String()
	}
	recording := filepath.Join(dir, "run.pcap")
	bringup := run(3, "nvidia-bringup", "--record", recording)
	if diff := cmp.Diff(`not judged topology: no plan was given (--plan FILE)
pass uplinks
pass hosts
not judged firmware: fw.outlier: 22 of 22 devices do not support MGIR
not judged module-firmware: no audit compares it; ibdiagnet --get_cable_info shows it
not judged software: hosts, their BMCs and the command line of switches know them
pass sm
not judged sm-log: the log is on the host of the subnet manager
pass identities
pass names
pass link-state
pass link-rate
not judged ber: ctr.fec.uncorrectable: 22 of 22 devices do not support MGIR
not judged link-downs: watched for 0s of 24h (--soak)
not judged counters: watched for 0s of 2h5m (--soak)
not judged transceivers: env.temp cable.eeprom: 22 of 22 devices do not support MGIR
not judged supplies: env.fan env.psu: 22 of 22 devices do not support MGIR
pass routing
not judged shield: no device has AdaptiveRoutingInfo
not judged performance: it needs traffic between hosts
`, bringup); diff != "" {
		t.Errorf("nvidia-bringup: -want +got\n%s", diff)
	}
	datagrams := outcome(fabsh(t, nil, "decode", recording))
	for _, name := range []string{"PortInfo", "NodeDescription", "SMInfo", "LinearForwardingTable", "PortCounters", "PathRecord"} {
		if !strings.Contains(datagrams, "GetResp("+name) {
			t.Errorf("no answer to %s is in the recording: %.2000s", name, datagrams)
		}
	}
	const site = "not judged complete: no plan was given (--plan FILE)\npass links\npass manager\nnot judged stable: watched for 0s of 12h (--soak)\n"
	if diff := cmp.Diff(site, run(3, "site")); diff != "" {
		t.Errorf("site: -want +got\n%s", diff)
	}
	other.Stop()
	if alone := run(3, "site"); !strings.Contains(alone, "fail manager sm.standby\n") {
		t.Errorf("site without a standby:\n%s", alone)
	}
	sm.Stop()
	if got, want := run(3, "nvidia-bringup"), strings.Replace(bringup, "pass sm\n", "fail sm sa.answers sm.none\n", 1); got != want {
		t.Errorf("without OpenSM: -want +got\n%s", cmp.Diff(want, got))
	}
}
