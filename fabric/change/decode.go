package change

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/format"
	"fabsh/fabric/jsonfile"
	"fabsh/mad"
)

// Limits of a plan's file; those of single members are in their tags.
const (
	maxFile = 256 << 20 // bytes: 10^6 blocks
	maxSets = 1 << 20
	maxText = 1 << 16 // bytes of one text
)

var planFormat = sync.OnceValue(func() *jsonfile.Format[planFile] {
	return jsonfile.New[planFile](jsonfile.Limits{Text: maxText, List: maxSets})
})

// LoadPlan reads the file of a plan. It trusts nothing in it: anything that Save would not
// write is an error, and memory is bounded by the file's length. name is for messages.
func LoadPlan(r io.Reader, name string) (*Plan, error) {
	r, err := format.Bounded(r, name, maxFile)
	if err != nil {
		return nil, err
	}
	p := &planReader{}
	f := planFile{Nodes: p.node, Links: p.link, Targets: p.target, Sets: p.set, Certificate: p.certificateFile()}
	if err := planFormat().Read(r, &f); err != nil {
		if _, ok := errors.AsType[*jsonfile.Error](err); ok {
			err = fmt.Errorf("%s: %w; create the plan again with fabsh change plan --out", name, err)
		}
		return nil, err
	}
	p.made.From = f.From
	if m := f.Manager; m != nil {
		p.made.Base.Manager = &Manager{mad.GUID(m.GUID), m.LID, m.Priority, mad.SMState(m.State)}
	}
	if c := f.Choice; c != nil {
		p.made.Choice = &Choice{Kind: ChoiceKind(c.Tables), Load: c.Load, OwnLoad: c.OwnLoad}
	}
	if f.Static != nil {
		p.made.Static = true
		for _, s := range *f.Static {
			p.made.Disables = append(p.made.Disables, Switch{mad.GUID(s.GUID), s.Name})
		}
	}
	p.made.Recorded = f.Report
	if c := f.Certificate; c != nil {
		p.certificate.Lanes, p.certificate.AcceptCreditLoops = c.Lanes, c.AcceptCreditLoops
		p.made.Certificate = &p.certificate
		if err := p.complete(); err != nil {
			return nil, fmt.Errorf("%s: certificate: %w; create the plan again with fabsh change plan --out", name, err)
		}
	}
	return &p.made, nil
}

// planReader receives the long lists of a file.
type planReader struct {
	made        Plan
	targets     []certificate.Change
	certificate certificate.Certificate
	lanes       []bool // by round of the certificate: it writes SL2VL
	blocks      int    // of all rounds of the certificate: few bytes name many
}

func (p *planReader) node(row *nodeFile) error {
	n := Node{GUID: mad.GUID(row.GUID), Type: mad.NodeType(row.Type), Name: row.Name, NumPorts: row.Ports}
	last := -1
	for _, l := range row.LIDs {
		switch port, lid, lmc := l[0], l[1], l[2]; {
		case port > n.NumPorts || port <= last:
			return jsonfile.At("lids", fmt.Errorf("port %d: ports must be unique, in order, and at most %d", port, n.NumPorts))
		case lid > int(mad.MaxUnicastLID) || lmc > 7:
			return jsonfile.At("lids", fmt.Errorf("port %d: got LID %d and LMC %d, want at most %d and 7", port, lid, lmc, mad.MaxUnicastLID))
		default:
			n.LIDs = append(n.LIDs, PortLID{Port: port, LID: mad.LID(lid), LMC: lmc})
			last = port
		}
	}
	p.made.Base.Nodes = append(p.made.Base.Nodes, n)
	return nil
}

func (p *planReader) link(row *[4]int) error {
	nodes := p.made.Base.Nodes
	if len(nodes) == 0 {
		return errors.New(`missing "nodes" before the links`)
	}
	link := Link{End{row[0], row[1]}, End{row[2], row[3]}}
	for _, e := range []End{link.A, link.B} {
		if e.Node >= len(nodes) {
			return fmt.Errorf("unknown node %d; the plan has %d", e.Node, len(nodes))
		}
		if node := &nodes[e.Node]; e.Port == 0 || e.Port > node.NumPorts {
			return fmt.Errorf("unknown port %d; node %d has %d", e.Port, e.Node, node.NumPorts)
		}
	}
	p.made.Base.Links = append(p.made.Base.Links, link)
	return nil
}

