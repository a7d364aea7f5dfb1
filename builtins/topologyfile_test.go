package builtins

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"fabsh/builtins/program"
	"fabsh/fabric"
	"fabsh/fabric/hosts"
	"fabsh/fabric/sim"
)

// TestTopologyKinds: what each kind writes keeps the rules of who reads it.
func TestTopologyKinds(t *testing.T) {
	networks := map[string]*fabric.Fabric{"rails": railed(2, 3, 4)}
	for _, spec := range []string{"fattree:k=4,levels=3", "pgft:m=4/3/2,w=1/2/2,p=1/1/1,remove_links=20,seed=3", "star"} {
		if spec == "star" {
			spec = "mesh:dims=1,hosts=3"
		}
		f, _, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		networks[spec] = f
	}
	for _, test := range []struct {
		kind  string
		words []string
		check func(text string, g *hosts.Groups) error
	}{
		{"slurm", nil, slurmYAML},
		{"slurm", []string{"--plugin", "block", "--name=gpu"}, slurmYAML},
		{"slurm", []string{"--plugin=block", "--block-sizes=2,4,16"}, slurmYAML},
		{"slurm", []string{"--topologies=all=tree,few=block:*1,one=tree:*3,half=block:*0?,any=flat"}, slurmYAML},
		{"slurm-conf", []string{"--plugin=block"}, nil},
		{"slurm-node", nil, slurmNodes},
		{"slurm-node", []string{"--topologies=all=tree,few=block:*1"}, slurmNodes},
		{"nfd", nil, nfdLabels},
		{"kueue", nil, kueueTopology},
		{"kueue", []string{"--api=v1beta1", "--label", "example.com/level-"}, kueueTopology},
		{"volcano", nil, hyperNodes},
		{"volcano", []string{"--prefix", "ib-"}, hyperNodes},
		{"topograph", nil, topographGraph},
		{"topograph", []string{"--labels"}, nil},
		{"hostfile", []string{"--slots=8"}, nil},
	} {
		for name, f := range networks {
			session := plain(t, nil)
			k, err := program.LoadTopology(t.Context(), session.Interpreter, test.kind, test.words)
			if err != nil {
				t.Fatal(err)
			}
			g, err := hosts.Find(f, hosts.GroupOptions{DNS: k.DNS})
			if err != nil {
				t.Fatal(err)
			}
			text, _, err := k.Write(t.Context(), g)
			if err == nil && test.check != nil {
				err = test.check(text, g)
			}
			if err != nil {
				t.Errorf("%s %v of %s: %v\n%s", test.kind, test.words, name, err, text)
			}
		}
	}
}

// keys fails unless m has the keys of must, and no others except the keys of may.
func keys(m map[string]any, must, may string) error {
	for _, key := range strings.Fields(must) {
		if m[key] == nil {
			return fmt.Errorf("%v has no %s", m, key)
		}
	}
	for key := range m {
		if !slices.Contains(strings.Fields(must+" "+may), key) {
			return fmt.Errorf("%v has %s", m, key)
		}
	}
	return nil
}

