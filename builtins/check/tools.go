package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"fabsh/builtins/script"
)

// Tool is a command of infiniband-diags, ibutils or a Unix shell, with its equivalent.
type Tool struct {
	Of   string // its package; "" for a Unix shell
	Name string
	// Here is the equivalent code. target and port are placeholders. Command is the equivalent
	// command of fabsh, if there is no code.
	Here    string
	Command string
	Note    string // a remark
}

// Tools returns all programs of infiniband-diags and ibutils, by command name. For a program
// without an equivalent, Note gives the reason.
func Tools() []Tool { return tools }

// tools are the programs, by package and name.
var tools = []Tool{
	{Name: "ls", Here: "discover().nodes", Note: "dir(value) lists the attributes of a value"},

	{Of: "infiniband-diags", Name: "check_lft_balance", Here: "get_routes().balance()"},
	{Of: "infiniband-diags", Name: "dump_fts", Here: "get_routes().dump()", Note: "get_lft(target) is the table of one switch"},
	{Of: "infiniband-diags", Name: "dump_lfts", Here: "get_routes().dump()"},
	{Of: "infiniband-diags", Name: "dump_mfts", Here: "f = discover(); f.dump_mfts({sw: get_mft(sw) for sw in f.switches})"},
	{Of: "infiniband-diags", Name: "ibaddr", Here: `smp_get("PortInfo", target, port)`, Note: `it has gid_prefix, lid and lmc; smp_get("NodeInfo", target).port_guid is the GUID`},
	{Of: "infiniband-diags", Name: "ibcacheedit", Note: "a fabric cannot be edited; fabsh snapshot FILE saves it, and -F file:FILE reads it"},
	{Of: "infiniband-diags", Name: "ibccconfig", Here: `help("SwitchCongestionSetting")`, Note: "mad_set writes this attribute, CACongestionSetting and others"},
	{Of: "infiniband-diags", Name: "ibccquery", Here: `mad_get("CongestionInfo", target)`, Note: "also CongestionLog, SwitchCongestionSetting, CACongestionSetting"},
	{Of: "infiniband-diags", Name: "ibfindnodesusing", Here: "lft = get_lft(target); [n.name for n in discover().cas if lft[n.lid] == port]", Note: "get_routes().verify(never_via=(None, None, port)) finds the pairs whose paths cross a port"},
	{Of: "infiniband-diags", Name: "ibhosts", Here: "discover().cas"},
	{Of: "infiniband-diags", Name: "ibidsverify", Here: "discover().problems", Note: "includes GUIDs and LIDs that are not unique"},
	{Of: "infiniband-diags", Name: "iblinkinfo", Here: `load("@std//report/iblinkinfo.star", "main"); main()`},
	{Of: "infiniband-diags", Name: "ibnetdiscover", Here: `discover().dump("ibnetdiscover")`, Note: `with -g, discover().dump("ibnetdiscover", chassis=True)`},
	{Of: "infiniband-diags", Name: "ibnodes", Here: "discover().nodes"},
	{Of: "infiniband-diags", Name: "ibping", Here: `smp_get("NodeInfo", target)`, Note: `any request shows that a node answers; mad_get("HostPing", target) asks the server of ibping -S on it, which fabsh does not have; fabsh audit probe counts lost requests`},
	{Of: "infiniband-diags", Name: "ibportstate", Here: `smp_get("PortInfo", target, port)`, Note: `port_disable(target, port), port_enable, port_reset and port_set(target, port, speed=, width=) change it`},
	{Of: "infiniband-diags", Name: "ibqueryerrors", Here: `load("@std//report/ibqueryerrors.star", "main"); main()`, Note: `perf_get("PortCounters", discover().ports) are the counters themselves`},
	{Of: "infiniband-diags", Name: "ibroute", Here: "get_lft(target)", Note: "with -M, get_mft(target)"},
	{Of: "infiniband-diags", Name: "ibrouters", Here: "discover().routers"},
	{Of: "infiniband-diags", Name: "ibstat", Here: `smp_get("PortInfo", dr("0"), 0)`, Note: `shows the local port; the command "fabsh ports" lists all ports of the host`},
	{Of: "infiniband-diags", Name: "ibstatus", Here: `smp_get("PortInfo", dr("0"), 0)`, Note: `shows the local port; the command "fabsh ports" lists all ports of the host`},
	{Of: "infiniband-diags", Name: "ibswitches", Here: "discover().switches"},
	{Of: "infiniband-diags", Name: "ibsysstat", Here: `mad_get("HostInfo", target).text`, Note: `also mad_get("CPUInfo", target); ibsysstat -S must run on the other host`},
	{Of: "infiniband-diags", Name: "ibtracert", Here: "get_routes().trace(1, 2)", Note: `the LIDs of two ends; or load("@examples//trace.star", "main") and main("from", "to")`},
	{Of: "infiniband-diags", Name: "perfquery", Here: `perf_get("PortCounters", target, port)`, Note: "perf_clear(attr, target, port) clears counters"},
	{Of: "infiniband-diags", Name: "saquery", Here: `sa_gettable("NodeRecord")`, Note: "any component of a record is a filter"},
	{Of: "infiniband-diags", Name: "sminfo", Here: `smp_get("SMInfo", smp_get("PortInfo", dr("0"), 0).master_sm_lid)`, Note: "the LID is that of the subnet manager"},
	{Of: "infiniband-diags", Name: "smpdump", Here: `mad_get("NodeInfo", target, raw=True)`, Note: `smp_get("NodeInfo", target).data are the bytes of the attribute; "fabsh decode" explains bytes`},
	{Of: "infiniband-diags", Name: "smpquery", Here: `smp_get("PortInfo", target, port)`, Note: `with -c, smp_get("PortInfo", lid=5, route="0,1", port=1)`},
	{Of: "infiniband-diags", Name: "vendstat", Here: `mad_get("GeneralInfo", target)`, Note: `adapters and switches of Mellanox or NVIDIA answer; mad_get("CounterGroupInfo", target, port=1) needs --write`},

	{Of: "ibutils", Name: "ibdiagnet", Command: "audit", Note: "fabsh audit in a shell; get_routes().verify() judges the routing alone; with -c, fabsh audit probe"},
	{Of: "ibutils", Name: "ibdiagpath", Here: "get_routes().trace(1, 2)", Note: "the LIDs of two ends"},
	{Of: "ibutils", Name: "ibdiagui", Note: "no graphical interface; discover() returns the fabric, and help() lists what it has"},
	{Of: "ibutils", Name: "ibdmchk", Here: "get_routes().verify()"},
	{Of: "ibutils", Name: "ibdmsh", Here: "help()", Note: "fabsh is such a shell, in Starlark"},
	{Of: "ibutils", Name: "ibdmtr", Here: "get_routes().trace(1, 2)", Note: "the LIDs of two ends"},
	{Of: "ibutils", Name: "ibis", Here: "help()", Note: "fabsh is the equivalent: see smp_get, perf_get, sa_gettable and mad_get"},
	{Of: "ibutils", Name: "ibnlparse", Note: "load_fabric(\"FILE.topo\") reads a topology; IBNL files are read from the directory beside it"},
	{Of: "ibutils", Name: "ibtopodiff", Command: "diff", Note: "fabsh diff FILE compares the fabric with a topology file, a cable plan or a snapshot"},
}