func (p *planReader) target(row *targetFile) error {
	if row.GUID == 0 {
		return jsonfile.At("guid", errors.New("GUID 0: invalid"))
	}
	t := certificate.Change{Node: mad.GUID(row.GUID), Port: row.Port, Name: row.Name}
	for _, r := range row.Routes {
		t.Routes = append(t.Routes, mad.DirectedRoute(r))
	}
	p.targets = append(p.targets, t)
	return nil
}

func (p *planReader) set(row *setFile) error {
	attr := mad.LookupName(mad.ClassSubn, row.Attribute)
	switch {
	case attr == nil:
		return jsonfile.At("attribute", fmt.Errorf("unknown attribute %.40q", row.Attribute))
	case len(p.targets) == 0:
		return errors.New(`missing "targets" before the sets`)
	case row.Target >= len(p.targets):
		return jsonfile.At("target", fmt.Errorf("unknown target %d; the plan has %d", row.Target, len(p.targets)))
	case certificate.InFields(attr) && row.Fields == nil:
		return errors.New(`missing "fields"`)
	case !certificate.InFields(attr) && row.Old == nil:
		return errors.New(`missing "old"`)
	case !certificate.InFields(attr) && row.New == nil:
		return errors.New(`missing "new"`)
	}
	s := p.targets[row.Target]
	s.Attr, s.Modifier, s.Old, s.New, s.Line = attr, row.Modifier, row.Old, row.New, row.Line
	if certificate.InFields(attr) {
		if s.Old != nil || s.New != nil {
			return fmt.Errorf("%s: expected changed fields, got bytes", attr.Name)
		}
		s.Fields, s.Old, s.New = []string{}, make([]byte, attr.Size), make([]byte, attr.Size)
	}
	if row.Fields == nil {
		row.Fields = &[]fieldFile{}
	}
	last := ""
	for _, f := range *row.Fields {
		switch field, err := certificate.FieldOf(attr, f.Name); {
		case err != nil:
			return err
		case f.Old > field.Max() || f.New > field.Max():
			return fmt.Errorf("%s.%s: %d and %d: the maximum is %d", attr.Name, f.Name, f.Old, f.New, field.Max())
		case f.Name <= last:
			return fmt.Errorf("%s: field %s after %s: fields must be sorted and unique", attr.Name, f.Name, last)
		}
		s, last = s.With(f.Name, f.Old, f.New), f.Name
	}
	p.made.Sets = append(p.made.Sets, s)
	return s.Check()
}

// certificateFile returns the certificate to read. It need not hold.
func (p *planReader) certificateFile() *certificateFile {
	c := &p.certificate
	return &certificateFile{
		Rounds: p.round,
		Ranks:  func(b *[]byte) error { c.Ranks = append(c.Ranks, *b...); return nil },
		Orders: func(order *[][]byte) error { c.Orders = append(c.Orders, bytes.Join(*order, nil)); return nil },
	}
}

// round receives a round of the certificate.
func (p *planReader) round(row *certRoundFile) error {
	r := certificate.Round{Drain: milliseconds(row.Drain)}
	for i, span := range row.Changes {
		first, last := span[0], span[1]
		ok := first <= last && last <= maxSets && (i == 0 || first > r.Writes[len(r.Writes)-1].Change)
		if ok {
			p.blocks += last - first + 1
		}
		if !ok || p.blocks > maxSets {
			return jsonfile.At("changes", fmt.Errorf("%d: from %d to %d: changes must be unique, in order, and at most %d in all rounds", i, first, last, maxSets))
		}
		for change := first; change <= last; change++ {
			r.Writes = append(r.Writes, certificate.Write{Change: change})
		}
	}
	between := map[int][]byte{}
	for i, b := range row.Between {
		if between[b.Change] != nil {
			return jsonfile.At("between", fmt.Errorf("%d: duplicate change %d", i, b.Change))
		}
		between[b.Change] = b.Entries
	}
	for i := range r.Writes {
		w := &r.Writes[i]
		w.Data = between[w.Change]
		delete(between, w.Change)
	}
	if len(between) > 0 {
		return jsonfile.At("between", errors.New("blocks of changes that are not in the round"))
	}
	p.certificate.Rounds, p.lanes = append(p.certificate.Rounds, r), append(p.lanes, row.Lanes)
	return nil
}

