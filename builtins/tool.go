package builtins

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// tool is a command of infiniband-diags, ibutils or a Unix shell, with what does
// the same here.
type tool struct {
	of   string // which package it comes from; "": a Unix shell
	name string
	// here is what to type. target and port stand for what the user means.
	here string
	note string // what else there is to say
}

// tools are all programs of infiniband-diags and ibutils, by the name that is
// typed. Some have no counterpart; then note says why.
var tools = []tool{
	{name: "ls", here: "discover().nodes", note: "dir(value) lists what a value has"},

	{of: "infiniband-diags", name: "check_lft_balance", here: "get_routes().balance()"},
	{of: "infiniband-diags", name: "dump_fts", here: "get_routes().dump()", note: "get_lft(target) is the table of one switch"},
	{of: "infiniband-diags", name: "dump_lfts", here: "get_routes().dump()"},
	{of: "infiniband-diags", name: "dump_mfts", here: "f = discover(); f.dump_mfts({sw: get_mft(sw) for sw in f.switches})"},
	{of: "infiniband-diags", name: "ibaddr", here: `smp_get("PortInfo", target, port)`, note: `it has gid_prefix, lid and lmc; smp_get("NodeInfo", target).port_guid is the GUID`},
	{of: "infiniband-diags", name: "ibcacheedit", note: "a fabric is not edited; fabsh snapshot FILE keeps it, and -F file:FILE reads it"},
	{of: "infiniband-diags", name: "ibccconfig", here: `help("SwitchCongestionSetting")`, note: "mad_set writes it, CACongestionSetting and the others"},
	{of: "infiniband-diags", name: "ibccquery", here: `mad_get("CongestionInfo", target)`, note: "and CongestionLog, SwitchCongestionSetting, CACongestionSetting"},
	{of: "infiniband-diags", name: "ibfindnodesusing", here: "[(l.a.node.name, l.b.node.name) for l in discover().links]", note: "get_routes().trace(lid, lid) is the way between two nodes"},
	{of: "infiniband-diags", name: "ibhosts", here: "discover().cas"},
	{of: "infiniband-diags", name: "ibidsverify", here: "discover().problems", note: "GUIDs and LIDs that are not unique are among them"},
	{of: "infiniband-diags", name: "iblinkinfo", here: `load("@std//report/iblinkinfo.star", "main"); main()`},
	{of: "infiniband-diags", name: "ibnetdiscover", here: `discover().dump("ibnetdiscover")`},
	{of: "infiniband-diags", name: "ibnodes", here: "discover().nodes"},
	{of: "infiniband-diags", name: "ibping", here: `smp_get("NodeInfo", target)`, note: "any request shows that a node answers; no server is needed there"},
	{of: "infiniband-diags", name: "ibportstate", here: `smp_get("PortInfo", target, port)`, note: `port_disable(target, port), port_enable, port_reset and port_set(target, port, speed=, width=) change it`},
	{of: "infiniband-diags", name: "ibqueryerrors", here: `load("@std//report/ibqueryerrors.star", "main"); main()`, note: `perf_get("PortCounters", discover().ports) are the counters themselves`},
	{of: "infiniband-diags", name: "ibroute", here: "get_lft(target)", note: "with -M, get_mft(target)"},
	{of: "infiniband-diags", name: "ibrouters", here: "discover().routers"},
	{of: "infiniband-diags", name: "ibstat", here: `smp_get("PortInfo", dr("0"), 0)`, note: `that is the port in use; the command "fabsh ports" lists all ports of the host`},
	{of: "infiniband-diags", name: "ibstatus", here: `smp_get("PortInfo", dr("0"), 0)`, note: `that is the port in use; the command "fabsh ports" lists all ports of the host`},
	{of: "infiniband-diags", name: "ibswitches", here: "discover().switches"},
	{of: "infiniband-diags", name: "ibsysstat", note: "there is nothing like it: its answers come from its own server on the other host"},
	{of: "infiniband-diags", name: "ibtracert", here: "get_routes().trace(1, 2)", note: `the LIDs of two ends; or load("@examples//trace.star", "main") and main("from", "to")`},
	{of: "infiniband-diags", name: "perfquery", here: `perf_get("PortCounters", target, port)`, note: "perf_clear(attr, target, port) clears counters"},
	{of: "infiniband-diags", name: "saquery", here: `sa_gettable("NodeRecord")`, note: "any component of a record is a filter"},
	{of: "infiniband-diags", name: "sminfo", here: `smp_get("SMInfo", smp_get("PortInfo", dr("0"), 0).master_sm_lid)`, note: "the LID is that of the subnet manager"},
	{of: "infiniband-diags", name: "smpdump", here: `mad_get("NodeInfo", target, raw=True)`, note: `smp_get("NodeInfo", target).data are the bytes of the attribute; "fabsh decode" explains bytes`},
	{of: "infiniband-diags", name: "smpquery", here: `smp_get("PortInfo", target, port)`},
	{of: "infiniband-diags", name: "vendstat", here: `mad_get("GeneralInfo", target)`, note: `and mad_get("CounterGroupInfo", target, port=1), with --write, on adapters and switches of Mellanox and NVIDIA`},

	{of: "ibutils", name: "ibdiagnet", here: `load("@examples//first_look.star", "main"); main()`, note: "get_routes().verify() judges the routing"},
	{of: "ibutils", name: "ibdiagpath", here: "get_routes().trace(1, 2)", note: "the LIDs of two ends"},
	{of: "ibutils", name: "ibdiagui", note: "there are no windows; discover() is the fabric, and help() tells what to ask it"},
	{of: "ibutils", name: "ibdmchk", here: "get_routes().verify()"},
	{of: "ibutils", name: "ibdmsh", here: "help()", note: "this is such a shell, in Starlark"},
	{of: "ibutils", name: "ibdmtr", here: "get_routes().trace(1, 2)", note: "the LIDs of two ends"},
	{of: "ibutils", name: "ibis", here: "help()", note: "this is its successor: smp_get, perf_get, sa_gettable and mad_get are its verbs"},
	{of: "ibutils", name: "ibnlparse", note: "load_fabric(\"FILE.topo\") reads a topology; IBNL files are read from the folder beside it"},
	{of: "ibutils", name: "ibtopodiff", note: `discover().dump("ibnetdiscover") == load_fabric("FILE").dump("ibnetdiscover") tells whether they are the same`},
}

// toolHint says what to type for a tool; empty: it is none.
func toolHint(name string) string {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return ""
	}
	said := []string{tools[i].here, tools[i].note}
	if IsReport(name) {
		said = append(said, fmt.Sprintf("its report is fabsh report %s, at the prompt %[1]s", name))
	}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), "; ")
}

// typesWith are the types that have an attribute or a method of a name. Of a name
// of a letter or two that says nothing.
func typesWith(name string) (types []string) {
	if len(name) < 3 {
		return nil
	}
	for _, d := range typeDocs() {
		for _, m := range d.Members {
			if m.ShortName() == name {
				types = append(types, d.Name)
			}
		}
	}
	return types
}

// memberHint says of which types a name is an attribute or a method.
func memberHint(b io.Writer, name string) {
	types := typesWith(name)
	if len(types) == 0 {
		return
	}
	if len(types) > 3 {
		types = append(types[:3:3], "others")
	}
	of := types[0]
	if n := len(types); n > 1 {
		of = strings.Join(types[:n-1], ", ") + " and " + types[n-1]
	}
	example := "value." + name
	if types[0] == "fabric" {
		example = "discover()." + name
	}
	fmt.Fprintf(b, "hint: %s is of %s: write %s\n", name, of, example)
}
