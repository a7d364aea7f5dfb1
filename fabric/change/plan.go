// Package change has an intended change as a value and a file, the tables that it leads to, and
// its predicted effect.
//
//	plan.go      Plan and Set: what is to be written, where, over what
//	record.go    Recorder: records Sets instead of sending them; new.go, a plan of them
//	tables.go    Tables: the question whose answer is an order of writes
//	prove.go     Report: what was proven when the plan was made; ports.go, of ports;
//	             links.go, plans that change only links; verdict.go, in one line
//	certify.go   makes and checks the certificate
//	choice.go    Choice: which of a policy's tables it leads to
//	static.go    where adaptive routing is on, and disabled
//	levels.go    which service levels packets have
//	place.go     which block or port a Set is about; what plans may hold
//	topology.go  Fingerprint: what a plan was made from
//	since.go     what has changed since, in words
//	file.go      the file, JSON; decode.go and decodeplan.go read it and trust nothing;
//	             certfile.go, of the certificate
//	text.go      a plan as text
//
// Section numbers are those of the InfiniBand Architecture Specification,
// volume 1 (IBA).
package change

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Plan is a change of a subnet that is intended: its Sets, in the order in which
// they were asked for, and what they were made from. It holds no keys.
//
// Only the new bytes are taken from it when it is applied: order and
// proof are computed again, and current values are read again.
type Plan struct {
	// From is the origin: "maintenance.star", "--routes ftree".
	From string
	Base Fingerprint
	Sets []Set
	// Target are the tables that the Sets make, if their paths have their own service
	// levels or virtual lanes; nil: none do. A file does not contain them.
	Target *routes.Routes
	// Choice is which of a policy's tables it leads to; nil: there was no choice.
	Choice *Choice
	// Static is that static routing was requested: where adaptive routing is on at a switch
	// that the plan writes the forwarding table of, the plan disables it. Disables are those
	// switches.
	Static   bool
	Disables []Switch
	// Report is the result of the proof when the plan was made, in this process; nil:
	// none. For a plan read from a file it is the report in the file, marked Recorded;
	// nothing relies on it.
	Report, Recorded *Report
	// Certificate is the proof of the rounds of forwarding tables and SL2VL; nil: there is
	// none. Of a plan that was read from a file it is not checked: see CheckCertificate.
	Certificate *certificate.Certificate
}

// Set is one intended Set.
type Set struct {
	Attr *mad.Attribute
	// Modifier is that of the Set, but for orders to write several blocks at
	// once: each block has a Set of its own.
	Modifier uint32
	Target   Target
	// Old and New are the block before and after, of tables: Attr.Size bytes.
	Old, New []byte
	// Fields are what a Set of PortInfo or SwitchInfo changes, sorted by name.
	// Of a field that asks for something (a port state) the value asked for.
	Fields []Field
	// Line is where the script asked for it: "maintenance.star:12"; may be empty.
	Line string
}

// Target is the node that a Set goes to.
type Target struct {
	GUID mad.GUID // of the node
	// Port is the port where the request comes in at a channel adapter, each of
	// whose ports answers for itself; 0 at switches.
	Port int
	Name string // for messages: the node description, or ""
	// Routes are directed routes to it from where the plan was made. They may have
	// changed since: only GUID says who is meant.
	Routes []mad.DirectedRoute
}

// Field is one field of PortInfo or SwitchInfo.
type Field struct {
	Name     string // the name that scripts use: "port_physical_state"
	Old, New uint64
}

// Request is the attribute as the Set carries it, where now is what the node has:
// of tables New, else now with the changed fields. Fields in which a Set asks for
// an action are 0, for none, unless they are among these.
func (s *Set) Request(now []byte) []byte {
	if s.New != nil {
		return s.New
	}
	data := slices.Clone(now[:s.Attr.Size])
	for i := range s.Attr.Fields {
		if f := &s.Attr.Fields[i]; f.NoChange || f.W1C {
			f.SetUint(data, 0)
		}
	}
	for _, f := range s.Fields {
		s.Attr.Field(f.Name).SetUint(data, f.New)
	}
	return data
}

// Change is the effect of a plan on one block, or on one port's or switch's attribute:
// all its Sets taken together.
type Change struct {
	*Set // the first: target, attribute, modifier, what was there before
	// New and Fields are as the last Set leaves them. Fields that end as they
	// began are left out, unless they ask for an action.
	New    []byte
	Fields []Field
	Lines  []string // of all its Sets
}

// Changes are what p changes in the end, in the order in which it is first asked
// for. What ends as it began is no change, except where the write disables adaptive routing.
func (p *Plan) Changes() []Change {
	at := map[Place]int{}
	var all []Change
	for i := range p.Sets {
		s := &p.Sets[i]
		n, seen := at[s.Place()]
		if !seen {
			n = len(all)
			at[s.Place()] = n
			all = append(all, Change{Set: s})
		}
		c := &all[n]
		c.New = s.New
		c.Fields = merge(c.Fields, s.Fields)
		if s.Line != "" && !slices.Contains(c.Lines, s.Line) {
			c.Lines = append(c.Lines, s.Line)
		}
	}
	for i := range all {
		c := &all[i]
		c.Fields = slices.DeleteFunc(c.Fields, func(f Field) bool { return f.Old == f.New && !asks(c.Attr.Field(f.Name)) })
	}
	disables := map[mad.GUID]bool{}
	for _, s := range p.Disables {
		disables[s.GUID] = true
	}
	return slices.DeleteFunc(all, func(c Change) bool {
		rewritten := c.Attr == mad.AttrLinearForwardingTable && disables[c.Target.GUID]
		return len(c.Fields) == 0 && bytes.Equal(c.Old, c.New) && !rewritten
	})
}

// asks reports whether a Set of f requests an action, after which the field has another
// value.
func asks(f *mad.Field) bool { return f.W1C || f.NoChange && f.Type == mad.FieldTypeEnum }

// merge is what later fields make of earlier ones.
func merge(earlier, later []Field) []Field {
	merged := slices.Clone(earlier)
	for _, f := range later {
		i, found := slices.BinarySearchFunc(merged, f.Name, func(f Field, name string) int { return cmp.Compare(f.Name, name) })
		if found {
			merged[i].New = f.New
		} else {
			merged = slices.Insert(merged, i, f)
		}
	}
	return merged
}

// String describes in one line how much the plan writes.
func (p *Plan) String() string {
	nodes := map[mad.GUID]bool{}
	changes := p.Changes()
	for _, c := range changes {
		nodes[c.Target.GUID] = true
	}
	return fmt.Sprintf("plan: %d of %d Sets change something, on %d nodes", len(changes), len(p.Sets), len(nodes))
}

// Label returns the name of a target in messages: its name, else its GUID.
func (t *Target) Label() string { return cmp.Or(t.Name, t.GUID.String()) }
