package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// onRails audits from two ports of a host, and gives what that wrote, and the
// exit status.
func onRails(t *testing.T, flags, words, specs []string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	p := testProgram(t, &out, flags...)
	o, list, take := auditLine()
	root := &cobra.Command{Use: "fabsh", TraverseChildren: true}
	c := &cobra.Command{Use: "audit", RunE: take}
	list.addTo(c)
	root.AddCommand(c)
	if err := Execute(p, root, append([]string{"audit"}, words...)); err != nil {
		t.Fatal(err)
	}
	status := p.Console.Fail(auditRails(p, *o, []string{"mlx5_0/1", "mlx5_1/1"}, specs))
	return out.String(), status
}

const (
	wellRail = `fabric    6 nodes (3 switches, 3 CAs), 6 links, complete
audits    links
coverage  100 % of 24 requests
findings  none
`
	silentRail = `fabric    5 nodes (3 switches, 2 CAs), 5 links, incomplete: 1 timed out
audits    links
coverage  95.65 % of 23 requests; NodeInfo of sweep: 1 timed out of 6
findings  1 error

error     port.unresponsive:0x0002c90300100010/1  switch-2/1: the link is up, but the peer did not answer: check the node and the cable; it may require its M_Key (--keys)
`
)

// TestEachPort: what is wrong with one rail takes nothing from the other, whichever
// comes first, and the worse status counts.
func TestEachPort(t *testing.T) {
	const well, silent, none = "sim:ring:n=3", "sim:ring:n=3,dead=switch-2/1", "sim:ring:n=0"
	nothing := "audit: port mlx5_1/1: simulated fabric \"ring:n=0\": ring: n=0 is not a number from 1 to 49151\n"
	for _, test := range []struct {
		name   string
		specs  []string
		want   string // but for the ports
		status int
	}{
		{"both are well", []string{well, well}, wellRail + wellRail, 0},
		{"something does not answer on the second", []string{well, silent}, wellRail + silentRail, 3},
		{"something does not answer on the first", []string{silent, well}, silentRail + wellRail, 3},
		{"one cannot be opened", []string{well, none}, wellRail + nothing, 2},
		{"the first cannot be opened", []string{none, silent}, strings.Replace(nothing, "mlx5_1", "mlx5_0", 1) + silentRail, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, status := onRails(t, []string{"-q", "-t", "100", "--state", t.TempDir()}, []string{"links"}, test.specs)
			if diff := cmp.Diff(test.want, withoutPorts(t, got)); diff != "" || status != test.status {
				t.Errorf("status %d, want %d; -want +got\n%s", status, test.status, diff)
			}
		})
	}
}

// withoutPorts takes the lines out that say which rail follows.
func withoutPorts(t *testing.T, text string) string {
	t.Helper()
	first, second := "port      mlx5_0/1\n", "port      mlx5_1/1\n"
	if strings.Count(text, first)+strings.Count(text, second) != strings.Count(text, "fabric    ") || strings.Contains(text, second) && strings.LastIndex(text, first) > strings.Index(text, second) {
		t.Errorf("the ports are not told:\n%s", text)
	}
	return strings.NewReplacer(first, "", second, "").Replace(text)
}

// TestEachPortOneReport: what is for programs is one document, of all rails, with
// what two of them have in common.
func TestEachPortOneReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	out, status := onRails(t, []string{"-q", "-o", "json", "--state", t.TempDir()}, []string{"identity", "--fail-on", "info", "--out", path},
		[]string{"sim:ring:n=3", "sim:ring:n=3,sm=node-0002 HCA-1"})
	if out != "" || status != 1 {
		t.Errorf("status %d, wrote %q", status, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var reports []struct {
		Findings []struct{ ID, Message string }
	}
	if err := json.Unmarshal(text, &reports); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got []string
	for _, r := range reports {
		ids := ""
		for _, f := range r.Findings {
			ids += f.ID + ": " + f.Message
		}
		got = append(got, ids)
	}
	want := []string{"", "prefix.default:fabric: this subnet and the one at port mlx5_0/1 have the default GID prefix: GIDs do not distinguish them"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s\n%s", diff, text)
	}
}

// TestEachPortNodes: hosts are unknown if a rail could not be audited, and ok if all were.
func TestEachPortNodes(t *testing.T) {
	const well, none = "sim:ring:n=3", "sim:ring:n=0"
	for _, test := range []struct {
		specs  []string
		want   string
		status int
	}{
		{[]string{well, well}, "hosts      3 ok\nok         node-[0001-0003]\n", 0},
		{[]string{well, none}, "hosts      3 unknown\nunknown    node-[0001-0003]\n  port mlx5_1/1: not audited\n", 2},
	} {
		var out bytes.Buffer
		p := testProgram(t, &out, "-q", "-o", "nodes", "--state", t.TempDir())
		o := newAuditOptions()
		o.words = []string{"links"}
		if err := o.checkNodes(p); err != nil {
			t.Fatal(err)
		}
		status := p.Console.Fail(auditRails(p, *o, []string{"mlx5_0/1", "mlx5_1/1"}, test.specs))
		got := out.String()
		if i := strings.Index(got, "hosts "); i > 0 {
			got = got[i:]
		}
		if got != test.want || status != test.status {
			t.Errorf("status %d, want %d\n%s", status, test.status, out.String())
		}
	}
}

// TestEachPortOneSubnet: two ports in one subnet are no two subnets.
func TestEachPortOneSubnet(t *testing.T) {
	out, status := onRails(t, []string{"-q", "--state", t.TempDir()}, []string{"identity", "--fail-on", "info"}, []string{"sim:ring:n=3", "sim:ring:n=3"})
	if want := strings.Repeat(strings.Replace(wellRail, "links\n", "identity\n", 1), 2); withoutPorts(t, out) != want || status != 0 {
		t.Errorf("status %d, wrote\n%s", status, out)
	}
}

// TestEachPortDeadline: the time is for all rails together.
func TestEachPortDeadline(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "slow.star")
	if err := os.WriteFile(slow, []byte("def audit(fabric):\n    for _ in range(1 << 50):\n        pass\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, status := onRails(t, []string{"-q", "--deadline", "1s", "--state", t.TempDir()}, []string{slow}, []string{"sim:ring:n=3", "sim:ring:n=3"})
	want := "audit: port mlx5_1/1: not audited: deadline of 1s passed\n"
	if !strings.Contains(got, want) || strings.Count(got, "audits ") > 1 || status != 3 {
		t.Errorf("status %d\n%s", status, got)
	}
}
