//go:build linux

package builtins

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/program"
)

// linkEnd is one end of a link, or a port without one.
type linkEnd struct {
	Name, Width, Speed, State string
	LID                       int
	Peer                      string
	PeerLID                   int
}

// TestLinks compares the shipped example with iblinkinfo.
func TestLinks(t *testing.T) {
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		theirs := iblinkinfo(t, f.peer.Run(t, "iblinkinfo", "-l"))
		ours := map[string]linkEnd{}
		for _, args := range [][]string{nil, {"--down"}} {
			maps.Copy(ours, f.links(t, args...))
		}
		if len(ours) < 20 {
			t.Errorf("%d ports", len(ours))
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("(-iblinkinfo +links.star):\n%s", diff)
		}
	})
}

// links runs links.star, and returns its rows by LID and port.
func (f *peerFixture) links(t *testing.T, args ...string) map[string]linkEnd {
	t.Helper()
	f.stdout.Reset()
	if err := program.RunFile(context.Background(), f.Interpreter, "@examples//links.star", args); err != nil || audits.ExitStatus(f.Runtime, err) != 0 {
		t.Fatalf("%s\n%s", f.Explain(err), f.stderr.String())
	}
	var rows []struct {
		Port, Width, Speed, State, Peer string
		LID                             int
		PeerLID                         int `json:"peer_lid"`
	}
	if err := json.Unmarshal(f.stdout.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	list := map[string]linkEnd{}
	for _, r := range rows {
		if r.LID == 0 {
			continue // a channel adapter's port that no link to the subnet leads to: the tool does not know it
		}
		num := r.Port[strings.LastIndexByte(r.Port, '/')+1:]
		list[fmt.Sprintf("%d/%s", r.LID, num)] = linkEnd{asShown(r.Port), r.Width, r.Speed, r.State, r.LID, asShown(r.Peer), r.PeerLID}
	}
	return list
}

// asShown is what iblinkinfo leaves of the name in "NAME/PORT".
func asShown(port string) string {
	i := strings.LastIndexByte(port, '/')
	if i < 0 {
		return port
	}
	return strings.TrimSpace(mangled(attributes{"": port[:i]}, "")) + port[i:]
}

var linkLine = regexp.MustCompile(`^0x[0-9a-f]{16} "(.*)" +(\d+) +(\d+)\[  \] ==\( *(?:(\d+X) +([0-9.]+ Gbps(?: \(FDR10\))?))? *(\w+)/ *(\w+)\)==> +(?:0x[0-9a-f]{16} +(\d+) +(\d+))?\[  \] "(.*)" \(.*\)\n$`)

// iblinkinfo parses its lines.
func iblinkinfo(t *testing.T, out string) map[string]linkEnd {
	t.Helper()
	speeds := map[string]string{"": "", "2.5 Gbps": "sdr", "5.0 Gbps": "ddr", "10.0 Gbps": "qdr", "10.0 Gbps (FDR10)": "fdr10",
		"14.0625 Gbps": "fdr", "25.78125 Gbps": "edr", "53.125 Gbps": "hdr"}
	list := map[string]linkEnd{}
	for line := range strings.Lines(out) {
		m := linkLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("what is %q", line)
		}
		end := linkEnd{
			Name: strings.TrimSpace(m[1]) + "/" + m[3], Width: strings.ToLower(m[4]), Speed: speeds[m[5]],
			State: strings.ToLower(m[6]),
		}
		end.LID, _ = strconv.Atoi(m[2])
		if m[8] != "" {
			end.PeerLID, _ = strconv.Atoi(m[8])
			end.Peer = strings.TrimSpace(m[10]) + "/" + m[9]
		}
		list[m[2]+"/"+m[3]] = end
	}
	return list
}

// TestDump compares a dump with ibnetdiscover's whole output, but for the
// order of records and the time.
func TestDump(t *testing.T) {
	onPeerNets(t, nil, func(t *testing.T, f *peerFixture) {
		sorted := func(out string) []string {
			_, rest, _ := strings.Cut(out, "\n# Topology file: generated ")
			_, rest, _ = strings.Cut(rest, "\n")
			list := strings.Split(strings.TrimSpace(rest), "\n\n")
			slices.Sort(list)
			return list
		}
		var ours string
		f.eval(t, &ours, `discover().dump("ibnetdiscover")`)
		theirs := sorted(f.peer.Run(t, "ibnetdiscover"))
		if len(theirs) < 10 {
			t.Errorf("%d records", len(theirs))
		}
		if diff := cmp.Diff(theirs, sorted(ours)); diff != "" {
			t.Errorf("(-ibnetdiscover +dump):\n%s", diff)
		}
	})
}