// Patterns of the CRDs, as of v1 of kubernetes-sigs/kueue
// config/components/crd/bases/kueue.x-k8s.io_topologies.yaml, and volcano-sh/volcano
// config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml.
var (
	nodeLabel = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	nodeName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	labelText = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`) // of a value: apimachinery's validation.IsValidLabelValue
)

// kueueTopology: levels are unique, 8 at most (v1alpha1; 16 later), and only the last
// may be the hostname.
func kueueTopology(text string, g *hosts.Groups) error {
	var own struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   map[string]string
		Spec       struct {
			Levels []map[string]string
		}
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&own); err != nil {
		return err
	}
	levels := own.Spec.Levels
	if !strings.HasPrefix(own.APIVersion, "kueue.x-k8s.io/v1") || own.Kind != "Topology" || !nodeName.MatchString(own.Metadata["name"]) || len(levels) != g.Roots[0].Level+2 || len(levels) > 8 {
		return fmt.Errorf("%+v", own)
	}
	seen := map[string]bool{}
	for i, level := range levels {
		key := level["nodeLabel"]
		if len(level) != 1 || !nodeLabel.MatchString(key) || len(key) > 316 || seen[key] || (key == "kubernetes.io/hostname") != (i == len(levels)-1) {
			return fmt.Errorf("level %d: %v", i, level)
		}
		seen[key] = true
	}
	n := 0
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] != "#" {
			continue
		}
		n++
		if !nodeName.MatchString(words[5]) || len(words) != 6+g.Roots[0].Level+1 {
			return fmt.Errorf("%q", line)
		}
		for _, word := range words[6:] {
			if key, value, _ := strings.Cut(word, "="); !seen[key] || !labelText.MatchString(value) {
				return fmt.Errorf("%q", line)
			}
		}
	}
	if n == 0 {
		return fmt.Errorf("no labels")
	}
	return nil
}

// hyperNodes: tiers from 1 up, members at least one, each a Node or a HyperNode of the
// tier below, which is in no other.
func hyperNodes(text string, g *hosts.Groups) error {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	tier, member := map[string]int{}, map[string]bool{}
	for {
		var x struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   map[string]string
			Spec       struct {
				Tier    int
				Members []struct {
					Type     string
					Selector struct {
						ExactMatch struct{ Name string } `yaml:"exactMatch"`
					}
				}
			}
		}
		if err := d.Decode(&x); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		name := x.Metadata["name"]
		if x.APIVersion != "topology.volcano.sh/v1alpha1" || x.Kind != "HyperNode" || !nodeName.MatchString(name) || len(name) > 253 || tier[name] != 0 || x.Spec.Tier < 1 || len(x.Spec.Members) == 0 {
			return fmt.Errorf("%+v", x)
		}
		tier[name] = x.Spec.Tier
		for _, m := range x.Spec.Members {
			at := m.Selector.ExactMatch.Name
			want := "HyperNode"
			if x.Spec.Tier == 1 {
				want = "Node"
			}
			if m.Type != want || !nodeName.MatchString(at) || member[m.Type+at] || m.Type == "HyperNode" && tier[at] != x.Spec.Tier-1 {
				return fmt.Errorf("member %+v of %s", m, name)
			}
			member[m.Type+at] = true
		}
	}
	if tops := slices.Max(slices.Collect(maps.Values(tier))); tops != g.Roots[0].Level+1 {
		return fmt.Errorf("%d tiers", tops)
	}
	return nil
}

// topographGraph: as pkg/topology of NVIDIA/topograph has Instances.
func topographGraph(text string, g *hosts.Groups) error {
	var own struct {
		Instances []struct {
			ID     string   `json:"id"`
			Layers []string `json:"network_layers"`
		} `json:"instances"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&own); err != nil {
		return err
	}
	leaf := g.Roots[0]
	for leaf.Level > 0 {
		leaf = leaf.Groups[0]
	}
	first := own.Instances[0]
	if first.ID != leaf.Hosts[0] || first.Layers[0] != leaf.Name || len(first.Layers) != g.Roots[0].Level+1 {
		return fmt.Errorf("first %+v", first)
	}
	return nil
}

