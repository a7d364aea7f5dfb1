package builtins

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/program"
	"fabsh/fabric/hosts"
	"fabsh/fabric/sim"
)

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

// TestTopologyHost: the text for each host has its groups, and those of no other.
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
		k, err := program.LoadTopology(t.Context(), session.Interpreter, kind, words, nil)
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
		{"slurm-node", "node-9999", `topology slurm-node: unknown host "node-9999"`},
		{"nfd", "$(reboot)", `topology nfd: unknown host "$(reboot)"`},
		{"slurm", "node-0001", `unexpected argument "node-0001"`},
	} {
		if text, err := text(test.kind, test.host); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: %q, %v; want %s", test.kind, test.host, text, err, test.want)
		}
	}
}
