package format

import (
	"bytes"
	"fmt"
)

// Kind is a format, as a file's content shows it.
type Kind string

const (
	KindUnknown       Kind = ""
	KindIbnetdiscover Kind = "ibnetdiscover"     // or a net file of ibsim, which has the same records
	KindSubnet        Kind = "opensm-subnet"     // opensm-subnet.lst
	KindTopo          Kind = "topo"              // of ibdm
	KindIBNL          Kind = "ibnl"              // of ibdm: what .topo files consist of
	KindSnapshot      Kind = "snapshot"          // fabsh's own
	KindLFTs          Kind = "opensm-lfts"       // opensm-lfts.dump
	KindIbroute       Kind = "ibroute"           // the same of ibroute, dump_fts
	KindFDBs          Kind = "opensm-fdbs"       // opensm.fdbs
	KindHops          Kind = "opensm-lid-matrix" // opensm-lid-matrix.dump
	KindMFTs          Kind = "opensm-mcfdbs"     // opensm.mcfdbs
	KindIbrouteMFTs   Kind = "ibroute-M"         // the same of ibroute -M, dump_fts -M
	KindSL2VL         Kind = "opensm-sl2vl"      // opensm-sl2vl.dump
	KindShortSL2VL    Kind = "ibdm-sl2vl"        // the same in ibdmchk's short form
	KindSmpquerySL2VL Kind = "smpquery-sl2vl"    // the same of smpquery sl2vl
	KindPathSL        Kind = "path-sl"
	KindGUID2LID      Kind = "guid2lid"
	KindNodeNames     Kind = "node-name-map"
	KindGUIDs         Kind = "guids" // a list, perhaps with more in its lines
	KindPortsReport   Kind = "ibnetdiscover-p"
	KindNodeList      Kind = "ibnetdiscover-l"
	KindCache         Kind = "ibnetdiscover-cache"
)

// cacheMagic is what ibnetdiscover --cache begins with (rdma-core
// libibnetdisc/ibnetdisc_cache.c, IBND_FABRIC_CACHE_MAGIC).
var cacheMagic = []byte{0x2b, 0x83, 0xe7, 0x8f}

// sniffSize is how much of a file is looked at.
const sniffSize = 1 << 16

// Recognise tells the format of a file by what it begins with. It needs no
// more than the first 64 KB. Hop weights look like service levels of paths
// where the weights are below 16: what a file is asked for decides there.
func Recognise(head []byte) Kind {
	head = head[:min(len(head), sniffSize)]
	switch {
	case bytes.HasPrefix(head, []byte(snapshotMagic)):
		return KindSnapshot
	case bytes.HasPrefix(head, cacheMagic):
		return KindCache
	}
	var named, system bool // lines that do not decide yet
	for line := range bytes.Lines(head) {
		s := bytes.TrimSpace(line)
		indented := len(line) > 0 && (line[0] == ' ' || line[0] == '\t')
		if len(s) == 0 {
			continue
		}
		for _, b := range beginnings {
			if bytes.HasPrefix(s, []byte(b.text)) {
				return b.kind
			}
		}
		switch {
		case s[0] == '#':
			if named && bytes.HasPrefix(s, []byte("#in out")) {
				return KindSL2VL
			}
		case s[0] == '0' && len(s) > 2 && s[1] == 'x':
			return recogniseGUIDs(s, named)
		case named:
			return KindSL2VL
		case new(Where).named(s):
			named = true
		case bytes.HasPrefix(s, []byte("Switch 0x")):
			return KindMFTs
		case indented && system && bytes.Contains(s, []byte("->")):
			return KindTopo
		case s[0] >= '0' && s[0] <= '9':
			if _, rest := field(s); len(rest) == 0 {
				return KindGUIDs
			}
			return KindUnknown
		case len(bytes.Fields(s)) >= 2:
			system = true
		default:
			return KindUnknown
		}
	}
	return KindUnknown
}

