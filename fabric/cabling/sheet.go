package cabling

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"fabsh/fabric"
)

// Column is a column of the table of actions: of scripts, JSON, CSV and workbooks.
type Column struct {
	Name, Doc string
	Words     []string          // the possible texts; nil: any
	Of        func(*Action) any // a string, "" if unknown, or an int
}

// Columns are all columns, in their order.
var Columns = slices.Concat([]Column{
	{Name: "id", Doc: "identifier, which stays the same in later runs: a hash of the planned ends", Of: func(x *Action) any { return x.ID }},
	{Name: "verb", Doc: "what to do", Words: []string{string(Swap), string(Move), string(Connect), string(Remove), string(Reseat), string(PowerOn)}, Of: func(x *Action) any { return string(x.Verb) }},
	{Name: "kind", Doc: "kind of difference", Words: []string{string(Missing), string(Undefined), string(Miswired), string(Down), string(Slower), string(PlaneDown)}, Of: func(x *Action) any { return string(x.Kind) }},
},
	endColumns("plug", "where the plug is; one of the two plugs of a swap; else an end of the cable", func(x *Action) End { return x.From }),
	endColumns("to", "where the plug belongs; the other plug of a swap; else the other end of the cable", func(x *Action) End { return x.To }),
	[]Column{
		{Name: "stays", Doc: "the end of the cable that stays where it is, of a move", Of: func(x *Action) any { return x.Stays.String() }},
		{Name: "first", Doc: "what to do before", Of: func(x *Action) any { return x.First }},
		{Name: "found", Doc: "what was found", Of: func(x *Action) any { return x.Found }},
		{Name: "planned", Doc: "what the plan has", Of: func(x *Action) any { return x.Planned }},
		{Name: "check", Doc: "how to check afterwards", Of: func(x *Action) any { return x.Check }},
		{Name: "label", Doc: "label of the cable", Of: func(x *Action) any { return x.Label }},
		{Name: "source", Doc: "where the plan has the cable", Of: func(x *Action) any { return x.Source }},
		{Name: "links", Doc: "number of links: the planes of a cable, the cables of a device", Of: func(x *Action) any { return x.Links }},
		{Name: "chain", Doc: "the same in actions that depend on each other: do them in the order of step", Of: func(x *Action) any { return x.Chain }},
		{Name: "step", Doc: "number in the chain, from 1", Of: func(x *Action) any { return x.Step }},
		{Name: "steps", Doc: "number of actions of the chain", Of: func(x *Action) any { return x.Steps }},
	})

// endColumns are the columns of an end.
func endColumns(name, doc string, of func(*Action) End) []Column {
	return []Column{
		{Name: name, Doc: doc + ": device and IB port", Of: func(x *Action) any { return of(x).String() }},
		{Name: name + "_panel", Doc: "what is printed beside the port", Of: func(x *Action) any { return of(x).Panel }},
		{Name: name + "_place", Doc: "hall, row, rack and unit of the device", Of: func(x *Action) any { return PlaceText(of(x).Place) }},
		{Name: name + "_guid", Doc: "node GUID of the device; unknown if it was not found", Of: func(x *Action) any {
			if of(x).GUID == 0 {
				return ""
			}
			return of(x).GUID.String()
		}},
	}
}

// PlaceText is "hall A, row 3, rack R14, U31"; "" if nothing is known.
func PlaceText(p fabric.Place) string {
	parts := rackParts(p)
	if p.Unit != "" {
		parts = append(parts, "U"+strings.TrimLeft(p.Unit, "Uu"))
	}
	return strings.Join(parts, ", ")
}

// RackText is "hall A, row 3, rack R14"; "" if nothing is known.
func RackText(p fabric.Place) string { return strings.Join(rackParts(p), ", ") }

func rackParts(p fabric.Place) (parts []string) {
	for _, x := range [][2]string{{"hall ", p.Hall}, {"row ", p.Row}, {"rack ", p.Rack}} {
		if x[1] != "" {
			parts = append(parts, x[0]+x[1])
		}
	}
	return parts
}