// ToolHint returns the equivalent of a tool, "" if name is not a tool.
func ToolHint(name string) string {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return ""
	}
	parts := []string{tools[i].Here, tools[i].Command, tools[i].Note}
	if script.IsReport(name) {
		parts = append(parts, fmt.Sprintf("its report is fabsh report %s, at the prompt %[1]s", name))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// smpqueryOperations are the operations of smpquery with their abbreviations (rdma-core smpquery.c,
// match_op), and the function that reads the attribute.
var smpqueryOperations = []struct{ name, short, here string }{
	{"nodeinfo", "NI", `smp_get("NodeInfo", %s)`},
	{"nodedesc", "ND", `smp_get("NodeDescription", %s)`},
	{"portinfo", "PI", `smp_get("PortInfo", %s)`},
	{"portinfoextended", "PIE", `smp_get("PortInfoExtended", %s)`},
	{"switchinfo", "SI", `smp_get("SwitchInfo", %s)`},
	{"mlnxextportinfo", "MEPI", `smp_get("ExtendedPortInfo", %s)`},
	{"pkeys", "PKEY", `get_pkeys(%s)`},
	{"sl2vl", "SL2VL", `get_sl2vl(%s)`},
	{"vlarb", "VLARB", `get_vlarb(%s)`},
	{"guids", "GI", `get_guids(%s)`},
}

// toolNumber matches the words that Starlark reads as a number.
var toolNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(0|[1-9][0-9]*|0x[0-9a-fA-F]{1,4})$`) })

// ToolEquivalent returns the text to type instead of a tool with the words of its command line; the
// equivalent of the tool alone if the words have no equivalent, and "" if name is not a tool.
func ToolEquivalent(name, words string) string {
	if name == "smpquery" {
		if here := smpqueryEquivalent(strings.Fields(words)); here != "" {
			return here
		}
	}
	return ToolHint(name)
}

// ToolAdvice returns a line for a user who has typed a tool, with these words after its name: what to
// type instead.
func ToolAdvice(name, words string) string {
	advice := ToolEquivalent(name, words)
	if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name }); i >= 0 && (tools[i].Here != "" || tools[i].Command != "") {
		advice = "type " + advice
	}
	return strings.TrimSpace(name+" "+words) + ": " + advice
}

// smpqueryEquivalent returns the equivalent of smpquery with words; "": they have none.
func smpqueryEquivalent(words []string) string {
	direct, combined := false, false
	words = slices.DeleteFunc(words, func(w string) bool {
		direct = direct || w == "-D" || w == "--Direct"
		combined = combined || w == "-c" || w == "--combined"
		return strings.HasPrefix(w, "-")
	})
	port := ", "
	if combined && len(words) > 2 {
		words = slices.Replace(words, 1, 3, "lid="+words[1]+", route="+strconv.Quote(words[2]))
		port = ", port="
	}
	if len(words) < 2 || len(words) > 3 {
		return ""
	}
	for _, q := range smpqueryOperations {
		if !strings.EqualFold(words[0], q.name) && !strings.EqualFold(words[0], q.short) {
			continue
		}
		target := words[1]
		switch {
		case combined:
		case direct:
			target = "dr(" + strconv.Quote(target) + ")"
		case !toolNumber().MatchString(target):
			target = strconv.Quote(target)
		}
		if len(words) == 3 {
			if !toolNumber().MatchString(words[2]) {
				return ""
			}
			target += port + words[2]
		}
		return fmt.Sprintf(q.here, target)
	}
	return ""
}