// beginnings of lines that decide alone.
var beginnings = []struct {
	text string
	kind Kind
}{
	{"{ SW", KindSubnet}, {"{ CA", KindSubnet}, {"{ Rt", KindSubnet}, {"{ **", KindSubnet},
	{"Unicast lids [0x", KindIbroute}, {"Unicast lids [", KindLFTs},
	{"dump_ucast_routes: ", KindFDBs}, {"Switch: guid 0x", KindHops}, {"Multicast mlids ", KindIbrouteMFTs},
	{"# SL2VL table: ", KindSmpquerySL2VL}, {"ports: in ", KindSmpquerySL2VL},
	{"TOPSYSTEM ", KindIBNL}, {"SYSTEM ", KindIBNL},
	{"Ca\t : 0x", KindNodeList}, {"Switch\t : 0x", KindNodeList}, {"Router\t : 0x", KindNodeList},
	{"CA  ", KindPortsReport}, {"SW  ", KindPortsReport}, {"RT  ", KindPortsReport},
	{"vendid=", KindIbnetdiscover}, {"devid=", KindIbnetdiscover}, {"sysimgguid=", KindIbnetdiscover},
	{"switchguid", KindIbnetdiscover}, {"caguid", KindIbnetdiscover}, {"hcaguid", KindIbnetdiscover}, {"rtguid", KindIbnetdiscover},
	{"width", KindIbnetdiscover}, {"speed", KindIbnetdiscover}, {"extspeed", KindIbnetdiscover},
	{"module", KindIbnetdiscover}, {"include", KindIbnetdiscover}, {"do ", KindIbnetdiscover},
	{"Switch\t", KindIbnetdiscover}, {"Ca\t", KindIbnetdiscover}, {"Hca\t", KindIbnetdiscover}, {"Rt\t", KindIbnetdiscover},
	{"Ca ", KindIbnetdiscover}, {"Hca ", KindIbnetdiscover}, {"Rt ", KindIbnetdiscover},
	{"Chassis ", KindIbnetdiscover}, {"Non-Chassis Nodes", KindIbnetdiscover}, {"[", KindIbnetdiscover}, {"@", KindIbnetdiscover},
}

// recogniseGUIDs tells what a line is that begins with a number; named: below
// one that names a node.
func recogniseGUIDs(s []byte, named bool) Kind {
	if named {
		return KindPathSL
	}
	words := bytes.Fields(s)
	number := func(i int, prefix string, digits int) bool {
		w, ok := bytes.CutPrefix(words[i], []byte(prefix))
		return ok && len(w) > 0 && len(w) <= digits && w[0] != 'x'
	}
	switch {
	case len(words) == 3 && number(1, "0x", 4) && number(2, "0x", 4):
		return KindGUID2LID
	case len(words) == 11 && number(3, "0x", 2):
		return KindShortSL2VL
	case len(words) == 3:
		lid, rest, ok := decimal(words[1])
		sl, end, isSL := decimal(words[2])
		if ok && isSL && len(rest) == 0 && len(end) == 0 && lid > 0 && sl < 16 {
			return KindPathSL
		}
	case len(words) > 1 && words[1][0] == '"':
		return KindNodeNames
	}
	if len(words) > 1 && words[1][0] == '"' {
		return KindNodeNames
	}
	return KindGUIDs
}

// about says what each kind is, for messages.
var about = map[Kind]string{
	KindIbnetdiscover: "a topology of ibnetdiscover or a net file of ibsim",
	KindSubnet:        "a topology of OpenSM (opensm-subnet.lst)",
	KindTopo:          "a topology of ibdm (.topo)",
	KindIBNL:          "a system of ibdm (.ibnl), which .topo files consist of",
	KindSnapshot:      "a snapshot of fabsh",
	KindLFTs:          "forwarding tables (opensm-lfts.dump)",
	KindIbroute:       "forwarding tables (ibroute, dump_fts)",
	KindFDBs:          "forwarding tables (opensm.fdbs)",
	KindHops:          "numbers of hops (opensm-lid-matrix.dump)",
	KindMFTs:          "multicast forwarding tables (opensm.mcfdbs)",
	KindIbrouteMFTs:   "multicast forwarding tables (ibroute -M, dump_fts -M)",
	KindSL2VL:         "tables of virtual lanes (opensm-sl2vl.dump)",
	KindShortSL2VL:    "tables of virtual lanes (ibdmchk's short form)",
	KindSmpquerySL2VL: "tables of virtual lanes (smpquery sl2vl)",
	KindPathSL:        "service levels of paths",
	KindGUID2LID:      "LIDs by port GUID (guid2lid)",
	KindNodeNames:     "a node-name map",
	KindGUIDs:         "a list of GUIDs",
	KindPortsReport:   "a list of ports (ibnetdiscover -p), which does not say what ports a node has: make it without -p",
	KindNodeList:      "a list of nodes (ibnetdiscover -l), which tells no links: make it without -l",
	KindCache:         "a cache of ibnetdiscover (--cache)",
}

// notTopology is why a file cannot be read as a topology.
func notTopology(name string, k Kind) error {
	return fmt.Errorf("%s: expected a topology, but this is %s", name, about[k])
}
