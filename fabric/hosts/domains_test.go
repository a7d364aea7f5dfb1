package hosts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/sim"
)

// TestReadDomains: the forms of the file, and what is wrong with others.
func TestReadDomains(t *testing.T) {
	smi := func(host, cluster, clique string) string {
		return host + ":     Fabric\n" + host + ":         State                             : Completed\n" +
			host + ":         CliqueId                          : " + clique + "\n" + host + ":         ClusterUUID                       : " + cluster + "\n"
	}
	for _, test := range []struct{ text, want string }{
		{"# rack 1\nnode-[1-2] u.1\nNode-3.example.com u.2\n", "node-1 u.1, node-2 u.1, node-3 u.2"},
		{smi("n1", "ab-1", "7") + smi("n1", "ab-1", "7") + smi("n2", "N/A", "N/A") + smi("n3", "00000000-0000", "0"), "n1 ab-1.7"},
		{`{"items": [{"metadata": {"name": "n1", "labels": {"nvidia.com/gpu.clique": "u.1"}}}, {"metadata": {"name": "n2"}}]}`, "n1 u.1"},
		{"n1: fabric    host n1: 8 ports, 8 of InfiniBand; NVLink domain ab-1.7\nn1: audits    host\nn2: fabric    host n2: 8 ports, 8 of InfiniBand\nlogin: fabric  host n3.example.com: 1 port, 0 of InfiniBand; NVLink domain ab-1.7\n", "n1 ab-1.7, n3 ab-1.7"},
		{"n1: fabric    host n1: 1 port, 1 of InfiniBand; NVLink domain a;b\n", `! line 1: host "n1": invalid domain "a;b"`},
		{"node-1 u.1\nnode-1 u.2\n", `! line 2: host "node-1": two domains, u.1 and u.2`},
		{"node-1\n", `! line 1: want HOSTS DOMAIN, got "node-1"`},
		{"node-1 a;b\n", `! line 1: host "node-1": invalid domain "a;b"`},
		{smi("n1", "ab-1", "7") + smi("n1", "ab-2", "7"), `! line 8: host "n1": GPUs with ClusterUUID ab-1 and ab-2`},
		{"n1: CliqueId : 7\n", `! host "n1": no ClusterUUID or no CliqueId`},
		{"", "! no host has a domain"},
		{"{", "! invalid JSON"},
		{`{"items": []}`, "! no node has the label nvidia.com/gpu.clique"},
	} {
		d, err := ReadDomains([]byte(test.text), DomainLabel)
		var list []string
		for _, host := range []string{"node-1", "node-2", "node-3", "n1", "n2", "n3"} {
			if d[host] != "" {
				list = append(list, host+" "+d[host])
			}
		}
		got := strings.Join(list, ", ")
		if err != nil {
			got = "! " + err.Error()
		}
		if got != test.want && !(strings.HasPrefix(test.want, "!") && strings.HasPrefix(got, test.want)) {
			t.Errorf("%.40q: got %s, want %s", test.text, got, test.want)
		}
	}
}

// TestNameIn: the host of a name of any case and domain, unless two fit.
func TestNameIn(t *testing.T) {
	names := []string{"Node-1", "node-2", "NODE-2"}
	for host, want := range map[string]string{"node-1": "Node-1", "NODE-1.example.com": "Node-1", "node-2": "", "node-3": ""} {
		if got := NameIn(names, host); got != want {
			t.Errorf("%s: got %q, want %q", host, got, want)
		}
	}
}

// TestSplitByDomain: racks at common leaves are groups of their own below the leaves; a domain at two
// leaves is an error.
func TestSplitByDomain(t *testing.T) {
	f, _, err := sim.Parse("fattree:k=8,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	shown := func(d Domains) string {
		g, err := Find(f, GroupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.SplitByDomain(d); err != nil {
			return "! " + err.Error()
		}
		var list []string
		leaf := g.Roots[0].Groups[0]
		for _, x := range leaf.Groups {
			list = append(list, x.Name+" "+Fold(x.Hosts))
		}
		if g.Roots[0].Level != 2 || leaf.Level != 1 || len(leaf.Hosts) != 4 || len(g.Roots[0].Hosts) != 32 {
			t.Errorf("levels %d and %d, %d and %d hosts", g.Roots[0].Level, leaf.Level, len(leaf.Hosts), len(g.Roots[0].Hosts))
		}
		return strings.Join(list, ", ")
	}
	if diff := cmp.Diff("u-1 node-[0001-0002], u-2 node-0003, leaf-1-none node-0004", shown(Domains{"node-0001": "u.1", "node-0002": "u.1", "node-0003": "u.2"})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, test := range []struct {
		d    Domains
		want string
	}{
		{Domains{"node-0001": "u.1", "node-0005": "u.1"}, "! NVLink domain u.1: hosts at two groups of leaves, leaf-1 and leaf-2"},
		{Domains{"other": "u.1"}, "! no host of the fabric has a domain in the file"},
	} {
		if got := shown(test.d); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
