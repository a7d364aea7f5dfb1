// Package format reads and writes descriptions of a fabric in files.
// FORMATS.md documents each format.
//
// Each format is one literal, a fileFormat, which stands in the format's own
// file, beside its reader and writer. To add a format, write that file and add
// the literal to formats, below; then run make generate, which brings the table
// of FORMATS.md up to date.
//
// What all formats share:
//
//	format.go     the table of formats
//	sniff.go      Recognise: the format of a file, by its content
//	load.go       Load: a topology in any format; the choice of a reader
//	gzip.go       files packed by gzip; utf16.go, text in UTF-16
//	dump.go       Dump and DumpTables: a format by its name
//	lines.go      reads big files line by line; csv.go, comma-separated values
//	preamble.go   lines before the tables of a saved terminal session; postamble.go, after them
//	noderef.go    how tables name nodes
//	topology.go   nodes and links as files name them, made into a fabric
//	rate.go       width and speed of a link
//	opensm.go     what several of OpenSM's dumps share
//	writefile.go  replaces a file by a complete one; temp.go: its temporary file
//	target.go     where a file is written that may be a symbolic link
//
// Topologies:
//
//	ibnetdiscover.go       ibnetdiscover, and net files of ibsim: files and settings
//	ibnetdiscoverline.go   their records of nodes and ports
//	ibnetdiscoverscan.go   the parts of their lines
//	capture.go             what a saved terminal session has beside the dump
//	portsreport.go         ibnetdiscover -p; linkinfo.go, iblinkinfo: their lines;
//	portlist.go            what both share; portnodes.go, the nodes of ports
//	nodelist.go            ibnetdiscover -l, ibhosts, ibswitches
//	ibnetdiscoverwrite.go  writes what ibnetdiscover prints
//	cache.go               ibnetdiscover --cache
//	subnet.go              reads opensm-subnet.lst; subnetwrite.go writes it
//	topo.go                reads .topo of ibdm; toposystem.go builds its systems
//	topowrite.go           writes .topo, and the .ibnl files that go with it
//	ibnl.go                reads .ibnl of ibdm
//	dbcsv.go               ibdiagnet2.db_csv, its sections; dbcsvrow.go, their lines;
//	dbcsvfields.go         which columns are which fields
//	cables.go              plans of cables; ndt.go, those of UFM: their columns
//	cableplan.go           reads both; cableswrite.go writes the first
//	snapshot.go            writes snapshots of fabsh; snapshotread.go reads them
//
// Tables and lists:
//
//	lft.go     reads forwarding tables; lftmatch.go matches them with a fabric;
//	           lftwrite.go writes opensm-lfts.dump, fdbwrite.go opensm.fdbs
//	far.go     tables of adaptive routing (ibdiagnet2.far)
//	hops.go    numbers of hops
//	mft.go     multicast forwarding tables
//	sl2vl.go   reads virtual lanes of service levels; sl2vlwrite.go writes them
//	pathsl.go  service levels of paths
//	torusconfig.go  torus-2QoS.conf
//	guids.go   lists of GUIDs, node-name maps, OpenSM's guid2lid
//	keys.go    files of keys, which are not recognised by content
package format

import (
	"io"

	"fabsh/fabric"
)

// FormatName is the name of a format.
type FormatName string

// FormatUnknown is the kind of a file that no format recognises.
const FormatUnknown FormatName = ""

// formats are all formats, in the order in which they are tried on a line:
// first all their beginnings, then all their sniff functions (see
// recognise). The order matters where two formats would take the same line:
//
//   - nodeList is above ibnetdiscover: "Ca\t : 0x" and "Ca\t".
//   - ibdiagnetFAR is above opensmMFTs, which takes any line that begins with Switch 0x.
//   - ibroute is above opensmLFTs: "Unicast lids [0x" and "Unicast lids [".
//   - opensmSL2VL and pathSL are above the rest of the tables and lists: they
//     take any line below one that names a node, pathSL those with a number.
//   - ibdmSL2VL is above nodeNameMap: both take a quote in the second word.
//   - opensmMFTs is above ibdmTopo, which takes any indented line with an arrow.
//   - guidList is below all of these: it takes any line with a number.
//
// Help, messages and FORMATS.md name formats in this order too.
var formats = []*fileFormat{
	&nodeList,
	&portsReport,
	&linkInfo,
	&ibnetdiscover,
	&opensmSubnet,
	&ibnetdiscoverCache,
	&ibdiagnetDB,
	&cables,
	&ndt,

	&ibdiagnetFAR,
	&ibroute,
	&opensmLFTs,
	&opensmFDBs,
	&opensmHops,
	&opensmSL2VL,
	&smpquerySL2VL,
	&pathSL,
	&ibdmSL2VL,
	&opensmMFTs,
	&ibrouteMFTs,

	&ibdmTopo,
	&guid2LID,
	&nodeNameMap,
	&guidList,
	&ibdmIBNL,
	&snapshot,
}

// fileFormat is all there is to know of a format. Unsupported functions are nil.
type fileFormat struct {
	kind  FormatName
	about string // description in "expected a topology, but this is ..."
	file  string // description in FORMATS.md

	// beginnings are beginnings of lines that decide alone, whatever stands
	// above them. Spaces before them do not count.
	beginnings []string
	// sniff reports whether the line is one of this format, where no line
	// above it has decided.
	sniff func(l *headLine) bool

	// Readers, by what the format holds. open opens the files that a topology
	// includes; it may be nil.
	load    func(r io.Reader, name string, open Opener) (*fabric.Fabric, error)
	system  func(r io.Reader, name string) (*ibnl, error)
	lfts    rowReader[*LFT]
	fars    rowReader[*FAR]
	hops    rowReader[*HopRow]
	mfts    rowReader[*MFT]
	sl2vls  rowReader[*SL2VL]
	pathSLs rowReader[*PathSL]
	guids   rowReader[GUIDLine]

	// Writers, by what they need to know.
	write       func(w io.Writer, f *fabric.Fabric) error
	writeFiles  func(f *fabric.Fabric, create func(name string) (io.WriteCloser, error)) error
	writeTables func(w io.Writer, f *fabric.Fabric, t *Tables) error
	writeMFTs   func(w io.Writer, f *fabric.Fabric, table func(sw *fabric.Node) []MFTEntry) error

	// dumpHelp is the help of the kind as an argument of dump(). It may
	// also cover a related kind, whose own is "".
	dumpHelp string
}
