package builtins

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
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
			k, err := program.LoadTopology(t.Context(), session.Interpreter, test.kind, test.words, nil)
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

// keys fails unless m has these keys, and of others only those in may.
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
		k, err := program.LoadTopology(t.Context(), session.Interpreter, "k.star", nil, nil)
		if err == nil {
			_, _, err = k.Write(t.Context(), g)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\ngot %v, want %s", test.script, err, test.want)
		}
	}
}