// Text is the end with what helps to find it: "leaf-7/31 (cage 16/1; rack R14, U31)".
func (e End) Text() string {
	var more []string
	for _, s := range []string{e.Panel, PlaceText(e.Place)} {
		if s != "" {
			more = append(more, s)
		}
	}
	if len(more) == 0 {
		return e.String()
	}
	return e.String() + " (" + strings.Join(more, "; ") + ")"
}

// Text is the action as a sentence.
func (x *Action) Text() string {
	switch x.Verb {
	case Swap:
		return "swap the plugs at " + x.From.Text() + " and " + x.To.Text()
	case Move:
		return "move the plug at " + x.From.Text() + " to " + x.To.Text() + "; the other end stays at " + x.Stays.Text()
	case Connect:
		return "connect " + x.From.Text() + " with " + x.To.Text()
	case Remove:
		return "remove the cable between " + x.From.Text() + " and " + x.To.Text()
	case PowerOn:
		return "power on " + x.From.Text() + ", or connect it"
	}
	return string(x.Verb) + " the cable between " + x.From.Text() + " and " + x.To.Text()
}

// Summary is the result in a line.
func (r *Report) Summary() string {
	chains := map[string]bool{}
	for _, x := range r.Actions {
		chains[x.Chain] = true
	}
	s := fmt.Sprintf("%d of %s as planned", r.Right, count(r.Planned, "cable"))
	if n := len(r.Actions); n > 0 {
		s += "; " + count(n, "action")
		if n != len(chains) {
			s += " for " + count(len(chains), "difference")
		}
	}
	if r.Unjudged > 0 {
		s += "; " + count(r.Unjudged, "cable") + " not judged"
	}
	return s
}

// maxNotes is the number of notes of a kind that a text has.
const maxNotes = 8

// Notes are what is to be known besides the actions, a line each, of each kind at most eight.
func (r *Report) Notes() (notes []string) {
	add := func(prefix string, n int, text func(i int) string) {
		for i := range min(n, maxNotes) {
			notes = append(notes, prefix+": "+text(i))
		}
		if n > maxNotes {
			notes = append(notes, fmt.Sprintf("%s: and %d more; -o json shows all", prefix, n-maxNotes))
		}
	}
	if judged := r.Planned - r.Unjudged; judged > 0 && 2*r.Right < judged || r.Planned > 0 && judged == 0 {
		notes = append(notes, "less than half of the plan matches: is it the plan of this fabric?")
	}
	add("conflict in the plan", len(r.Conflicts), func(i int) string { return ConflictText(r.Conflicts[i]) })
	add("error in the plan", len(r.PlanFault), func(i int) string { return r.PlanFault[i] })
	for _, by := range []struct{ by, text string }{
		{"", "not found: %s of the plan: %s"},
		{"cables", "other name: %s of the plan, identified only by cables: %s"},
		{"name", "other GUID: %s of the plan: %s"},
		{"serial", "other name: %s of the plan, identified by the serial number: %s"},
		{"spelling", "other spelling: %s of the plan: %s"},
	} {
		var list []string
		n := 0
		for _, x := range r.Names {
			if x.By != by.by {
				continue
			}
			if n++; len(list) == maxNotes {
				continue
			}
			text := x.Planned
			switch {
			case x.Found != "" && x.Found != x.Planned:
				text += " is " + x.Found
			case len(x.Candidates) > 0:
				text += " (nearest: " + strings.Join(x.Candidates, ", ") + ")"
			}
			list = append(list, text)
		}
		if n > len(list) {
			list = append(list, fmt.Sprintf("and %d more", n-len(list)))
		}
		if n > 0 {
			notes = append(notes, fmt.Sprintf(by.text, count(n, "name"), strings.Join(list, ", ")))
		}
	}
	add("device", len(r.Devices), func(i int) string { return r.Devices[i].Text() })
	if n := len(r.Strangers); n > 0 {
		text := strings.Join(r.Strangers[:min(n, 3)], ", ")
		if n > 3 {
			text += fmt.Sprintf(" and %d more", n-3)
		}
		notes = append(notes, fmt.Sprintf("not in the plan: %s: %s", count(n, "device"), text))
	}
	add("unread", len(r.Unread), func(i int) string { return r.Unread[i] })
	add("not compared", len(r.NotCompared), func(i int) string { return r.NotCompared[i] })
	return notes
}