// TestTopologyBroken: a script whose text is not what the groups are writes nothing.
func TestTopologyBroken(t *testing.T) {
	g, err := hosts.Find(railed(2, 3, 1), hosts.GroupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const read = "\ndef read(text):\n    out = {}\n    for line in text.splitlines():\n        host, leaf = line.split()\n        out[host] = [leaf]\n    return out\n"
	lines := func(change string) string {
		return "def topology(groups):\n    lines = [\"%s %s\" % (h, g.name) for g in groups.leaves for h in g.hosts]\n" + change + "    return \"\\n\".join(lines)\n" + read
	}
	for _, test := range []struct{ script, want string }{
		{lines(""), ""},
		{lines("    lines.pop()\n"), "1 of 6 hosts are missing: dgx-06"},
		{lines("    lines.append(\"x leaf\")\n"), `unknown host "x"`},
		{lines("    lines[0] = lines[0].split()[0] + \" \" + lines[-1].split()[1]\n"), `host "dgx-01": unknown group "SU2-leaf-r1" of 4 hosts`},
		{lines("    lines[0], lines[-1] = lines[0].split()[0] + \" \" + lines[-1].split()[1], lines[-1].split()[0] + \" \" + lines[0].split()[1]\n"), `host "dgx-04": unknown group "SU2-leaf-r1" of 3 hosts`},
		{"def topology(groups):\n    return 1\n" + read, "topology() returned int; want string"},
		{"def topology(groups):\n    return \"\"\ndef read(text):\n    return [1]\n", "read() returned list; want a dict"},
		{"def topology(groups, x):\n    return \"\"\n" + read, "invalid parameters of topology(); want groups, perhaps host, and options after a *"},
		{"def topology(groups, host = \"\"):\n    return \"\"\n" + read, "invalid parameters of read(); topology() has the parameter host, so want def read(text, host)"},
		{"def topology(groups):\n    return \"\"\ndef read(text):\n    return {\"a\": {h: [\"SU1-leaf-r1\" if h < \"dgx-04\" else \"SU2-leaf-r1\"] for h in [\"dgx-0%d\" % i for i in range(1, 7)]}, \"b\": {\"dgx-01\": [\"x\"], \"dgx-02\": [\"y\"]}}\n", `topology b: host "dgx-01": unknown group "x" of 1 hosts`},
		{"def topology(groups):\n    return \"\"\n", "it must define topology(groups, *, ...)"},
	} {
		session := plain(t, nil)
		write(t, session.fs, "/work/k.star", test.script)
		k, err := program.LoadTopology(t.Context(), session.Interpreter, "k.star", nil)
		if err == nil {
			_, _, err = k.Write(t.Context(), g)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\ngot %v, want %s", test.script, err, test.want)
		}
	}
}

// slurmYAML holds topology.yaml against Slurm 26.11's rules: keys of
// src/plugins/data_parser/v0.0.46/parsers.c (PARSER_ARRAY(TOPOLOGY_CONF), SWITCH_CONFIG,
// TOPOLOGY_BLOCK_CONFIG), what src/plugins/topology/tree/switch_record.c and
// block/block_record.c refuse, and topology.yaml(5). Slurm 22.05, which Debian has, does not read
// this file. Each topology is compared with the groups.
func slurmYAML(text string, g *hosts.Groups) error {
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(text), &list); err != nil || len(list) == 0 {
		return fmt.Errorf("%d topologies: %w", len(list), err)
	}
	names := map[string]bool{}
	for i, own := range list {
		name, _ := own["topology"].(string)
		if !strings.Contains("\n"+text, "\n- topology: "+name+"\n") {
			return fmt.Errorf("topology must be the first attribute")
		}
		if names[name] || own["cluster_default"] != (i == 0) {
			return fmt.Errorf("topology %s: its name is there twice, or it is not the only default", name)
		}
		names[name] = true
		if err := keys(own, "topology cluster_default", "tree block flat"); err != nil || len(own) != 3 {
			return fmt.Errorf("%v: %w", own, err)
		}
		paths, err := slurmPaths(own)
		if err == nil {
			err = samePaths(paths, g, i == 0)
		}
		if name == "few" && err == nil { // *1
			err = onlyFirsts(paths, g)
		}
		if err != nil {
			return fmt.Errorf("topology %s: %w", name, err)
		}
	}
	return nil
}

// samePaths compares the groups of hosts, nearest first, with the groups of g. Without all,
// hosts may be missing.
func samePaths(paths map[string][]string, g *hosts.Groups, all bool) error {
	want := groupNames(g)
	for host, path := range paths {
		own, ok := want[host]
		if !ok || !slices.Equal(path, own) && !slices.Equal(path, own[:1]) {
			return fmt.Errorf("%s: in %q, want %q", host, path, own)
		}
	}
	if all && len(paths) != len(want) {
		return fmt.Errorf("%d of %d hosts", len(paths), len(want))
	}
	return nil
}

// onlyFirsts fails unless the hosts are the hosts of g whose names end with 1.
func onlyFirsts(paths map[string][]string, g *hosts.Groups) error {
	for host := range groupNames(g) {
		if _, ok := paths[host]; ok != strings.HasSuffix(host, "1") {
			return fmt.Errorf("host %s: %t", host, ok)
		}
	}
	return nil
}

// groupNames are the names of the groups of each host, nearest first.
func groupNames(g *hosts.Groups) map[string][]string {
	names := map[string][]string{}
	var visit func(list []*hosts.Group, above []string)
	visit = func(list []*hosts.Group, above []string) {
		for _, x := range list {
			in := append([]string{x.Name}, above...)
			visit(x.Groups, in)
			if x.Level == 0 {
				for _, host := range x.Hosts {
					names[host] = in
				}
			}
		}
	}
	visit(g.Roots, nil)
	return names
}

