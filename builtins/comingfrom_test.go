package builtins

import (
	"cmp"
	"strings"
	"testing"

	"fabsh/builtins/check"
	"fabsh/builtins/script"
)

// TestComingFrom checks that COMING_FROM.md is generated from the tables.
func TestComingFrom(t *testing.T) { golden(t, "../examples/COMING_FROM.md", comingFrom()) }

// comingFrom returns, as Markdown, the page for users of other tools: their commands, and
// the equivalents here.
func comingFrom() string {
	var b strings.Builder
	b.WriteString(`# Coming from other tools
<!-- help: coming-from -->

Commands of other tools, and their equivalents in fabsh. At the prompt, the name of a tool prints its line; ` + "`fabsh report NAME`" + ` prints what the tool of that name prints.
`)
	cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
	code := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + cell(text) + "`"
	}
	head := func(name, there, here string) {
		b.WriteString("\n## " + name + "\n\n| " + there + " | " + here + " | notes |\n|---|---|---|\n")
	}
	row := func(there, here, notes string) {
		b.WriteString("| " + there + " | " + here + " | " + notes + " |\n")
	}
	for _, of := range []string{"infiniband-diags", "ibutils"} {
		head(of, "tool", "in a script, at the prompt, or after fabsh -c")
		for _, t := range check.Tools() {
			if t.Of != of {
				continue
			}
			here := code(cmp.Or(t.Here, t.Command))
			if script.IsReport(t.Name) {
				here = code("fabsh report "+t.Name) + "; " + here
			}
			row(code(t.Name), here, cell(t.Note))
		}
	}
	for _, of := range []string{"OpenSM", "UFM"} {
		head(of, of, "fabsh")
		for _, m := range moves {
			if m.of == of {
				row(cell(m.there), code(m.here), cell(m.note))
			}
		}
	}
	return b.String()
}

// move is a task with OpenSM or UFM, and the equivalent command here.
type move struct{ of, there, here, note string }

var moves = []move{
	{"OpenSM", "`-R ENGINE`", "fabsh route updn --verify --out lfts.dump", "`fabsh route --list`; the file is what `opensm -R file -U lfts.dump` reads, and nothing is sent"},
	{"OpenSM", "`-a` root_guid_file", "fabsh route updn --roots roots.guids", "or names such as `spine-*`"},
	{"OpenSM", "`-u` cn_guid_file, `-G` io_guid_file", "fabsh route ftree --cn cn.guids --io io.guids", ""},
	{"OpenSM", "guid_routing_order_file, port_search_ordering", "fabsh route ftree --port-order ports.txt", ""},
	{"OpenSM", "rch_policy_file, topo_policy_file, pgrp_policy_file", "fabsh route chain --chains chains.conf --topologies topo.conf --groups groups.conf", "routing chains of NVIDIA's OpenSM"},
	{"OpenSM", "`opensm-lfts.dump`, `opensm-sl2vl.dump`", "fabsh -F file:opensm-subnet.lst verify --lfts opensm-lfts.dump", "checks that all packets arrive and that no deadlock is possible"},
	{"OpenSM", "`opensm-subnet.lst`", "fabsh -F file:opensm-subnet.lst audit", ""},
	{"OpenSM", "`-Y` a file of partitions", "fabsh audit partitions --partitions partitions.conf", "compares the file with the tables of the ports"},
	{"OpenSM", "`-R file`, SIGHUP after a failure", "fabsh --write route ftree --watch --out lfts.dump --reload /run/opensm.pid", "repairs the tables, and makes OpenSM read them"},
	{"OpenSM", "another engine, on a running fabric", "fabsh change plan --routes ftree --out new.plan", "proves each step; `fabsh change apply` applies the plan, and reverts it unless it is confirmed"},
	{"OpenSM", "a subnet without a subnet manager, in a lab", "fabsh --write @examples//bring_up.star", ""},
	{"OpenSM", "`osmtest`", "fabsh audit sm", ""},
	{"UFM", "Fabric Health Report", "fabsh audit", "with `--deep` also tables and routing; the exit status reports findings to cron"},
	{"UFM", "Topology Compare, an NDT file", "fabsh audit topology --expect plan.csv", "NDT's CSV, ibnetdiscover's text, a `.topo`, a snapshot"},
	{"UFM", "Periodic comparison with a master topology", "fabsh audit --baseline golden.snap", ""},
	{"UFM", "ibdiagnet2.db_csv", "fabsh -F file:ibdiagnet2.db_csv audit", ""},
	{"UFM", "Telemetry, its Prometheus endpoint", "fabsh exporter --every 60s", "dashboards and rules are in `examples/monitoring`"},
	{"UFM", "Cable Information", "fabsh audit health", "also `reg_get(\"EEPROM\", port)`; not tried on hardware"},
	{"UFM", "Events", "fabsh -c 'sa_subscribe(128).next()'", "reports of the subnet administrator, in a script"},
	{"UFM", "Logical servers and schedulers: the topology for Slurm", "fabsh topology slurm --out /etc/slurm/topology.yaml", ""},
	{"UFM", "Unhealthy ports, disabled by hand", "fabsh --write -c 'port_disable(\"leaf-1/7\")'", ""},
}
