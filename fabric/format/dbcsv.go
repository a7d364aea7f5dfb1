package format

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindDBCSV is the data base of ibdiagnet.
const KindDBCSV FormatName = "ibdiagnet-db-csv"

var ibdiagnetDB = fileFormat{
	kind:  KindDBCSV,
	about: "the data base of ibdiagnet (ibdiagnet2.db_csv)",
	file:  "`ibdiagnet2.db_csv` of ibdiagnet: nodes, ports, links, counters",
	sniff: func(l *headLine) bool { return isSection(l.text, "START_") },
	load:  loadDBCSV,
}

// isSection reports whether a line begins or ends a section: START_PM_INFO.
func isSection(line []byte, prefix string) bool {
	name, ok := bytes.CutPrefix(line, []byte(prefix))
	return ok && len(name) > 0 && len(bytes.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")) == 0
}

// loadDBCSV reads the data base that ibdiagnet writes: sections of comma-separated
// values, each with the names of its columns in the first line (Mellanox/ufm_sdk_3.0
// plugins/UFM_NDT_Plugin ibdiag_db_csv_parser.py; names of columns as the readers of
// other projects have them). Columns are found by name, in any order; unknown ones, and
// unknown sections, are passed over.
//
// NodeInfo, SwitchInfo, PortInfo and the counters become what the nodes have answered.
// An attribute of which the file has no whole is left out, for 0 is an answer; so is a
// key.
func loadDBCSV(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
	d := &dbReader{csvLines: &csvLines{lines: newLines(r, name)}, ids: map[mad.GUID]int{}, seen: map[dbKey]bool{}, lacks: map[string]int{}}
	seen := map[string]bool{}
	for d.next() {
		if !isSection(d.text, "START_") {
			continue
		}
		section := string(d.text[len("START_"):])
		i := slices.IndexFunc(dbSections, func(s dbSection) bool { return s.name == section })
		if i < 0 {
			if d.unread++; d.unread <= maxUnread && !slices.Contains(d.unreadNames, section) {
				d.unreadNames = append(d.unreadNames, section)
			}
			d.skip(section)
			continue
		}
		seen[section] = true
		d.section(&dbSections[i])
	}
	if d.err != nil {
		return nil, d.err
	}
	if len(d.nodes) == 0 {
		return nil, fmt.Errorf("%s: no section NODES with a line for each node", name)
	}
	for _, s := range dbSections {
		if !seen[s.name] {
			d.lacks["has no section "+s.name]++
		}
	}
	return d.build()
}

// dbSection is a section that is read.
type dbSection struct {
	name    string
	columns []string // that must be there
	row     func(d *dbReader)
}

// dbSections are all of them. NODES is the first in the file.
var dbSections = []dbSection{
	{"NODES", []string{"NodeGUID", "NodeType", "NumPorts"}, (*dbReader).node},
	{"PORTS", []string{"NodeGuid", "PortNum"}, (*dbReader).port},
	{"SWITCHES", []string{"NodeGUID"}, (*dbReader).switchInfo},
	{"LINKS", []string{"NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"}, (*dbReader).link},
	{"PM_INFO", []string{"NodeGUID", "PortNumber"}, (*dbReader).counters},
}

// maxUnread is how many sections that are not read a note names.
const maxUnread = 100

type dbReader struct {
	*csvLines
	nodes   []fabric.NodeSpec
	ids     map[mad.GUID]int // nodes by GUID
	total   int              // ports of all nodes
	rows    int              // of the section
	columns map[string]int   // of the section
	blocks  []dbBlock        // attributes in the section
	ports   []dbPort
	links   []dbLink
	answers []fabric.Answer // of indices of nodes
	seen    map[dbKey]bool
	lacks   map[string]int // what the file lacks, and of how many nodes or ports

	unread      int      // sections that are not read, and
	unreadNames []string // their names
}

// skip passes over a section.
func (d *dbReader) skip(section string) {
	end := "END_" + section
	for d.next() {
		if string(d.text) == end {
			return
		}
	}
	d.cutShort(section)
}

func (d *dbReader) cutShort(section string) {
	if d.err == nil {
		d.fail("END_%s: the file is cut short", section)
	}
}

// section reads a section.
func (d *dbReader) section(s *dbSection) {
	end := "END_" + s.name
	if !d.next() || string(d.text) == end || !d.setHeader(',') {
		d.cutShort(s.name)
		return
	}
	d.rows, d.columns = 0, make(map[string]int, len(d.header))
	for i, name := range d.header {
		name = strings.TrimSpace(name)
		if _, twice := d.columns[name]; !twice {
			d.columns[name] = i
		}
	}
	for _, name := range s.columns {
		if _, ok := d.columns[name]; !ok {
			d.fail("column %s in section %s: %q", name, s.name, d.shown())
			return
		}
	}
	d.blocks = nil
	for i := range dbAttributes {
		if a := &dbAttributes[i]; a.section == s.name {
			d.blocks = append(d.blocks, d.blockOf(a))
		}
	}
	for d.next() {
		switch {
		case string(d.text) == end:
			return
		case len(bytes.TrimSpace(d.text)) == 0:
			continue
		}
		if d.rows++; d.rows > maxTotalPorts {
			d.fail("at most %d lines in section %s", maxTotalPorts, s.name)
			return
		}
		if !d.split() {
			return
		}
		if len(d.fields) > len(d.header) {
			d.fail("%d fields, as many as section %s has columns, not %d: %q", len(d.header), s.name, len(d.fields), d.shown())
			return
		}
		if s.row(d); d.err != nil {
			return
		}
	}
	d.cutShort(s.name)
}

// cell is the field of a column; empty without one.
func (d *dbReader) cell(column string) []byte {
	i, ok := d.columns[column]
	if !ok {
		return nil
	}
	return d.field(i)
}