// slurmPaths are the switches or the block of each host of a topology.
func slurmPaths(own map[string]any) (map[string][]string, error) {
	paths := map[string][]string{}
	take := func(folded any, unit string) error {
		names, err := hosts.Expand(folded.(string))
		for _, host := range names {
			if paths[host] != nil || host == "" || len(host) > 64 {
				return fmt.Errorf("host %q is there twice, or too long", host)
			}
			paths[host] = []string{unit}
		}
		return err
	}
	if flat, ok := own["flat"]; ok {
		if flat != true {
			return nil, fmt.Errorf("flat: %v", flat)
		}
		return nil, nil
	}
	if block, ok := own["block"].(map[string]any); ok {
		if err := keys(block, "block_sizes blocks", ""); err != nil {
			return nil, err
		}
		base := block["block_sizes"].([]any)[0].(int)
		for _, size := range block["block_sizes"].([]any) {
			if n := size.(int); n%base != 0 || bits.OnesCount(uint(n/base)) != 1 {
				return nil, fmt.Errorf("block_sizes %v", block["block_sizes"])
			}
		}
		for _, b := range block["blocks"].([]any) {
			b := b.(map[string]any)
			if err := keys(b, "block nodes", ""); err != nil {
				return nil, err
			}
			if err := take(b["nodes"], b["block"].(string)); err != nil {
				return nil, err
			}
		}
		return paths, nil
	}
	tree := own["tree"].(map[string]any)
	if err := keys(tree, "switches", ""); err != nil {
		return nil, err
	}
	parent, defined := map[string]string{}, map[string]bool{}
	for _, s := range tree["switches"].([]any) {
		s := s.(map[string]any)
		name := s["switch"].(string)
		if defined[name] || len(name) > 64 || len(s) != 2 {
			return nil, fmt.Errorf("%v is there twice, or its name is too long, or it has not either child switches or nodes", s)
		}
		defined[name] = true
		if s["nodes"] != nil {
			if err := take(s["nodes"], name); err != nil {
				return nil, err
			}
			continue
		}
		children, _ := hosts.Expand(s["children"].(string))
		for _, child := range children {
			if !defined[child] || parent[child] != "" {
				return nil, fmt.Errorf("%v has an invalid child %s", s, child)
			}
			parent[child] = name
		}
	}
	for host, path := range paths {
		for up := parent[path[0]]; up != ""; up = parent[up] {
			path = append(path, up)
		}
		paths[host] = path
	}
	return paths, nil
}

// slurmNodes: each line names hosts and their topologies, NAME:UNIT, as topology_g_add_rm_node of
// Slurm's src/interfaces/topology.c splits them. Of a tree the units are switches from the root
// down; of a block there is one. Slurm 22.05, which Debian has, does not know Topology=.
func slurmNodes(text string, g *hosts.Groups) error {
	of := map[string]map[string][]string{}
	for line := range strings.Lines(text) {
		var folded, place string
		if _, err := fmt.Sscanf(line, "NodeName=%s Topology=%s\n", &folded, &place); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		names, err := hosts.Expand(folded)
		if err != nil {
			return err
		}
		for name, units := range slurmPlaces(place) {
			if of[name] == nil {
				of[name] = map[string][]string{}
			}
			for _, host := range names {
				of[name][host] = units
			}
		}
	}
	for name, paths := range of {
		err := samePaths(paths, g, name != "few")
		if name == "few" && err == nil {
			err = onlyFirsts(paths, g)
		}
		if err != nil {
			return fmt.Errorf("topology %s: %w", name, err)
		}
	}
	return nil
}

// slurmPlaces are the units of each topology, nearest first.
func slurmPlaces(text string) map[string][]string {
	places := map[string][]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, units, _ := strings.Cut(pair, ":")
		places[name] = strings.Split(units, ":")
		slices.Reverse(places[name])
	}
	return places
}

