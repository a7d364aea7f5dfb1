//go:build linux

package shell

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAuditOutage: a run that finds less than half of the switches of earlier runs reports what
// is missing, and a finding that compares with those runs is acknowledged with its count. That
// there is no such finding is printed only if its check was done.
func TestAuditOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("findings are re-read after 10 s")
	}
	t.Parallel()
	name, dir := fmt.Sprintf("fabsh-%016x", rand.Uint64()), t.TempDir()
	serveSim(t, name, "fattree:k=4,levels=2")
	varying := regexp.MustCompile(`until [0-9-]+|up [0-9hms]+ ago`)
	ack := func(id, reason string) []string {
		return []string{"audit", "ack", id, "--by", "me", "--reason", reason}
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{ack("node.gone:0x2c90300100010", "no runs"), "node.gone:0x0002c90300100010: acknowledged X (DIR/sm-0x0002c90310000001/acks)\n[exit status 0]\n"},
		{ack("link.width:0x2c90300100010/1", "spare"), "link.width:0x0002c90300100010/1: acknowledged X (DIR/sm-0x0002c90310000001/acks); there is no such finding now\n[exit status 0]\n"},
		{[]string{"audit", "links", "sm", "topology"}, `fabric    14 nodes (6 switches, 8 CAs), 16 links, complete
audits    links sm topology
coverage  100 % of 61 requests
findings  none
[exit status 0]
`},
		{ack("node.gone:0x2c90300100010", "it is there"), "node.gone:0x0002c90300100010: acknowledged X (DIR/sm-0x0002c90310000001/acks); there is no such finding now\n[exit status 0]\n"},
		{[]string{"audit", "ack", "rm", "node.gone:0x2c90300100010"}, "node.gone:0x0002c90300100010: no longer acknowledged\n[exit status 0]\n"},
		{[]string{"-c", `discover(); [sim.kill(n) for n in ("leaf-2", "leaf-3", "leaf-4", "spine-2")] and None`}, "[exit status 0]\n"},
		{[]string{"audit", "links", "sm", "topology"}, `fabric    4 nodes (2 switches, 2 CAs), 3 links, complete
audits    links sm topology
coverage  100 % of 21 requests; PDDR of links: 8 not supported of 8
findings  8 critical

critical  node.gone:0x0002c90300100050  0x0002c90300100050: the node was at leaf-1/4, now down
  critical  link.down:0x0002c90300100000/4  leaf-1/4: the link is down; it was X
critical  node.gone:0x0002c90300100010  0x0002c90300100010: the node was at spine-1/2, now down
  critical  link.down:0x0002c90300100040/2  spine-1/2: the link is down; it was X
critical  node.gone:0x0002c90300100020  0x0002c90300100020: the node was at spine-1/3, now down
  critical  link.down:0x0002c90300100040/3  spine-1/3: the link is down; it was X
critical  node.gone:0x0002c90300100030  0x0002c90300100030: the node was at spine-1/4, now down
  critical  link.down:0x0002c90300100040/4  spine-1/4: the link is down; it was X
[exit status 1]
`},
		{ack("node.gone:0x2c90300100010", "dead"), "node.gone:0x0002c90300100010: acknowledged X (DIR/sm-0x0002c90310000001/acks)\n[exit status 0]\n"},
		{[]string{"audit", "ack", "list", "--columns", "id,count"}, `id                               count
link.width:0x0002c90300100010/1      -
node.gone:0x0002c90300100010         1
[exit status 0]
`},
	} {
		got := outcome(fabsh(t, nil, append([]string{"-q", "-F", "ibsim:" + name, "-t", "5s", "--state", dir}, step.args...)...))
		got = varying.ReplaceAllString(strings.ReplaceAll(got, dir, "DIR"), "X")
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", step.args, diff)
		}
	}
}
