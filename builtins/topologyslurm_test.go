package builtins

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fabsh/fabric/hosts"
)

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

// samePaths compares the groups of hosts, nearest first, with those of g. Without all, hosts may
// be missing.
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

// onlyFirsts fails unless the hosts are those of g whose names end with 1.
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
