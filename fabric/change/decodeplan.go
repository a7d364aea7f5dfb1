package change

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fabsh/mad"
)

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

// choice reads which of a policy's tables the plan leads to; null: there was no choice.
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
		"ok":          member(&r.OK, f.bool),
		"reason":      member(&r.Reason, f.text),
		"rounds":      func() error { return f.list("rounds", maxRounds, func() error { return f.round(r) }) },
		"pairs":       count(f, &r.Pairs, most),
		"lost":        count(f, &r.Lost, most),
		"gained":      count(f, &r.Gained, most),
		"load_before": count(f, &r.LoadBefore, most),
		"load_after":  count(f, &r.LoadAfter, most),
		"credit_loop": member(&r.CreditLoop, f.text),
		"effect":      func() error { return f.effect(r) },
		"not_judged":  f.texts(&r.NotJudged, maxNotes),
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
		"old":      member(&s.Old, f.bytes),
		"new":      member(&s.New, f.bytes),
		"line":     member(&s.Line, f.text),
		"fields":   func() error { return f.list("fields", 64, func() error { return f.field(&s) }) },
	})
	switch {
	case err != nil:
		return err
	case len(f.targets) == 0:
		return errors.New("sets: must follow their targets")
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