// nfdLabels: a comment with the host before its labels. Lines are read as parseFeatureFile of
// source/local/local.go of node-feature-discovery reads them.
func nfdLabels(text string, g *hosts.Groups) error {
	paths := map[string][]string{}
	host := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch name, isComment := strings.CutPrefix(line, "# "); {
		case line == "":
		case strings.HasPrefix(line, "# +"):
			return fmt.Errorf("%q is a directive", line)
		case isComment:
			host = name
		default:
			key, value, ok := strings.Cut(line, "=")
			if want := fmt.Sprintf("fabric.topograph.run/tier-%d", len(paths[host])); !ok || key != want || !nodeLabel.MatchString(key) || !labelText.MatchString(value) || !nodeName.MatchString(host) {
				return fmt.Errorf("%q of %q", line, host)
			}
			paths[host] = append(paths[host], value)
		}
	}
	return samePaths(paths, g, true)
}

// TestTopologyHost: the text for each host has its groups, and no groups of other hosts.
func TestTopologyHost(t *testing.T) {
	f, _, err := sim.Parse("pgft:m=4/3/2,w=1/2/2,p=1/1/1,remove_links=20,seed=3")
	if err != nil {
		t.Fatal(err)
	}
	g, err := hosts.Find(f, hosts.GroupOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	session := plain(t, nil)
	text := func(kind string, words ...string) (string, error) {
		k, err := program.LoadTopology(t.Context(), session.Interpreter, kind, words)
		if err != nil {
			return "", err
		}
		text, _, err := k.Write(t.Context(), g)
		return text, err
	}
	for host, groups := range groupNames(g) {
		place, err := text("slurm-node", host, "--topologies=default=tree,b=block")
		if got := slurmPlaces(strings.TrimSuffix(place, "\n")); err != nil || !slices.Equal(got["default"], groups) || !slices.Equal(got["b"], groups[:1]) || len(got) != 2 {
			t.Errorf("slurm-node %s: %q, %v; want %q", host, place, err, groups)
		}
		labels, err := text("nfd", host)
		if want := "# " + host + "\n"; err != nil || !strings.HasPrefix(labels, want) || strings.Count(labels, "#") != 1 {
			t.Errorf("nfd %s: %q, %v", host, labels, err)
		}
		one := &hosts.Groups{Roots: []*hosts.Group{{Name: groups[0], Hosts: []string{host}}}}
		for level, name := range groups[1:] {
			one.Roots = []*hosts.Group{{Name: name, Level: level + 1, Hosts: []string{host}, Groups: one.Roots}}
		}
		if err := nfdLabels(labels, one); err != nil {
			t.Errorf("nfd %s: %v", host, err)
		}
	}
	for _, test := range []struct{ kind, host, want string }{
		{"slurm-node", "node-9999", `slurm-node: unknown host "node-9999"`},
		{"nfd", "$(reboot)", `nfd: unknown host "$(reboot)"`},
		{"slurm", "node-0001", `unexpected argument "node-0001"`},
	} {
		if text, err := text(test.kind, test.host); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: %q, %v; want %s", test.kind, test.host, text, err, test.want)
		}
	}
}

// TestTopologySchemas: what kueue and volcano write is valid by the schemas of the
// custom resources, where FABSH_CRDS is a folder with clones of kubernetes-sigs/kueue
// and volcano-sh/volcano, "kueue" and "volcano". Rules in CEL are not evaluated: those
// that matter are in kueueTopology and hyperNodes.
func TestTopologySchemas(t *testing.T) {
	clones := os.Getenv("FABSH_CRDS")
	if clones == "" || os.Getenv("FABSH_SOAK") == "" {
		t.Skip("FABSH_SOAK, and FABSH_CRDS with the schemas")
	}
	f, _, err := sim.Parse("fattree:k=4,levels=3")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kind, file string
		words      []string
	}{
		{"kueue", "kueue/config/components/crd/bases/kueue.x-k8s.io_topologies.yaml", nil},
		{"kueue", "kueue/config/components/crd/bases/kueue.x-k8s.io_topologies.yaml", []string{"--api=v1beta1"}},
		{"volcano", "volcano/config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml", nil},
		{"volcano", "volcano/config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml", []string{"--prefix", "ib-"}},
	} {
		crd := readCRD(t, filepath.Join(clones, test.file))
		k, err := program.LoadTopology(t.Context(), plain(t, nil).Interpreter, test.kind, test.words)
		if err != nil {
			t.Fatal(err)
		}
		g, err := hosts.Find(f, hosts.GroupOptions{DNS: k.DNS})
		if err != nil {
			t.Fatal(err)
		}
		text, _, err := k.Write(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, x := range objects(t, text) {
			if x["kind"] != crd.Spec.Names["kind"] {
				continue // of Kubernetes itself
			}
			group, version, _ := strings.Cut(x["apiVersion"].(string), "/")
			i := slices.IndexFunc(crd.Spec.Versions, func(v crdVersion) bool { return v.Name == version && v.Served })
			if group != crd.Spec.Group || i < 0 {
				t.Errorf("%s: there is no %s", test.file, x["apiVersion"])
				continue
			}
			checked++
			if err := crd.Spec.Versions[i].Schema["openAPIV3Schema"].check(x, x["kind"].(string)); err != nil {
				t.Errorf("%s %v: %v", test.kind, test.words, err)
			}
			x["spec"].(map[string]any)["colour"] = "red"
			if crd.Spec.Versions[i].Schema["openAPIV3Schema"].check(x, "") == nil {
				t.Error("a field that there is not is taken")
			}
		}
		if t.Logf("%s %v: %d objects are valid", test.kind, test.words, checked); checked == 0 {
			t.Error("no object was checked")
		}
	}
}

