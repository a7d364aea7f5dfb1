package format

import (
	"strings"

	"fabsh/fabric"
)

// textOf returns which columns of a section are kept as text: all of one that is not in dbSections, else
// those that nothing is made of, with the columns that identify node and port; nil: none. Of a section
// that registers are made of, all: not every text is a number.
func (d *dbReader) textOf(s *dbSection) []int {
	known := map[string]bool{}
	add := func(lists ...string) {
		for _, list := range lists {
			for word := range strings.FieldsSeq(list) {
				column, _, _ := strings.Cut(word, "=")
				known[plainColumn(column)] = true
			}
		}
	}
	add(s.columns...)
	add(s.other)
	for i := range dbAttributes {
		if a := &dbAttributes[i]; a.section == s.name {
			add(a.columns, a.maybe)
			for _, set := range a.sets {
				add(set.columns)
			}
		}
	}
	whole := len(known) == 0 // all columns are kept
	for i := range dbRegisters() {
		if r := &dbRegisters()[i]; r.section == s.name {
			add(r.columns, r.selects, "NodeGUID PortGUID PortNumber Sm_Key "+r.port)
		}
	}
	declared := len(known) > 0
	var which []int
	var names []string
	for i, name := range d.header {
		switch plain := plainColumn(name); {
		case isKeyColumn(strings.TrimSpace(name)):
		case !known[plain]:
			names = append(names, strings.TrimSpace(name))
			which = append(which, i)
		case whole:
			which = append(which, i)
		case plain == "nodeguid", plain == "portnum", plain == "portnumber", plain == "localportnum":
			which = append(which, i)
		}
	}
	if len(names) == 0 && !whole {
		return nil
	}
	if declared {
		d.textColumns[s.name] = names
	}
	return which
}

// keepLine keeps columns of the present line as text.
func (d *dbReader) keepLine(which []int) {
	const header = 16 // bytes of a string
	if which == nil {
		return
	}
	if d.texts += len(d.text) + header*len(which); d.texts > maxText || d.keyed {
		d.notKept++
		return
	}
	row := make([]string, len(which))
	for i, at := range which {
		row[i] = string(d.field(at))
	}
	d.kept = append(d.kept, row)
}

// keep keeps the lines of a section that keepLine has collected.
func (d *dbReader) keep(s *dbSection, which []int) {
	if which == nil {
		return
	}
	section := fabric.Section{Name: s.name, Rows: d.kept}
	for _, at := range which {
		section.Columns = append(section.Columns, strings.TrimSpace(d.header[at]))
	}
	d.sections, d.kept = append(d.sections, section), nil
}

// listOf lists names; beyond some, it counts them.
func listOf(names []string) string {
	const most = 100
	if len(names) > most {
		names = append(names[:most:most], "...")
	}
	return strings.Join(names, ", ")
}
