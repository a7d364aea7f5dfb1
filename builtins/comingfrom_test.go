package builtins

import (
	"strings"
	"testing"

	"fabsh/builtins/script"
	"fabsh/builtins/tools"
)

// TestComingFrom: COMING_FROM.md is what the tables say.
func TestComingFrom(t *testing.T) { golden(t, "../examples/COMING_FROM.md", comingFrom()) }

// comingFrom returns the page for those who come from other tools: what they type
// there, and what does the same here. It is Markdown.
func comingFrom() string {
	var b strings.Builder
	b.WriteString(`# Coming from other tools
<!-- help: coming-from -->

Commands of other tools, and what does the same here. At the prompt, the name of a tool prints its line; ` + "`fabsh report NAME`" + ` prints what the tool of that name prints.
`)
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	code := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + cell(text) + "`"
	}
	head := func(name, there, here string) {
		b.WriteString("\n## " + name + "\n\n| " + there + " | " + here + " | besides |\n|---|---|---|\n")
	}
	row := func(there, here, besides string) {
		b.WriteString("| " + there + " | " + here + " | " + besides + " |\n")
	}
	for _, of := range []string{"infiniband-diags", "ibutils"} {
		head(of, "tool", "in a script, at the prompt, or after fabsh -c")
		for _, t := range tools.All() {
			if t.Of != of {
				continue
			}
			here := code(t.Here)
			if script.IsReport(t.Name) {
				here = code("fabsh report "+t.Name) + "; " + here
			}
			row(code(t.Name), here, cell(t.Note))
		}
	}
	for _, of := range []string{"OpenSM", "UFM"} {
		head(of, "there", "here")
		for _, m := range moves {
			if m.of == of {
				row(cell(m.there), code(m.here), cell(m.note))
			}
		}
	}
	return b.String()
}

// move is what one does with OpenSM or UFM, and the command that does it here.
type move struct{ of, there, here, note string }

var moves = []move{
	{"OpenSM", "`-R ENGINE`", "fabsh route updn --verify --out lfts.dump", "`fabsh route --list`; the file is what `opensm -R file -U lfts.dump` reads, and nothing is sent"},
	{"OpenSM", "`-a` root_guid_file", "fabsh route updn --roots roots.guids", "names such as `spine-*` will do, too"},
	{"OpenSM", "`-u` cn_guid_file, `-G` io_guid_file", "fabsh route ftree --cn cn.guids --io io.guids", ""},
	{"OpenSM", "guid_routing_order_file, port_search_ordering", "fabsh route ftree --port-order ports.txt", ""},
	{"OpenSM", "rch_policy_file, topo_policy_file, pgrp_policy_file", "fabsh route chain --chains chains.conf --topologies topo.conf --groups groups.conf", "routing chains of NVIDIA's OpenSM"},
	{"OpenSM", "`opensm-lfts.dump`, `opensm-sl2vl.dump`", "fabsh -F file:opensm-subnet.lst verify --lfts opensm-lfts.dump", "do all packets arrive, and can none deadlock?"},
	{"OpenSM", "`opensm-subnet.lst`", "fabsh -F file:opensm-subnet.lst audit", ""},
	{"OpenSM", "`-Y` a file of partitions", "fabsh audit partitions --partitions partitions.conf", "is it what the ports have?"},
	{"OpenSM", "`-R file`, SIGHUP after a failure", "fabsh --write route ftree --watch --out lfts.dump --reload /run/opensm.pid", "repairs the tables, and has OpenSM read them"},
	{"OpenSM", "another engine, on a running fabric", "fabsh change plan --routes ftree --out new.plan", "each step proven first; `fabsh change apply` makes it, and takes it back unless it is confirmed"},
	{"OpenSM", "a subnet without a subnet manager, in a lab", "fabsh --write @examples//bring_up.star", ""},
	{"OpenSM", "`osmtest`", "fabsh audit sm", ""},
	{"UFM", "Fabric Health Report", "fabsh audit", "with `--deep`, tables and routing too; the exit status tells cron"},
	{"UFM", "Topology Compare, an NDT file", "fabsh audit topology --expect plan.csv", "NDT's CSV, ibnetdiscover's text, a `.topo`, a snapshot"},
	{"UFM", "Periodic comparison with a master topology", "fabsh audit --baseline golden.snap", ""},
	{"UFM", "ibdiagnet2.db_csv", "fabsh -F file:ibdiagnet2.db_csv audit", ""},
	{"UFM", "Telemetry, its Prometheus endpoint", "fabsh exporter --every 60s", "dashboards and rules are in `examples/monitoring`"},
	{"UFM", "Cable Information", "fabsh audit health", "and `reg_get(\"EEPROM\", port)`; not tried on hardware"},
	{"UFM", "Events", "fabsh -c 'sa_subscribe(128).next()'", "reports of the subnet administrator, in a script"},
	{"UFM", "Logical servers and schedulers: the topology for Slurm", "fabsh topology slurm --out /etc/slurm/topology.yaml", ""},
	{"UFM", "Unhealthy ports, disabled by hand", "fabsh --write -c 'port_disable(\"leaf-1/7\")'", ""},
}
