// Package tools is the commands of infiniband-diags, ibutils, OpenSM and UFM, with what does
// the same here.
package tools

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/builtins/script"
)

// Tool is a command of infiniband-diags, ibutils or a Unix shell, with what does
// the same here.
type Tool struct {
	Of   string // which package it comes from; "": a Unix shell
	Name string
	// Here is what to type. target and port stand for what the user means.
	Here string
	Note string // what else there is to say
}

// All returns all programs of infiniband-diags and ibutils, by the name that is
// typed. Some have no counterpart; then Note says why.
func All() []Tool { return table }

var table = []Tool{
	{Name: "ls", Here: "discover().nodes", Note: "dir(value) lists what a value has"},

	{Of: "infiniband-diags", Name: "check_lft_balance", Here: "get_routes().balance()"},
	{Of: "infiniband-diags", Name: "dump_fts", Here: "get_routes().dump()", Note: "get_lft(target) is the table of one switch"},
	{Of: "infiniband-diags", Name: "dump_lfts", Here: "get_routes().dump()"},
	{Of: "infiniband-diags", Name: "dump_mfts", Here: "f = discover(); f.dump_mfts({sw: get_mft(sw) for sw in f.switches})"},
	{Of: "infiniband-diags", Name: "ibaddr", Here: `smp_get("PortInfo", target, port)`, Note: `it has gid_prefix, lid and lmc; smp_get("NodeInfo", target).port_guid is the GUID`},
	{Of: "infiniband-diags", Name: "ibcacheedit", Note: "a fabric is not edited; fabsh snapshot FILE keeps it, and -F file:FILE reads it"},
	{Of: "infiniband-diags", Name: "ibccconfig", Here: `help("SwitchCongestionSetting")`, Note: "mad_set writes it, CACongestionSetting and the others"},
	{Of: "infiniband-diags", Name: "ibccquery", Here: `mad_get("CongestionInfo", target)`, Note: "and CongestionLog, SwitchCongestionSetting, CACongestionSetting"},
	{Of: "infiniband-diags", Name: "ibfindnodesusing", Here: "[(l.a.node.name, l.b.node.name) for l in discover().links]", Note: "get_routes().trace(lid, lid) is the way between two nodes"},
	{Of: "infiniband-diags", Name: "ibhosts", Here: "discover().cas"},
	{Of: "infiniband-diags", Name: "ibidsverify", Here: "discover().problems", Note: "GUIDs and LIDs that are not unique are among them"},
	{Of: "infiniband-diags", Name: "iblinkinfo", Here: `load("@std//report/iblinkinfo.star", "main"); main()`},
	{Of: "infiniband-diags", Name: "ibnetdiscover", Here: `discover().dump("ibnetdiscover")`},
	{Of: "infiniband-diags", Name: "ibnodes", Here: "discover().nodes"},
	{Of: "infiniband-diags", Name: "ibping", Here: `smp_get("NodeInfo", target)`, Note: "any request shows that a node answers; no server is needed there"},
	{Of: "infiniband-diags", Name: "ibportstate", Here: `smp_get("PortInfo", target, port)`, Note: `port_disable(target, port), port_enable, port_reset and port_set(target, port, speed=, width=) change it`},
	{Of: "infiniband-diags", Name: "ibqueryerrors", Here: `load("@std//report/ibqueryerrors.star", "main"); main()`, Note: `perf_get("PortCounters", discover().ports) are the counters themselves`},
	{Of: "infiniband-diags", Name: "ibroute", Here: "get_lft(target)", Note: "with -M, get_mft(target)"},
	{Of: "infiniband-diags", Name: "ibrouters", Here: "discover().routers"},
	{Of: "infiniband-diags", Name: "ibstat", Here: `smp_get("PortInfo", dr("0"), 0)`, Note: `that is the port in use; the command "fabsh ports" lists all ports of the host`},
	{Of: "infiniband-diags", Name: "ibstatus", Here: `smp_get("PortInfo", dr("0"), 0)`, Note: `that is the port in use; the command "fabsh ports" lists all ports of the host`},
	{Of: "infiniband-diags", Name: "ibswitches", Here: "discover().switches"},
	{Of: "infiniband-diags", Name: "ibsysstat", Note: "there is nothing like it: its answers come from its own server on the other host"},
	{Of: "infiniband-diags", Name: "ibtracert", Here: "get_routes().trace(1, 2)", Note: `the LIDs of two ends; or load("@examples//trace.star", "main") and main("from", "to")`},
	{Of: "infiniband-diags", Name: "perfquery", Here: `perf_get("PortCounters", target, port)`, Note: "perf_clear(attr, target, port) clears counters"},
	{Of: "infiniband-diags", Name: "saquery", Here: `sa_gettable("NodeRecord")`, Note: "any component of a record is a filter"},
	{Of: "infiniband-diags", Name: "sminfo", Here: `smp_get("SMInfo", smp_get("PortInfo", dr("0"), 0).master_sm_lid)`, Note: "the LID is that of the subnet manager"},
	{Of: "infiniband-diags", Name: "smpdump", Here: `mad_get("NodeInfo", target, raw=True)`, Note: `smp_get("NodeInfo", target).data are the bytes of the attribute; "fabsh decode" explains bytes`},
	{Of: "infiniband-diags", Name: "smpquery", Here: `smp_get("PortInfo", target, port)`},
	{Of: "infiniband-diags", Name: "vendstat", Here: `mad_get("GeneralInfo", target)`, Note: `and mad_get("CounterGroupInfo", target, port=1), with --write, on adapters and switches of Mellanox and NVIDIA`},

	{Of: "ibutils", Name: "ibdiagnet", Here: `load("@examples//first_look.star", "main"); main()`, Note: "get_routes().verify() judges the routing"},
	{Of: "ibutils", Name: "ibdiagpath", Here: "get_routes().trace(1, 2)", Note: "the LIDs of two ends"},
	{Of: "ibutils", Name: "ibdiagui", Note: "there are no windows; discover() is the fabric, and help() tells what to ask it"},
	{Of: "ibutils", Name: "ibdmchk", Here: "get_routes().verify()"},
	{Of: "ibutils", Name: "ibdmsh", Here: "help()", Note: "this is such a shell, in Starlark"},
	{Of: "ibutils", Name: "ibdmtr", Here: "get_routes().trace(1, 2)", Note: "the LIDs of two ends"},
	{Of: "ibutils", Name: "ibis", Here: "help()", Note: "this is its successor: smp_get, perf_get, sa_gettable and mad_get are its verbs"},
	{Of: "ibutils", Name: "ibnlparse", Note: "load_fabric(\"FILE.topo\") reads a topology; IBNL files are read from the folder beside it"},
	{Of: "ibutils", Name: "ibtopodiff", Note: `discover().dump("ibnetdiscover") == load_fabric("FILE").dump("ibnetdiscover") tells whether they are the same`},
}

// Hint says what to type for a tool; empty: it is none.
func Hint(name string) string {
	i := slices.IndexFunc(table, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return ""
	}
	said := []string{table[i].Here, table[i].Note}
	if script.IsReport(name) {
		said = append(said, fmt.Sprintf("its report is fabsh report %s, at the prompt %[1]s", name))
	}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), "; ")
}
