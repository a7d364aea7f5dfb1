package change

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/format"
	"fabsh/fabric/jsonfile"
	"fabsh/mad"
)

// fileFormat is the format that the files name. Files of formerFormat have no certificate.
const (
	fileFormat   = "fabsh plan 2"
	formerFormat = "fabsh plan 1"
)

// Save writes p to the file at path: a temporary file, which is renamed. Only its
// owner may read it.
func (p *Plan) Save(ctx context.Context, path string) error {
	return format.WritePrivate(ctx, path, p.Write)
}

// Write writes the file: JSON, with a line for each node, link, target and Set.
func (p *Plan) Write(to io.Writer) error {
	for i := range p.Sets {
		if err := p.Sets[i].Check(); err != nil {
			return fmt.Errorf("plan: Set %d: %w", i+1, err)
		}
	}
	w := fileWriter{to: to}
	w.text("{\n\"format\": ")
	w.value(fileFormat)
	w.text(",\n\"from\": ")
	w.value(p.From)
	w.text(",\n\"manager\": ")
	w.value(p.managerFile())
	if c := p.Choice; c != nil {
		w.text(",\n\"choice\": ")
		w.value(choiceFile{choiceText(c.Kind), c.Load, c.OwnLoad})
	}
	if p.Static {
		rows(&w, "static", p.Disables, func(_ int, s Switch) any { return switchFile{guidText(s.GUID), s.Name} })
	}
	w.text(",\n\"report\": ")
	w.value(cmp.Or(p.Report, p.Recorded).file())
	rows(&w, "nodes", p.Base.Nodes, func(_ int, n Node) any {
		return nodeFile{guidText(n.GUID), nodeTypeText(n.Type), n.Name, n.NumPorts, lidsFile(n.LIDs)}
	})
	rows(&w, "links", p.Base.Links, func(_ int, l Link) any { return [4]int{l.A.Node, l.A.Port, l.B.Node, l.B.Port} })
	targets, of := p.targets()
	rows(&w, "targets", targets, func(_ int, t *certificate.Change) any {
		return targetFile{guidText(t.Node), t.Port, t.Name, routesFile(t.Routes)}
	})
	rows(&w, "sets", p.Sets, func(i int, s certificate.Change) any {
		row := setFile{Target: of[i], Attribute: s.Attr.Name, Modifier: s.Modifier, Line: s.Line}
		if s.Fields == nil {
			row.Old, row.New = s.Old, s.New
			return row
		}
		fields := []fieldFile{} // not null: a Set may change none
		for _, name := range s.Fields {
			f := s.Attr.Field(name)
			fields = append(fields, fieldFile{name, f.Uint(s.Old), f.Uint(s.New)})
		}
		row.Fields = &fields
		return row
	})
	w.certificate(p)
	w.text("\n}\n")
	return w.err
}

// The file: Write writes these structs, and planFormat reads them.
type (
	planFile struct {
		Format      formatText                `json:"format"`
		From        string                    `json:"from"`
		Manager     *managerFile              `json:"manager"`
		Choice      *choiceFile               `json:"choice" optional:"the tables were not chosen among several"`
		Static      *[]switchFile             `json:"static" optional:"static routing was not requested" max:"131072"`
		Report      *Report                   `json:"report"`
		Nodes       jsonfile.Rows[nodeFile]   `json:"nodes" max:"131072"`
		Links       jsonfile.Rows[[4]int]     `json:"links" max:"1048576"` // node, port, node, port
		Targets     jsonfile.Rows[targetFile] `json:"targets" max:"131072"`
		Sets        jsonfile.Rows[setFile]    `json:"sets" max:"1048576"`
		Certificate *certificateFile          `json:"certificate" when:"format=fabsh plan 2"`
	}
	managerFile struct {
		GUID     guidText    `json:"guid"`
		LID      mad.LID     `json:"lid" max:"49151"`
		Priority int         `json:"priority" max:"15"`
		State    smStateText `json:"state"`
	}
	choiceFile struct {
		Tables  choiceText `json:"tables"`
		Load    int64      `json:"load"`
		OwnLoad int64      `json:"own_load"`
	}
	switchFile struct {
		GUID guidText `json:"guid"`
		Name string   `json:"name"`
	}
	nodeFile struct {
		GUID  guidText     `json:"guid"`
		Type  nodeTypeText `json:"type"`
		Name  string       `json:"name"`
		Ports int          `json:"num_ports" max:"255"`
		LIDs  [][3]int     `json:"lids" max:"256"` // port, LID, LMC
	}
	targetFile struct {
		GUID   guidText    `json:"guid"`
		Port   int         `json:"port" max:"255"`
		Name   string      `json:"name"`
		Routes []routeText `json:"routes" max:"2"`
	}
	setFile struct {
		Target    int          `json:"target"` // index
		Attribute string       `json:"attribute"`
		Modifier  uint32       `json:"modifier"`
		Old       []byte       `json:"old,omitempty" optional:"the attribute is changed in fields"`
		New       []byte       `json:"new,omitempty" optional:"the attribute is changed in fields"`
		Fields    *[]fieldFile `json:"fields,omitempty" optional:"the attribute is changed as a whole" max:"64"`
		Line      string       `json:"line,omitempty" optional:"no line of a script requested it"`
	}
	fieldFile struct {
		Name string `json:"name"`
		Old  uint64 `json:"old"`
		New  uint64 `json:"new"`
	}
	roundFile struct {
		Blocks   int   `json:"blocks" max:"1048576"`
		Switches int   `json:"switches" max:"131072"`
		Lanes    bool  `json:"lanes"`
		Drain    int64 `json:"drain_ms" max:"1099511627776"`
	}
	// certificateFile is a certificate: rounds name the elements of Plan.Changes of forwarding
	// tables by number; lanes is the round of all those of SL2VL. Lists of numbers are
	// compressed, and cut into texts.
	certificateFile struct {
		Lanes             int                          `json:"lanes" max:"15"`
		AcceptCreditLoops bool                         `json:"accept_credit_loops"`
		Rounds            jsonfile.Rows[certRoundFile] `json:"rounds" max:"65536"`
		Ranks             jsonfile.Rows[[]byte]        `json:"ranks"`
		Orders            jsonfile.Rows[[][]byte]      `json:"orders" max:"65536"`
	}
	certRoundFile struct {
		Lanes   bool          `json:"lanes"`
		Drain   int64         `json:"drain_ms" max:"1099511627776"`
		Changes [][2]int      `json:"changes"` // from the first to the last
		Between []betweenFile `json:"between,omitempty" optional:"all blocks get their final value"`
	}
	// betweenFile is a block that does not have its final value yet.
	betweenFile struct {
		Change  int    `json:"change"`
		Entries []byte `json:"entries"`
	}
)

