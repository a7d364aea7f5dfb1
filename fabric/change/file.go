package change

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/format"
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
		if err := p.Sets[i].check(); err != nil {
			return fmt.Errorf("Set %d of the plan: %w", i+1, err)
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
		w.value(choiceFile{c.Kind.Name(), c.Load, c.OwnLoad})
	}
	if p.Static {
		rows(&w, "static", p.Disables, func(_ int, s Switch) any { return switchFile{s.GUID.String(), s.Name} })
	}
	w.text(",\n\"report\": ")
	w.value(cmp.Or(p.Report, p.Recorded).file())
	rows(&w, "nodes", p.Base.Nodes, func(_ int, n Node) any {
		return nodeFile{n.GUID.String(), n.Type.String(), n.Name, n.NumPorts, lidsFile(n.LIDs)}
	})
	rows(&w, "links", p.Base.Links, func(_ int, l Link) any { return [4]int{l.A.Node, l.A.Port, l.B.Node, l.B.Port} })
	targets, of := p.targets()
	rows(&w, "targets", targets, func(_ int, t *Target) any {
		return targetFile{t.GUID.String(), t.Port, t.Name, routeTexts(t.Routes)}
	})
	rows(&w, "sets", p.Sets, func(i int, s Set) any {
		row := setFile{Target: of[i], Attribute: s.Attr.Name, Modifier: s.Modifier, Old: s.Old, New: s.New, Line: s.Line}
		for _, f := range s.Fields {
			row.Fields = append(row.Fields, fieldFile(f))
		}
		return row
	})
	w.certificate(p.Certificate)
	w.text("\n}\n")
	return w.err
}

// The objects of the file, as Write writes them; fileReader reads them.
type (
	managerFile struct {
		GUID     string `json:"guid"`
		LID      int    `json:"lid"`
		Priority int    `json:"priority"`
		State    string `json:"state"`
	}
	choiceFile struct {
		Tables  string `json:"tables"`
		Load    int64  `json:"load"`
		OwnLoad int64  `json:"own_load"`
	}
	switchFile struct {
		GUID string `json:"guid"`
		Name string `json:"name"`
	}
	nodeFile struct {
		GUID  string   `json:"guid"`
		Type  string   `json:"type"`
		Name  string   `json:"name"`
		Ports int      `json:"num_ports"`
		LIDs  [][3]int `json:"lids"` // port, LID, LMC
	}
	targetFile struct {
		GUID   string   `json:"guid"`
		Port   int      `json:"port"`
		Name   string   `json:"name"`
		Routes []string `json:"routes"`
	}
	setFile struct {
		Target    int         `json:"target"` // index
		Attribute string      `json:"attribute"`
		Modifier  uint32      `json:"modifier"`
		Old       []byte      `json:"old,omitempty"` // base64
		New       []byte      `json:"new,omitempty"`
		Fields    []fieldFile `json:"fields,omitempty"`
		Line      string      `json:"line,omitempty"`
	}
	reportFile struct {
		OK         bool        `json:"ok"`
		Reason     string      `json:"reason"`
		Rounds     []roundFile `json:"rounds"`
		Pairs      int64       `json:"pairs"`
		Lost       int64       `json:"lost"`
		Gained     int64       `json:"gained"`
		LoadBefore int64       `json:"load_before"`
		LoadAfter  int64       `json:"load_after"`
		CreditLoop string      `json:"credit_loop,omitempty"`
		Effect     *effectFile `json:"effect,omitempty"`
		NotJudged  []string    `json:"not_judged"`
	}
	// effectFile is Effect.
	effectFile struct {
		Links      []string `json:"links"`
		Managed    bool     `json:"managed"`
		Engine     string   `json:"engine"`
		Basis      string   `json:"basis"`
		Through    int64    `json:"through"`
		Lost       int64    `json:"lost"`
		Rerouted   int64    `json:"rerouted"`
		LoadBefore int64    `json:"load_before"`
		LoadAfter  int64    `json:"load_after"`
		Split      string   `json:"split"`
		LastPath   string   `json:"last_path"`
		Needed     string   `json:"needed"`
		CreditLoop string   `json:"credit_loop"`
		LoopBefore bool     `json:"loop_before"`
		Notes      []string `json:"notes"`
	}
	roundFile struct {
		Blocks   int   `json:"blocks"`
		Switches int   `json:"switches"`
		Lanes    bool  `json:"lanes"`
		Drain    int64 `json:"drain_ms"`
	}
	fieldFile struct {
		Name string `json:"name"`
		Old  uint64 `json:"old"`
		New  uint64 `json:"new"`
	}
)

func (r *Report) file() *reportFile {
	if r == nil {
		return nil
	}
	f := &reportFile{OK: r.OK, Reason: r.Reason, Rounds: []roundFile{}, Pairs: r.Pairs, Lost: r.Lost, Gained: r.Gained, LoadBefore: r.LoadBefore, LoadAfter: r.LoadAfter, CreditLoop: r.CreditLoop, NotJudged: append([]string{}, r.NotJudged...)}
	if r.Effect != nil {
		e := effectFile(*r.Effect)
		e.Links, e.Notes = append([]string{}, e.Links...), append([]string{}, e.Notes...)
		f.Effect = &e
	}
	for _, round := range r.Rounds {
		f.Rounds = append(f.Rounds, roundFile{round.Blocks, round.Switches, round.Lanes, round.Drain.Milliseconds()})
	}
	return f
}

func (p *Plan) managerFile() *managerFile {
	m := p.Base.Manager
	if m == nil {
		return nil
	}
	return &managerFile{m.GUID.String(), int(m.LID), m.Priority, m.State.String()}
}

func lidsFile(lids []PortLID) [][3]int {
	rows := [][3]int{}
	for _, l := range lids {
		rows = append(rows, [3]int{l.Port, int(l.LID), l.LMC})
	}
	return rows
}

func routeTexts(routes []mad.DirectedRoute) []string {
	texts := []string{}
	for _, r := range routes {
		texts = append(texts, r.String())
	}
	return texts
}

// targets returns the targets of all Sets, each once, and by Set the number of its target.
func (p *Plan) targets() (targets []*Target, of []int) {
	type key struct {
		guid mad.GUID
		port int
		text string
	}
	at := map[key]int{}
	for i := range p.Sets {
		t := &p.Sets[i].Target
		k := key{t.GUID, t.Port, t.Name + "\x00" + strings.Join(routeTexts(t.Routes), " ")}
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

// The certificate in the file: null, or an object. Rounds name the elements of Plan.Changes
// by number. Lists of numbers are compressed, and cut into texts.
type (
	certRoundFile struct {
		Lanes   bool          `json:"lanes"`
		Drain   int64         `json:"drain_ms"`
		Changes [][2]int      `json:"changes"` // from the first to the last
		Between []betweenFile `json:"between,omitempty"`
	}
	// betweenFile is a block that does not have its final value yet.
	betweenFile struct {
		Change  int    `json:"change"`
		Entries []byte `json:"entries"`
	}
)

// certificate writes a certificate.
func (w *fileWriter) certificate(c *certificate.Certificate) {
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
		row := certRoundFile{Lanes: r.Lanes, Drain: r.Drain.Milliseconds(), Changes: [][2]int{}}
		for _, b := range r.Blocks {
			if n := len(row.Changes); n > 0 && row.Changes[n-1][1] == b.Change-1 {
				row.Changes[n-1][1]++
			} else {
				row.Changes = append(row.Changes, [2]int{b.Change, b.Change})
			}
			if b.Entries != nil {
				row.Between = append(row.Between, betweenFile{b.Change, b.Entries})
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
