package change

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// Limits of a plan's file.
const (
	maxFile   = 256 << 20 // bytes: 10^6 blocks
	maxSets   = 1 << 20
	maxNodes  = 1 << 17
	maxLinks  = 1 << 20
	maxRounds = 1 << 16
	maxText   = 1 << 16 // bytes of one text
	maxNested = 6       // brackets in brackets
)

// LoadPlan reads the file of a plan. It trusts nothing in it: anything that Save would not
// write is an error, and memory is bounded by the file's length. name is for messages.
func LoadPlan(r io.Reader, name string) (*Plan, error) {
	r, err := format.Bounded(r, name, maxFile)
	if err != nil {
		return nil, err
	}
	f := &fileReader{dec: json.NewDecoder(&plainJSON{r: r})}
	f.dec.UseNumber()
	p, err := f.plan()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// fileReader reads JSON token by token: each name of an object is known and comes
// once, and no value is larger than it may be.
type fileReader struct {
	dec     *json.Decoder
	made    Plan
	targets []Target
}

func (f *fileReader) plan() (*Plan, error) {
	p := &f.made
	var version string
	certified := false
	err := f.object("the plan", map[string]func() error{
		"format": func() error {
			text, err := f.text()
			if err == nil && text != fileFormat && text != formerFormat {
				err = fmt.Errorf("got %q, want %q: not a plan, or of another version", text, fileFormat)
			}
			version = text
			return err
		},
		"from":    member(&p.From, f.text),
		"manager": member(&p.Base.Manager, f.manager),
		"choice?": member(&p.Choice, f.choice),
		"static?": func() error {
			p.Static = true
			return f.list("switches", maxNodes, f.disabled)
		},
		"report":  member(&p.Recorded, f.report),
		"nodes":   func() error { return f.list("nodes", maxNodes, f.node) },
		"links":   func() error { return f.list("links", maxLinks, f.link) },
		"targets": func() error { return f.list("targets", maxNodes, f.target) },
		"sets":    func() error { return f.list("sets", maxSets, f.set) },
		// Files of the former format have none.
		"certificate?": func() (err error) {
			certified = true
			p.Certificate, err = f.certificate()
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	if _, err := f.dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("unexpected data after the plan")
	}
	if version == fileFormat && !certified {
		return nil, errors.New("the plan: missing certificate")
	}
	return p, nil
}

// object reads an object. All of its members must be there, once; those whose name ends in ?
// may be missing.
func (f *fileReader) object(what string, members map[string]func() error) error {
	t, err := f.token()
	if err != nil {
		return err
	}
	return f.members(what, t, members)
}

// members reads the members of an object whose first token was read.
func (f *fileReader) members(what string, open json.Token, members map[string]func() error) error {
	if open != json.Delim('{') {
		return fmt.Errorf("%s: got %s, want {", what, tokenText(open))
	}
	var seen []string
	for f.dec.More() {
		t, err := f.token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		read := members[name]
		if read == nil {
			read = members[name+"?"]
		}
		switch {
		case read == nil:
			return fmt.Errorf("%s: unknown member %.40q", what, name)
		case slices.Contains(seen, name):
			return fmt.Errorf("%s: duplicate %q", what, name)
		}
		seen = append(seen, name)
		if err := read(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if names := missingMembers(members, seen); names != "" {
		return fmt.Errorf("%s: missing %s", what, names)
	}
	return f.delimiter('}', what)
}

// missingMembers returns the missing members, sorted.
func missingMembers(members map[string]func() error, seen []string) string {
	var names []string
	for name := range members {
		if !slices.Contains(seen, name) && !strings.HasSuffix(name, "?") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// list reads a list of at most limit elements. Its errors name the element, from 0.
func (f *fileReader) list(what string, limit int, element func() error) error {
	if err := f.delimiter('[', what); err != nil {
		return err
	}
	for n := 0; f.dec.More(); n++ {
		if n == limit {
			return fmt.Errorf("more than %d", limit)
		}
		if err := element(); err != nil {
			return fmt.Errorf("%d: %w", n, err)
		}
	}
	return f.delimiter(']', what)
}

func (f *fileReader) delimiter(want json.Delim, what string) error {
	t, err := f.token()
	if err == nil && t != want {
		err = fmt.Errorf("%s: got %s, want %v", what, tokenText(t), want)
	}
	return err
}

func (f *fileReader) token() (json.Token, error) {
	t, err := f.dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", f.dec.InputOffset(), err)
	}
	return t, nil
}

func tokenText(t json.Token) string {
	if s, ok := t.(string); ok {
		return fmt.Sprintf("%.40q", s)
	}
	return fmt.Sprintf("%.40v", t)
}

func (f *fileReader) text() (string, error) {
	t, err := f.token()
	s, ok := t.(string)
	if err == nil && !ok {
		err = fmt.Errorf("got %s, want a string", tokenText(t))
	}
	return s, err
}

// number reads a number of at most limit.
func (f *fileReader) number(limit uint64) (uint64, error) {
	t, err := f.token()
	if err != nil {
		return 0, err
	}
	text, ok := t.(json.Number)
	n, bad := strconv.ParseUint(text.String(), 10, 64)
	if !ok || bad != nil || n > limit {
		return 0, fmt.Errorf("got %s, want a whole number up to %d", tokenText(t), limit)
	}
	return n, nil
}

func (f *fileReader) bool() (bool, error) {
	t, err := f.token()
	b, ok := t.(bool)
	if err == nil && !ok {
		err = fmt.Errorf("got %s, want true or false", tokenText(t))
	}
	return b, err
}

// member reads the value of a member.
func member[T any](into *T, read func() (T, error)) func() error {
	return func() (err error) { *into, err = read(); return err }
}

// count reads a number of at most limit.
func count[T ~int | ~int64 | ~uint16 | ~uint32 | ~uint64](f *fileReader, into *T, limit T) func() error {
	return func() error {
		n, err := f.number(uint64(limit))
		*into = T(n)
		return err
	}
}

// ints reads a list of exactly this many numbers.
func (f *fileReader) ints(limits ...int) ([]int, error) {
	var ints []int
	err := f.list("numbers", len(limits), func() error {
		n, err := f.number(uint64(limits[len(ints)]))
		ints = append(ints, int(n))
		return err
	})
	if err == nil && len(ints) < len(limits) {
		err = fmt.Errorf("%d numbers, want %d", len(ints), len(limits))
	}
	return ints, err
}

func (f *fileReader) guid() (mad.GUID, error) {
	s, err := f.text()
	if err != nil {
		return 0, err
	}
	n, bad := strconv.ParseUint(s, 0, 64)
	if bad != nil || mad.GUID(n).String() != s {
		return 0, fmt.Errorf("got %.40q, want a GUID as 0x and 16 lower-case digits", s)
	}
	return mad.GUID(n), nil
}

// word reads a word of an enumeration.
func word[T ~uint8](f *fileReader, into *T, words *mad.Words) func() error {
	return func() error {
		s, err := f.text()
		if err != nil {
			return err
		}
		code, ok := words.Code()[s]
		if !ok {
			digits := strings.TrimSuffix(strings.TrimPrefix(s, "unknown("), ")")
			var bad error
			if code, bad = strconv.ParseUint(digits, 10, 8); bad != nil || words.Text(code) != s {
				return fmt.Errorf("%.40q: invalid %s", s, words.Name)
			}
		}
		*into = T(code)
		return nil
	}
}

// plainJSON is r, as long as no text in it is longer than maxText and no more
// brackets are open than maxNested: so the decoder holds no more than that.
type plainJSON struct {
	r       io.Reader
	nested  int
	text    int // bytes of the text so far; 0: outside
	escaped bool
	plain   int // bytes outside of texts without a mark
}

func (p *plainJSON) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	for _, c := range b[:n] {
		if e := p.take(c); e != nil {
			return 0, e
		}
	}
	return n, err
}

func (p *plainJSON) take(c byte) error {
	if p.text > 0 {
		p.text++
		switch {
		case p.text > maxText:
			return fmt.Errorf("string of more than %d bytes", maxText)
		case p.escaped:
			p.escaped = false
		case c == '\\':
			p.escaped = true
		case c == '"':
			p.text = 0
		}
		return nil
	}
	switch p.plain++; c {
	case '"':
		p.text, p.plain = 1, 0
	case '{', '[':
		p.nested++
		p.plain = 0
	case '}', ']':
		p.nested--
		p.plain = 0
	case ',', ':':
		p.plain = 0
	}
	switch {
	case p.nested > maxNested:
		return fmt.Errorf("more than %d nested brackets", maxNested)
	case p.plain > maxText:
		return fmt.Errorf("more than %d bytes that do not belong to a plan", maxText)
	}
	return nil
}

const maxPort = math.MaxUint8

// manager reads the subnet manager; null: none.
func (f *fileReader) manager() (*Manager, error) {
	t, err := f.token()
	if err != nil || t == nil {
		return nil, err
	}
	m := &Manager{}
	return m, f.members("the subnet manager", t, map[string]func() error{
		"guid":     member(&m.GUID, f.guid),
		"lid":      count(f, &m.LID, mad.MaxUnicastLID),
		"priority": count(f, &m.Priority, 15),
		"state":    word(f, &m.State, mad.WordsSMState),
	})
}

// choice reads which of the tables of a policy the plan leads to; null: there was no choice.
func (f *fileReader) choice() (*Choice, error) {
	t, err := f.token()
	if err != nil || t == nil {
		return nil, err
	}
	c := &Choice{}
	const most = math.MaxInt64
	return c, f.members("the choice of tables", t, map[string]func() error{
		"tables": func() error {
			name, err := f.text()
			i := slices.Index(choiceNames[:], name)
			if err == nil && i < 0 {
				err = fmt.Errorf("unknown choice %.40q; known: %s", name, strings.Join(choiceNames[:], ", "))
			}
			c.Kind = ChoiceKind(max(0, i))
			return err
		},
		"load":     count(f, &c.Load, most),
		"own_load": count(f, &c.OwnLoad, most),
	})
}

// report reads the result of the proof; null: none.
func (f *fileReader) report() (*Report, error) {
	t, err := f.token()
	if err != nil || t == nil {
		return nil, err
	}
	r := &Report{}
	const most = math.MaxInt64
	return r, f.members("the report", t, map[string]func() error{
		"ok":           member(&r.OK, f.bool),
		"reason":       member(&r.Reason, f.text),
		"rounds":       func() error { return f.list("rounds", maxRounds, func() error { return f.round(r) }) },
		"pairs":        count(f, &r.Pairs, most),
		"lost":         count(f, &r.Lost, most),
		"gained":       count(f, &r.Gained, most),
		"load_before":  count(f, &r.LoadBefore, most),
		"load_after":   count(f, &r.LoadAfter, most),
		"credit_loop?": member(&r.CreditLoop, f.text),
		"effect?":      func() error { return f.effect(r) },
		"not_judged":   f.texts(&r.NotJudged, maxNotes),
	})
}

// texts reads a list of at most this many texts.
func (f *fileReader) texts(into *[]string, most int) func() error {
	return func() error {
		return f.list("texts", most, func() error {
			text, err := f.text()
			*into = append(*into, text)
			return err
		})
	}
}

// maxNotes is the largest number of remarks in a list.
const maxNotes = 100

// effect reads the effect of links that go down.
func (f *fileReader) effect(r *Report) error {
	e := &Effect{}
	r.Effect = e
	const most = math.MaxInt64
	return f.object("the effect", map[string]func() error{
		"links":       f.texts(&e.Links, maxSets),
		"managed":     member(&e.Managed, f.bool),
		"engine":      member(&e.Engine, f.text),
		"basis":       member(&e.Basis, f.text),
		"through":     count(f, &e.Through, most),
		"lost":        count(f, &e.Lost, most),
		"rerouted":    count(f, &e.Rerouted, most),
		"load_before": count(f, &e.LoadBefore, most),
		"load_after":  count(f, &e.LoadAfter, most),
		"split":       member(&e.Split, f.text),
		"last_path":   member(&e.LastPath, f.text),
		"needed":      member(&e.Needed, f.text),
		"credit_loop": member(&e.CreditLoop, f.text),
		"loop_before": member(&e.LoopBefore, f.bool),
		"notes":       f.texts(&e.Notes, maxNotes),
	})
}

func (f *fileReader) round(r *Report) error {
	var one Round
	var ms int64
	err := f.object("a round", map[string]func() error{
		"blocks":   count(f, &one.Blocks, maxSets),
		"switches": count(f, &one.Switches, maxNodes),
		"lanes":    member(&one.Lanes, f.bool),
		"drain_ms": count(f, &ms, 1<<40),
	})
	one.Drain = time.Duration(ms) * time.Millisecond
	r.Rounds = append(r.Rounds, one)
	return err
}

// disabled reads a switch whose adaptive routing the plan disables.
func (f *fileReader) disabled() error {
	var s Switch
	err := f.object("a switch", map[string]func() error{"guid": member(&s.GUID, f.guid), "name": member(&s.Name, f.text)})
	f.made.Disables = append(f.made.Disables, s)
	return err
}

func (f *fileReader) node() error {
	var n Node
	err := f.object("a node", map[string]func() error{
		"guid":      member(&n.GUID, f.guid),
		"type":      word(f, &n.Type, mad.WordsNodeType),
		"name":      member(&n.Name, f.text),
		"num_ports": count(f, &n.NumPorts, maxPort),
		"lids": func() error {
			return f.list("lids", maxPort+1, func() error {
				l, err := f.ints(maxPort, int(mad.MaxUnicastLID), 7)
				if err == nil {
					n.LIDs = append(n.LIDs, PortLID{Port: l[0], LID: mad.LID(l[1]), LMC: l[2]})
				}
				return err
			})
		},
	})
	if err != nil {
		return err
	}
	for i, l := range n.LIDs {
		if l.Port > n.NumPorts || i > 0 && l.Port <= n.LIDs[i-1].Port {
			return fmt.Errorf("lids: port %d: ports must be unique, in order, and at most %d", l.Port, n.NumPorts)
		}
	}
	f.made.Base.Nodes = append(f.made.Base.Nodes, n)
	return nil
}

func (f *fileReader) link() error {
	n := len(f.made.Base.Nodes) - 1
	if n < 0 {
		return errors.New("links: must follow the nodes that they connect")
	}
	l, err := f.ints(n, maxPort, n, maxPort)
	if err != nil {
		return err
	}
	link := Link{End{l[0], l[1]}, End{l[2], l[3]}}
	for _, e := range []End{link.A, link.B} {
		if node := &f.made.Base.Nodes[e.Node]; e.Port == 0 || e.Port > node.NumPorts {
			return fmt.Errorf("port %d: unknown: node %d has %d", e.Port, e.Node, node.NumPorts)
		}
	}
	f.made.Base.Links = append(f.made.Base.Links, link)
	return nil
}

func (f *fileReader) target() error {
	var t Target
	err := f.object("a target", map[string]func() error{
		"guid": member(&t.GUID, f.guid),
		"port": count(f, &t.Port, maxPort),
		"name": member(&t.Name, f.text),
		"routes": func() error {
			return f.list("routes", 2, func() error {
				text, err := f.text()
				if err != nil {
					return err
				}
				route, err := mad.ParseRoute(text)
				t.Routes = append(t.Routes, route)
				return err
			})
		},
	})
	if err == nil && t.GUID == 0 {
		err = errors.New("GUID 0: invalid")
	}
	f.targets = append(f.targets, t)
	return err
}

func (f *fileReader) set() error {
	var s Set
	var target int
	err := f.object("a Set", map[string]func() error{
		"target": count(f, &target, max(0, len(f.targets)-1)),
		"attribute": func() error {
			name, err := f.text()
			if err != nil {
				return err
			}
			if s.Attr = mad.LookupName(mad.ClassSubn, name); s.Attr == nil {
				return fmt.Errorf("unknown attribute %.40q", name)
			}
			return nil
		},
		"modifier": count(f, &s.Modifier, math.MaxUint32),
		"old?":     member(&s.Old, f.bytes), // check requires these, or fields
		"new?":     member(&s.New, f.bytes),
		"line?":    member(&s.Line, f.text),
		"fields?":  func() error { return f.list("fields", 64, func() error { return f.field(&s) }) },
	})
	switch {
	case err != nil:
		return err
	case len(f.targets) == 0:
		return errors.New("sets: must follow their targets")
	case InFields(s.Attr) && len(s.Fields) == 0:
		return errors.New("a Set: missing fields")
	}
	s.Target = f.targets[target]
	f.made.Sets = append(f.made.Sets, s)
	return s.check()
}

func (f *fileReader) field(s *Set) error {
	var one Field
	err := f.object("a field", map[string]func() error{
		"name": member(&one.Name, f.text),
		"old":  count(f, &one.Old, math.MaxUint64),
		"new":  count(f, &one.New, math.MaxUint64),
	})
	s.Fields = append(s.Fields, one)
	return err
}

func (f *fileReader) bytes() ([]byte, error) {
	s, err := f.text()
	if err != nil {
		return nil, err
	}
	b, bad := base64.StdEncoding.Strict().DecodeString(s)
	if bad != nil || len(b) == 0 {
		return nil, fmt.Errorf("got %.40q, want bytes in base64", s)
	}
	return b, nil
}

// chunks reads bytes that were cut into texts.
func (f *fileReader) chunks() (data []byte, err error) {
	err = f.list("texts", maxSets, func() error {
		b, err := f.bytes()
		data = append(data, b...)
		return err
	})
	return data, err
}

// certificate reads the certificate; null: none. It need not hold.
func (f *fileReader) certificate() (*certificate.Certificate, error) {
	t, err := f.token()
	if err != nil || t == nil {
		return nil, err
	}
	c, blocks := &certificate.Certificate{}, 0
	return c, f.members("the certificate", t, map[string]func() error{
		"lanes":               count(f, &c.Lanes, mad.DropVL),
		"accept_credit_loops": member(&c.AcceptCreditLoops, f.bool),
		"rounds": func() error {
			return f.list("rounds", maxRounds, func() error {
				r, err := f.certRound(&blocks)
				c.Rounds = append(c.Rounds, r)
				return err
			})
		},
		"ranks": member(&c.Ranks, f.chunks),
		"orders": func() error {
			return f.list("orders", maxRounds, func() error {
				order, err := f.chunks()
				c.Orders = append(c.Orders, order)
				return err
			})
		},
	})
}

// certRound reads a round. blocks counts the blocks of all rounds: few bytes name many.
func (f *fileReader) certRound(blocks *int) (r certificate.Round, err error) {
	var ms int64
	between := map[int][]byte{}
	err = f.object("a round", map[string]func() error{
		"lanes":    member(&r.Lanes, f.bool),
		"drain_ms": count(f, &ms, 1<<40),
		"changes": func() error {
			return f.list("changes", maxSets, func() error {
				span, err := f.ints(maxSets, maxSets)
				if err != nil {
					return err
				}
				if *blocks += span[1] - span[0] + 1; *blocks > maxSets || span[1] < span[0] || len(r.Blocks) > 0 && span[0] <= r.Blocks[len(r.Blocks)-1].Change {
					return fmt.Errorf("from %d to %d: changes must be unique, in order, and at most %d in all rounds", span[0], span[1], maxSets)
				}
				for i := span[0]; i <= span[1]; i++ {
					r.Blocks = append(r.Blocks, certificate.Block{Change: i})
				}
				return nil
			})
		},
		"between?": func() error {
			return f.list("blocks", maxSets, func() error {
				var b betweenFile
				err := f.object("a block", map[string]func() error{"change": count(f, &b.Change, maxSets), "entries": member(&b.Entries, f.bytes)})
				if err == nil && between[b.Change] != nil {
					err = errors.New("duplicate")
				}
				between[b.Change] = b.Entries
				return err
			})
		},
	})
	for i := range r.Blocks {
		b := &r.Blocks[i]
		b.Entries = between[b.Change]
		delete(between, b.Change)
	}
	if err == nil && len(between) > 0 {
		err = errors.New("between: blocks of changes that are not in the round")
	}
	r.Drain = time.Duration(ms) * time.Millisecond
	return r, err
}
