package plan

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"time"

	"fabsh/mad"
)

// manager reads the subnet manager; null: there was none.
func (f *fileReader) manager() (*Manager, error) {
	t, err := f.token()
	if err != nil || t == nil {
		return nil, err
	}
	m := &Manager{}
	return m, f.members("the subnet manager", t, map[string]func() error{
		"guid":     func() (err error) { m.GUID, err = f.guid(); return err },
		"lid":      func() (err error) { m.LID, err = f.lid(); return err },
		"priority": func() (err error) { m.Priority, err = f.int(15); return err },
		"state": func() error {
			state, err := f.word(mad.WordsSMState)
			m.State = mad.SMState(state)
			return err
		},
	})
}

// report reads what was found out; null: nothing.
func (f *fileReader) report() (*Report, error) {
	t, err := f.token()
	if err != nil || t == nil {
		return nil, err
	}
	r := &Report{}
	const most = math.MaxInt64
	return r, f.members("the report", t, map[string]func() error{
		"ok":          func() (err error) { r.OK, err = f.bool(); return err },
		"reason":      func() (err error) { r.Reason, err = f.text(); return err },
		"rounds":      func() error { return f.list("rounds", maxRounds, func() error { return f.round(r) }) },
		"pairs":       count(f, &r.Pairs, most),
		"lost":        count(f, &r.Lost, most),
		"gained":      count(f, &r.Gained, most),
		"load_before": count(f, &r.LoadBefore, most),
		"load_after":  count(f, &r.LoadAfter, most),
		"not_judged": func() error {
			return f.list("texts", 100, func() error {
				note, err := f.text()
				r.NotJudged = append(r.NotJudged, note)
				return err
			})
		},
	})
}

func (f *fileReader) round(r *Report) error {
	var one Round
	var ms int64
	err := f.object("a round", map[string]func() error{
		"blocks":   count(f, &one.Blocks, maxSets),
		"switches": count(f, &one.Switches, maxNodes),
		"lanes":    func() (err error) { one.Lanes, err = f.bool(); return err },
		"drain_ms": count(f, &ms, 1<<40),
	})
	one.Drain = time.Duration(ms) * time.Millisecond
	r.Rounds = append(r.Rounds, one)
	return err
}

func (f *fileReader) lid() (mad.LID, error) {
	n, err := f.int(int(mad.MaxUnicastLID))
	return mad.LID(n), err
}

func (f *fileReader) node() error {
	var n Node
	err := f.object("a node", map[string]func() error{
		"guid": func() (err error) { n.GUID, err = f.guid(); return err },
		"type": func() error {
			code, err := f.word(mad.WordsNodeType)
			n.Type = mad.NodeType(code)
			return err
		},
		"name":      func() (err error) { n.Name, err = f.text(); return err },
		"num_ports": func() (err error) { n.NumPorts, err = f.int(maxPort); return err },
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
			return fmt.Errorf("lids: port %d: the node has %d, and each is there once, in order", l.Port, n.NumPorts)
		}
	}
	f.made.Base.Nodes = append(f.made.Base.Nodes, n)
	return nil
}

func (f *fileReader) link() error {
	n := len(f.made.Base.Nodes) - 1
	if n < 0 {
		return errors.New("links come after the nodes that they connect")
	}
	l, err := f.ints(n, maxPort, n, maxPort)
	if err != nil {
		return err
	}
	link := Link{End{l[0], l[1]}, End{l[2], l[3]}}
	for _, e := range []End{link.A, link.B} {
		if node := &f.made.Base.Nodes[e.Node]; e.Port == 0 || e.Port > node.NumPorts {
			return fmt.Errorf("no port %d: node %d has %d", e.Port, e.Node, node.NumPorts)
		}
	}
	f.made.Base.Links = append(f.made.Base.Links, link)
	return nil
}

func (f *fileReader) target() error {
	var t Target
	err := f.object("a target", map[string]func() error{
		"guid": func() (err error) { t.GUID, err = f.guid(); return err },
		"port": func() (err error) { t.Port, err = f.int(maxPort); return err },
		"name": func() (err error) { t.Name, err = f.text(); return err },
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
		err = errors.New("GUID 0 is no node's")
	}
	f.targets = append(f.targets, t)
	return err
}

func (f *fileReader) set() error {
	var s Set
	target := -1
	err := f.object("a Set", map[string]func() error{
		"target": func() (err error) { target, err = f.int(max(0, len(f.targets)-1)); return err },
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
		"modifier": func() error {
			n, err := f.number(1<<32 - 1)
			s.Modifier = uint32(n)
			return err
		},
		"old":    func() (err error) { s.Old, err = f.bytes(); return err },
		"new":    func() (err error) { s.New, err = f.bytes(); return err },
		"line":   func() (err error) { s.Line, err = f.text(); return err },
		"fields": func() error { return f.list("fields", 64, func() error { return f.field(&s) }) },
	})
	switch {
	case err != nil:
		return err
	case len(f.targets) == 0:
		return errors.New("sets come after the targets that they go to")
	}
	s.Target = f.targets[target]
	f.made.Sets = append(f.made.Sets, s)
	return s.check()
}

func (f *fileReader) field(s *Set) error {
	var one Field
	err := f.object("a field", map[string]func() error{
		"name": func() (err error) { one.Name, err = f.text(); return err },
		"old":  func() (err error) { one.Old, err = f.number(1<<64 - 1); return err },
		"new":  func() (err error) { one.New, err = f.number(1<<64 - 1); return err },
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