// ConflictText is a conflict in a line.
func ConflictText(c fabric.PlanConflict) string {
	return fmt.Sprintf("%s port %s is used twice: %s (to %s port %s), %s (to %s port %s)", c.Node, c.Port, c.First.Source, c.First.FarNode, c.First.FarPort, c.Second.Source, c.Second.FarNode, c.Second.FarPort)
}

// Text is a difference in a line.
func (d Difference) Text() string {
	return fmt.Sprintf("%s: %s: %s; planned: %s", d.Device, d.Field, cmp.Or(d.Found, "unknown"), d.Planned)
}

// Rack is the actions that begin in a rack.
type Rack struct {
	Name    string // "": unknown
	Actions []*Action
}

// Racks are the actions by rack, in their order. A chain is whole in the rack where it begins.
func (r *Report) Racks() (racks []Rack) {
	at := map[string]string{}
	for _, x := range r.Actions {
		name, ok := at[x.Chain]
		if !ok {
			name = RackText(x.From.Place)
			at[x.Chain] = name
		}
		if len(racks) == 0 || racks[len(racks)-1].Name != name {
			racks = append(racks, Rack{Name: name})
		}
		last := &racks[len(racks)-1]
		last.Actions = append(last.Actions, x)
	}
	return racks
}

// WriteXLSX writes a workbook: a sheet of actions, and one of notes. Texts are stored as texts, so a
// name is no formula.
func (r *Report) WriteXLSX(w io.Writer) (err error) {
	f := excelize.NewFile()
	defer f.Close()
	if err := f.SetSheetName("Sheet1", "Actions"); err != nil {
		return err
	}
	rows := [][]any{{"done"}}
	for _, c := range Columns {
		rows[0] = append(rows[0], c.Name)
	}
	for _, x := range r.Actions {
		row := []any{""}
		for _, c := range Columns {
			row = append(row, c.Of(x))
		}
		rows = append(rows, row)
	}
	if err := writeRows(f, "Actions", rows); err != nil {
		return err
	}
	if _, err := f.NewSheet("Notes"); err != nil {
		return err
	}
	rows = [][]any{{r.Summary()}}
	for _, note := range r.Notes() {
		rows = append(rows, []any{note})
	}
	if err := writeRows(f, "Notes", rows); err != nil {
		return err
	}
	_, err = f.WriteTo(w)
	return err
}

// maxColumn is the width of a column that holds long texts, in characters.
const maxColumn = 60

// writeRows writes rows to a sheet. Columns are as wide as their texts, and the first row stays visible when
// the others scroll.
func writeRows(f *excelize.File, sheet string, rows [][]any) error {
	s, err := f.NewStreamWriter(sheet)
	if err != nil {
		return err
	}
	if err := s.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return err
	}
	for col := range rows[0] {
		width := 0
		for _, row := range rows {
			if col < len(row) {
				width = max(width, utf8.RuneCountInString(fmt.Sprint(row[col])))
			}
		}
		if err := s.SetColWidth(col+1, col+1, float64(min(width, maxColumn)+2)); err != nil {
			return err
		}
	}
	for i, row := range rows {
		if err := s.SetRow("A"+strconv.Itoa(i+1), row); err != nil {
			return err
		}
	}
	return s.Flush()
}

//go:embed orders.html
var ordersPage string

var orders = template.Must(template.New("orders").Parse(ordersPage))

// WriteHTML writes a page to print, or for a phone. title names the plan.
func (r *Report) WriteHTML(w io.Writer, title string) error {
	return orders.Execute(w, struct {
		*Report
		Title string
	}{r, title})
}