// objects returns the objects of a text, the items of lists one by one.
func objects(t *testing.T, text string) (all []map[string]any) {
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var x map[string]any
		err := d.Decode(&x)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case x["kind"] == "List":
			for _, item := range x["items"].([]any) {
				all = append(all, item.(map[string]any))
			}
		default:
			all = append(all, x)
		}
	}
}

// crd is a CustomResourceDefinition, as far as it says what is valid.
type crd struct {
	Spec struct {
		Group    string
		Names    map[string]any
		Versions []crdVersion
	}
}

type crdVersion struct {
	Name   string
	Served bool
	Schema map[string]schema
}

func readCRD(t *testing.T, path string) (c crd) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(b, &c)
	}
	if err != nil || len(c.Spec.Versions) == 0 {
		t.Fatalf("%s: %v", path, err)
	}
	return c
}

// schema is a structural schema of OpenAPI 3 (Kubernetes' documentation, "Extend the
// Kubernetes API with CustomResourceDefinitions").
type schema struct {
	Type                 string
	Properties           map[string]schema
	AdditionalProperties *schema `yaml:"additionalProperties"`
	Items                *schema
	Required             []string
	Enum                 []any
	Pattern              string
	Minimum, Maximum     *float64
	MinItems             int  `yaml:"minItems"`
	MaxItems             *int `yaml:"maxItems"`
	MinLength            int  `yaml:"minLength"`
	MaxLength            *int `yaml:"maxLength"`
}

// check is why v, at a path, is not valid.
func (s schema) check(v any, at string) error {
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		return fmt.Errorf("%s: %v is none of %v", at, v, s.Enum)
	}
	switch v := v.(type) {
	case map[string]any:
		if s.Type != "object" {
			return fmt.Errorf("%s: an object, want %s", at, s.Type)
		}
		for _, name := range s.Required {
			if v[name] == nil {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
		for name, x := range v {
			of, known := s.Properties[name]
			switch {
			case !known && s.AdditionalProperties != nil:
				of = *s.AdditionalProperties
			case !known && s.Properties == nil: // metadata is Kubernetes' own
				continue
			case !known:
				return fmt.Errorf("%s has %s, which there is not", at, name)
			}
			if err := of.check(x, at+"."+name); err != nil {
				return err
			}
		}
	case []any:
		if s.Type != "array" || len(v) < s.MinItems || s.MaxItems != nil && len(v) > *s.MaxItems {
			return fmt.Errorf("%s: a list of %d, want %s", at, len(v), s.Type)
		}
		for i, x := range v {
			if err := s.Items.check(x, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case string:
		if s.Type != "string" || len(v) < s.MinLength || s.MaxLength != nil && len(v) > *s.MaxLength || !regexp.MustCompile(s.Pattern).MatchString(v) {
			return fmt.Errorf("%s: %q is not valid: %s %s", at, v, s.Type, s.Pattern)
		}
	case int:
		if s.Type != "integer" || s.Minimum != nil && float64(v) < *s.Minimum || s.Maximum != nil && float64(v) > *s.Maximum {
			return fmt.Errorf("%s: %d is not valid", at, v)
		}
	default:
		return fmt.Errorf("%s: %T, want %s", at, v, s.Type)
	}
	return nil
}
