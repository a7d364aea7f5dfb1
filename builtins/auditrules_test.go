package builtins

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/audits"
	"fabsh/fabric/format"
)

// dumpOf writes a dump as ibnetdiscover does, of links such as "leaf1/1 spine2/3 4xHDR", or with
// two rates, one for each end. The first letters of a name are the kind of node: leaf, spine and
// core are switches.
func dumpOf(links []string) string {
	type end struct {
		num        int
		peer       string
		peerNum    int
		rate, name string
	}
	ports, order := map[string][]end{}, []string(nil)
	add := func(name string, e end) {
		if ports[name] == nil {
			order = append(order, name)
		}
		ports[name] = append(ports[name], e)
	}
	for _, l := range links {
		var a, b string
		rates := []string{"4xHDR"}
		words := strings.Fields(l)
		a, b = words[0], words[1]
		if len(words) > 2 {
			rates = words[2:]
		}
		cut := func(s string) (name string, num int) {
			i := strings.LastIndexByte(s, '/')
			fmt.Sscan(s[i+1:], &num)
			return strings.ReplaceAll(s[:i], "_", " "), num
		}
		an, ap := cut(a)
		bn, bp := cut(b)
		add(an, end{ap, bn, bp, rates[0], bn})
		add(bn, end{bp, an, ap, rates[len(rates)-1], an})
	}
	id := func(name string) string {
		letter := "H"
		if isSwitchName(name) {
			letter = "S"
		}
		return fmt.Sprintf("%s-%016x", letter, slices.Index(order, name)+1)
	}
	var out strings.Builder
	for i, name := range order {
		device, vendor := "0x101b", "0x2c9"
		switch {
		case isSwitchName(name):
			device = "0xd2f0"
		case strings.HasPrefix(name, "sharp"):
			device = "0xcf09"
		case strings.HasPrefix(name, "old"):
			device = "0x1003"
		}
		fmt.Fprintf(&out, "vendid=%s\ndevid=%s\nsysimgguid=%#x\n", vendor, device, i+1)
		if isSwitchName(name) {
			fmt.Fprintf(&out, "switchguid=%#x(%x)\nSwitch\t40 %q\t# %q enhanced port 0 lid %d lmc 0\n", i+1, i+1, id(name), name, i+1)
		} else {
			fmt.Fprintf(&out, "caguid=%#x\nCa\t4 %q\t# %q\n", i+1, id(name), name)
		}
		for _, e := range ports[name] {
			fmt.Fprintf(&out, "[%d]\t%q[%d]\t# ", e.num, id(e.peer), e.peerNum)
			if !isSwitchName(name) {
				fmt.Fprintf(&out, "lid %d lmc 0 ", i+1)
			}
			fmt.Fprintf(&out, "%q lid %d %s\n", e.name, slices.Index(order, e.peer)+1, e.rate)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func isSwitchName(name string) bool {
	return strings.HasPrefix(name, "leaf") || strings.HasPrefix(name, "spine") || strings.HasPrefix(name, "core")
}

// tree is a network of leaves and spines, each pair with so many cables, and hosts at the leaves.
func tree(leaves, spines, cables, hosts int, host string) (links []string) {
	for l := 1; l <= leaves; l++ {
		for h := 1; h <= hosts; h++ {
			links = append(links, fmt.Sprintf("leaf%d/%d %s%d_HCA-1/1", l, h, host, (l-1)*hosts+h))
		}
		for s := 1; s <= spines; s++ {
			for c := 1; c <= cables; c++ {
				links = append(links, fmt.Sprintf("leaf%d/%d spine%d/%d", l, 20+(s-1)*cables+c, s, (l-1)*cables+c))
			}
		}
	}
	return links
}

// without leaves out links that begin with one of the ends.
func without(links []string, ends ...string) []string {
	return slices.DeleteFunc(slices.Clone(links), func(l string) bool {
		return slices.ContainsFunc(ends, func(e string) bool { return strings.HasPrefix(l, e+" ") })
	})
}

// TestRules: each rule of links and topology on a small network of its own, in a file without
// states of ports.
func TestRules(t *testing.T) {
	rails := func(swap bool) (links []string) {
		for h := 1; h <= 8; h++ {
			for r := 1; r <= 4; r++ {
				leaf, name := r, fmt.Sprintf("gpu%d_HCA-%d", h, r)
				if h == 3 { // another numbering
					name = fmt.Sprintf("gpu%d_mlx5_%d", h, r-1)
				}
				if swap && h == 5 && r < 3 {
					leaf = 3 - r
				}
				links = append(links, fmt.Sprintf("leaf%d/%d %s/1", leaf, h, name))
			}
		}
		return links
	}
	big := tree(8, 4, 1, 2, "node")
	for _, x := range []struct {
		name  string
		links []string
		want  string
	}{
		{"a whole tree", big, ""},
		{"a leaf with fewer", without(big, "leaf3/22"), "warning link.uplinks leaf3: links to spines: 3; most similar leaves: 4; fewer than most to spine2 (0 of 1)\n"},
		{"a leaf with half", without(big, "leaf3/22", "leaf3/23"), "error link.uplinks leaf3: links to spines: 2; most similar leaves: 4; fewer than most to spine2 (0 of 1), spine3 (0 of 1)\n"},
		{"a spine with fewer", without(big, "leaf3/22", "leaf4/22", "leaf5/22", "leaf6/22", "leaf7/22"), ""}, // most leaves are so
		{"a spine with fewer of many", without(tree(20, 4, 1, 1, "node"), "leaf3/22", "leaf4/22", "leaf5/22", "leaf6/22"), "warning link.uplinks spine2: links to leaves: 16; 4 leaves have fewer links to this switch than most, such as leaf3, leaf4, leaf5\n"},
		{"a pair with fewer cables", without(tree(3, 4, 2, 2, "node"), "leaf2/24"), "warning link.uplinks leaf2: links to spine2: 1; most such pairs of switches: 2\n"},
		{"hosts on a spine", append(without(tree(6, 2, 4, 12, "node"), "leaf3/28"), "spine1/35 mgmt1_HCA-1/1", "spine1/36 mgmt2_HCA-1/1"), "warning link.uplinks leaf3: links to spines: 7; most similar leaves: 8; fewer than most to spine2 (3 of 4)\n"},
		{"leaves for storage", append(tree(5, 4, 1, 2, "node"), "leaf6/1 disk1_HCA-1/1", "leaf6/21 spine1/30", "leaf7/1 disk2_HCA-1/1", "leaf7/21 spine2/30"), ""},
		{"aggregation nodes", append(slices.Clone(big), "spine1/40 sharp1/1 4xEDR", "spine2/40 sharp2/1 4xEDR", "leaf1/40 sharp3/1 4xEDR"), ""},
		{"parallel links", slices.Replace(tree(2, 2, 2, 1, "node"), 1, 2, "leaf1/21 spine1/1 4xEDR"), "warning link.siblings leaf1/21 - spine1/1: 4x edr; another link between these switches: 4x hdr\n"},
		{"ends that differ", slices.Replace(slices.Clone(big), 0, 1, "leaf1/1 node1_HCA-1/1 4xHDR 1xHDR"), "error link.asymmetric leaf1/1 - node1 HCA-1/1: the ends differ: width 4x and 1x\n"},
		{"siblings", slices.Replace(slices.Clone(big), 0, 1, "leaf1/1 node1_HCA-1/1 4xEDR"), "warning link.siblings leaf1/1 - node1 HCA-1/1: 4x edr; most links between these models: 4x hdr\n"},
		{"below the generation", append(slices.Clone(big), "leaf1/9 old1_HCA-1/1 4xSDR", "leaf1/10 old2_HCA-1/1 4xFDR"), "warning link.speed leaf1/9 - old1 HCA-1/1: speed sdr; both devices support qdr or more\n"},
		{"a policy below the generation", append(slices.Clone(big), "leaf1/9 old1_HCA-1/1 4xSDR", "leaf1/10 old2_HCA-1/1 4xSDR"), "info link.speed leaf1/10 - old2 HCA-1/1: speed sdr; both devices support qdr or more, at all links of the model\ninfo link.speed leaf1/9 - old1 HCA-1/1: speed sdr; both devices support qdr or more, at all links of the model\n"},
		{"1x", append(slices.Clone(big), "leaf1/9 old1_HCA-1/1 1xFDR"), "warning link.width leaf1/9 - old1 HCA-1/1: width 1x; both devices support 4x\n"},
		{"a loop", append(slices.Clone(big), "leaf1/30 leaf1/31"), "warning topo.loopback leaf1/30 - leaf1/31: both ends of the cable are in one node\n"},
		{"rails", rails(false), ""},
		{"exchanged rails", rails(true), "warning host.rails gpu5 HCA-1/1: rail 1 by the names of adapters; leaf2 is a leaf of rail 2\nwarning host.rails gpu5 HCA-2/1: rail 2 by the names of adapters; leaf1 is a leaf of rail 1\n"},
		{"three hosts", rails(true)[8:20], ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			f, err := format.Load(strings.NewReader(dumpOf(x.links)), "net", nil)
			if err != nil {
				t.Fatal(err)
			}
			file := ofFile(t, f)
			defer file.Close()
			var got []string
			for _, f := range audited(t, file, audits.RunOptions{}, "links", "topology").Findings {
				got = append(got, fmt.Sprintf("%s %s %s: %s\n", f.Severity, f.Check, f.Subject.Name(), f.Message))
			}
			slices.Sort(got)
			if text := strings.Join(got, ""); text != x.want {
				t.Errorf("got\n%swant\n%s", text, x.want)
			}
		})
	}
}