// file returns r with lists that are empty, not null.
func (r *Report) file() *Report {
	if r == nil {
		return nil
	}
	f := *r
	f.Rounds, f.NotJudged = append([]Extent{}, r.Rounds...), append([]string{}, r.NotJudged...)
	if r.Effect != nil {
		e := *r.Effect
		e.Links, e.Notes = append([]string{}, e.Links...), append([]string{}, e.Notes...)
		f.Effect = &e
	}
	return &f
}

// MarshalJSON encodes x for a file.
func (x Extent) MarshalJSON() ([]byte, error) {
	return json.Marshal(roundFile{x.Blocks, x.Switches, x.Lanes, x.Drain.Milliseconds()})
}

// Form decodes x from a file: it implements jsonfile.Former.
func (x *Extent) Form() (any, func() error) {
	f := &roundFile{}
	return f, func() error {
		*x = Extent{f.Blocks, f.Switches, f.Lanes, milliseconds(f.Drain)}
		return nil
	}
}

func (p *Plan) managerFile() *managerFile {
	m := p.Base.Manager
	if m == nil {
		return nil
	}
	return &managerFile{guidText(m.GUID), m.LID, m.Priority, smStateText(m.State)}
}

func lidsFile(lids []PortLID) [][3]int {
	rows := [][3]int{}
	for _, l := range lids {
		rows = append(rows, [3]int{l.Port, int(l.LID), l.LMC})
	}
	return rows
}

func routesFile(routes []mad.DirectedRoute) []routeText {
	texts := []routeText{}
	for _, r := range routes {
		texts = append(texts, routeText(r))
	}
	return texts
}

// targets returns a Set to each target, and by Set the number of its target.
func (p *Plan) targets() (targets []*certificate.Change, of []int) {
	type key struct {
		guid mad.GUID
		port int
		text string
	}
	at := map[key]int{}
	for i := range p.Sets {
		t := &p.Sets[i]
		k := key{t.Node, t.Port, t.Name + "\x00" + fmt.Sprint(t.Routes)}
		n, ok := at[k]
		if !ok {
			n = len(targets)
			at[k] = n
			targets = append(targets, t)
		}
		of = append(of, n)
	}
	return targets, of
}

// fileWriter writes JSON. It keeps the first error.
type fileWriter struct {
	to  io.Writer
	err error
}

func (w *fileWriter) text(s string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.to, s)
	}
}

func (w *fileWriter) value(v any) {
	b, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.text(string(b))
}

// rows writes a list, with a line for each element.
func rows[T any](w *fileWriter, name string, list []T, row func(i int, element T) any) {
	w.text(",\n\"" + name + "\": [")
	for i, element := range list {
		if i > 0 {
			w.text(",")
		}
		w.text("\n")
		w.value(row(i, element))
	}
	w.text("]")
}

// certificate writes the certificate of a plan.
func (w *fileWriter) certificate(p *Plan) {
	c, changes := p.Certificate, p.Changes()
	w.text(",\n\"certificate\": ")
	if c == nil {
		w.text("null")
		return
	}
	w.text("{\n\"lanes\": ")
	w.value(c.Lanes)
	w.text(",\n\"accept_credit_loops\": ")
	w.value(c.AcceptCreditLoops)
	rows(w, "rounds", c.Rounds, func(_ int, r certificate.Round) any {
		row := certRoundFile{Drain: r.Drain.Milliseconds(), Changes: [][2]int{}}
		for _, b := range slices.SortedFunc(slices.Values(r.Writes), func(a, b certificate.Write) int { return a.Change - b.Change }) {
			if changes[b.Change].Attr == mad.AttrSLtoVLMappingTable {
				row.Lanes = true
				continue
			}
			if n := len(row.Changes); n > 0 && row.Changes[n-1][1] == b.Change-1 {
				row.Changes[n-1][1]++
			} else {
				row.Changes = append(row.Changes, [2]int{b.Change, b.Change})
			}
			if !bytes.Equal(b.Data, changes[b.Change].New) {
				row.Between = append(row.Between, betweenFile{b.Change, b.Data})
			}
		}
		return row
	})
	rows(w, "ranks", chunks(c.Ranks), func(_ int, b []byte) any { return b })
	rows(w, "orders", c.Orders, func(_ int, order []byte) any { return chunks(order) })
	w.text("\n}")
}

// maxChunk is the largest number of bytes that a text of the file has in base64.
const maxChunk = maxText / 2

func chunks(data []byte) [][]byte {
	return slices.AppendSeq([][]byte{}, slices.Chunk(data, maxChunk))
}