// complete gives the rounds of the certificate what they write of the changes of the plan.
func (p *planReader) complete() error {
	changes := p.made.Changes()
	for r := range p.certificate.Rounds {
		round := &p.certificate.Rounds[r]
		for i := range round.Writes {
			w := &round.Writes[i]
			if w.Change >= len(changes) || changes[w.Change].Attr != mad.AttrLinearForwardingTable {
				return fmt.Errorf("rounds[%d].changes: change %d is not one of a forwarding table", r, w.Change)
			}
			if w.Data == nil {
				w.Data = changes[w.Change].New
			}
		}
		if !p.lanes[r] {
			continue
		}
		for i, ch := range changes {
			if ch.Attr == mad.AttrSLtoVLMappingTable {
				round.Writes = append(round.Writes, certificate.Write{Change: i, Data: ch.New})
			}
		}
		if round.Writes == nil {
			return fmt.Errorf("rounds[%d].lanes: the plan changes no SL2VL", r)
		}
	}
	return nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// The texts of a file that are more than strings.
type (
	formatText   string
	guidText     mad.GUID
	nodeTypeText mad.NodeType
	smStateText  mad.SMState
	choiceText   ChoiceKind
	routeText    mad.DirectedRoute
)

func (f *formatText) UnmarshalText(text []byte) error {
	if *f = formatText(text); *f != fileFormat && *f != formerFormat {
		return fmt.Errorf("got %.40q, want %q: not a plan, or of another version", text, fileFormat)
	}
	return nil
}

func (g guidText) MarshalText() ([]byte, error) { return []byte(mad.GUID(g).String()), nil }

func (g *guidText) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil || mad.GUID(n).String() != string(text) {
		return fmt.Errorf("got %.40q, want a GUID as 0x and 16 lower-case digits", text)
	}
	*g = guidText(n)
	return nil
}

func (t nodeTypeText) MarshalText() ([]byte, error) { return []byte(mad.NodeType(t).String()), nil }

func (t *nodeTypeText) UnmarshalText(text []byte) error {
	code, err := wordCode(text, mad.WordsNodeType)
	*t = nodeTypeText(code)
	return err
}

func (s smStateText) MarshalText() ([]byte, error) { return []byte(mad.SMState(s).String()), nil }

func (s *smStateText) UnmarshalText(text []byte) error {
	code, err := wordCode(text, mad.WordsSMState)
	*s = smStateText(code)
	return err
}

// wordCode returns the value of a word of an enumeration.
func wordCode(text []byte, words *mad.Words) (uint8, error) {
	code, ok := words.Code()[string(text)]
	if !ok {
		digits := strings.TrimSuffix(strings.TrimPrefix(string(text), "unknown("), ")")
		var err error
		if code, err = strconv.ParseUint(digits, 10, 8); err != nil || words.Text(code) != string(text) {
			return 0, fmt.Errorf("%.40q: invalid %s", text, words.Name)
		}
	}
	return uint8(min(code, math.MaxUint8)), nil
}

func (c choiceText) MarshalText() ([]byte, error) { return []byte(ChoiceKind(c).Name()), nil }

func (c *choiceText) UnmarshalText(text []byte) error {
	i := slices.Index(choiceNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown choice %.40q; known: %s", text, strings.Join(choiceNames[:], ", "))
	}
	*c = choiceText(i)
	return nil
}

func (r routeText) MarshalText() ([]byte, error) { return []byte(mad.DirectedRoute(r).String()), nil }

func (r *routeText) UnmarshalText(text []byte) error {
	route, err := mad.ParseRoute(string(text))
	*r = routeText(route)
	return err
}
