package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ErrNotPlanned reports that a request is not sent while a plan is made.
var ErrNotPlanned = errors.New("refused: a plan is being made, and this request cannot be part of it")

// Recorder is the interceptor of an engine while a plan is made. It sends no Set: it
// records each one, reads the current value instead, and answers as if the Set had been
// sent. Reads of written values return these; everything else comes from the fabric.
//
// A directed route and a LID of a node are equivalent: nodes are identified by their
// GUIDs, which are queried if unknown. Its methods are safe for concurrent use.
type Recorder struct {
	// Target and Choice are for the fields of Plan of these names.
	Target *routes.Routes
	Choice *Choice
	// Static reports that static routing was requested: where adaptive routing is on, a write
	// of a forwarding table is recorded.
	Static bool

	mu      sync.Mutex
	at      map[string]responder                     // by address
	written map[certificate.Place]certificate.Change // all Sets of a place in one
	attrs   map[*mad.Attribute]bool                  // of which something is written
	sets    []recordedSet
	count   int // Sets requested until now
}

// Cause is the origin of a Set.
type Cause struct {
	Line string // of a script: "maintenance.star:12:5"
	// Place orders causes, number by number: a caller comes before what it calls.
	Place []int
}

// WithCause makes a Recorder note the origin of the Sets under the context.
func WithCause(ctx context.Context, cause Cause) context.Context {
	return context.WithValue(ctx, causeKey{}, cause)
}

type causeKey struct{}

// responder is the node that answers at an address.
type responder struct {
	guid mad.GUID
	in   int // the port where requests come in; 0 of a switch
}

// recordedSet is a Set with its place in the order of all.
type recordedSet struct {
	certificate.Change
	place  []int
	number int // counts all Sets, in the order of their requests
}

// NewRecorder returns a Recorder without Sets.
func NewRecorder() *Recorder {
	return &Recorder{at: map[string]responder{}, written: map[certificate.Place]certificate.Change{}, attrs: map[*mad.Attribute]bool{}}
}

// Sets returns the recorded Sets, in the order in which the script made them.
func (r *Recorder) Sets() []certificate.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.sets, func(a, b recordedSet) int {
		return cmp.Or(slices.Compare(a.place, b.place), cmp.Compare(a.number, b.number))
	})
	sets := make([]certificate.Change, len(r.sets))
	for i := range sets {
		sets[i] = r.sets[i].Change
	}
	return sets
}

// request is what the Recorder keeps of a call until its answer.
type request struct {
	attr     *mad.Attribute
	at       string // address
	route    mad.DirectedRoute
	modifier uint32
	set      []byte // content of a Set; nil: a Get
	number   int
	cause    Cause
}

// Request implements engine.Interceptor.
func (r *Recorder) Request(ctx context.Context, c *engine.Call) (answered func(*engine.Call) error, err error) {
	q, err := r.request(c)
	if q == nil || err != nil {
		return nil, err
	}
	q.cause, _ = ctx.Value(causeKey{}).(Cause)
	return func(c *engine.Call) error { return r.answer(q, c) }, nil
}

// request returns what to keep of c (nil: nothing), and turns a Set into a read.
func (r *Recorder) request(c *engine.Call) (*request, error) {
	h := c.Header()
	if h.Class.Family() != mad.ClassSubn || h.Method != mad.MethodSet {
		if mad.EffectOfMAD(c.MAD[:]) != mad.EffectRead {
			return nil, ErrNotPlanned
		}
		if attr := mad.Lookup(h.Class, h.Attribute); h.Class.Family() == mad.ClassSubn && (attr == mad.AttrNodeInfo || slices.Contains(certificate.PlannedAttributes(), attr)) {
			at, route := address(c)
			return &request{attr: attr, modifier: h.Modifier, at: at, route: route}, nil
		}
		return nil, nil
	}
	attr := mad.Lookup(h.Class, h.Attribute)
	if !slices.Contains(certificate.PlannedAttributes(), attr) {
		return nil, ErrNotPlanned
	}
	if h.Modifier&^certificate.ModifierBits(attr) != 0 {
		return nil, fmt.Errorf("%w: modifier %#x means more than one block of %s", ErrNotPlanned, h.Modifier, attr.Name)
	}
	q := &request{attr: attr, modifier: h.Modifier, set: slices.Clone(c.Data()[:attr.Size])}
	q.at, q.route = address(c)
	clear(c.Data()[:h.Class.DataSize()])
	c.MAD[mad.MethodOffset] = byte(mad.MethodGet)
	if mad.EffectOfMAD(c.MAD[:]) != mad.EffectRead {
		return nil, ErrNotPlanned
	}
	r.mu.Lock()
	r.count++
	q.number = r.count
	r.mu.Unlock()
	return q, nil
}

// address returns where c goes, as text, and its route (nil: it goes by LID).
func address(c *engine.Call) (string, mad.DirectedRoute) {
	if mad.Class(c.MAD[mad.ClassOffset]) == mad.ClassSubnDirected {
		route := mad.RouteOf(c.MAD[:])
		if c.To.LID != mad.PermissiveLID { // a combined route
			return "LID " + strconv.Itoa(int(c.To.LID)) + ", then " + route.String(), route
		}
		return route.String(), route
	}
	return "LID " + strconv.Itoa(int(c.To.LID)), nil
}

// Before implements engine.Interceptor: it queries NodeInfo if the node is unknown, and
// it matters.
func (r *Recorder) Before(calls []*engine.Call) (first []*engine.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queried := map[string]bool{}
	for _, c := range calls {
		h := c.Header()
		attr := mad.Lookup(h.Class, h.Attribute)
		if h.Class.Family() != mad.ClassSubn || !slices.Contains(certificate.PlannedAttributes(), attr) || h.Method != mad.MethodSet && !r.attrs[attr] {
			continue
		}
		at, _ := address(c)
		if _, known := r.at[at]; known || queried[at] {
			continue
		}
		queried[at] = true
		info := &engine.Call{Guard: c.Guard}
		info.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
		info.SetPathOf(c)
		first = append(first, info)
	}
	return first
}

// answer records the answer of c, whose request is q, and returns written values in it.
func (r *Recorder) answer(q *request, c *engine.Call) error {
	if c.Err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.attr == mad.AttrNodeInfo {
		r.learn(q, c.Data())
		return nil
	}
	to, known := r.at[q.at]
	switch {
	case !known && q.set != nil:
		return errors.New("not recorded: the node did not report its GUID (NodeInfo)")
	case !known:
		return nil
	}
	data := c.Data()[:q.attr.Size]
	place := certificate.PlaceOf(q.attr, q.modifier, to.guid, to.in)
	before, again := r.written[place]
	if again {
		show(&before, data)
	}
	if q.set == nil {
		return nil
	}
	s, err := changeOf(q, to, data)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return err
	}
	all := s
	if again {
		all = before.Then(&s)
	}
	r.written[place], r.attrs[q.attr] = all, true
	show(&all, data)
	r.sets = append(r.sets, recordedSet{Change: s, place: q.cause.Place, number: q.number})
	return nil
}

// learn records the node at an address.
func (r *Recorder) learn(q *request, data []byte) {
	var info mad.NodeInfo
	info.Decode(data)
	to := responder{guid: info.NodeGUID}
	if info.NodeType != mad.NodeTypeSwitch {
		to.in = int(info.LocalPortNum)
	}
	r.at[q.at] = to
}

// changeOf returns the change by a Set, where now is the value of the node, including earlier
// writes: of PortInfo and SwitchInfo the fields by which the Set differs from it, or requests
// an action.
func changeOf(q *request, to responder, now []byte) (certificate.Change, error) {
	s := certificate.Change{Attr: q.attr, Modifier: q.modifier, Node: to.guid, Port: to.in, Line: q.cause.Line}
	if q.route != nil {
		s.Routes = []mad.DirectedRoute{q.route}
	}
	if !certificate.InFields(q.attr) {
		s.Old, s.New = slices.Clone(now), q.set
		return s, nil
	}
	s.Fields = []string{} // a Set that changes nothing is not of the whole attribute
	for i := range q.attr.Fields {
		f := &q.attr.Fields[i]
		was, is := f.Uint(now), f.Uint(q.set)
		switch {
		case f.ReadOnly, (f.NoChange || f.W1C) && is == 0, !f.NoChange && !f.W1C && is == was:
		case f.Key:
			return s, fmt.Errorf("%w: %s.%s is a key", ErrNotPlanned, q.attr.Name, f.Name)
		default:
			s.Fields = append(s.Fields, f.Script)
		}
	}
	slices.Sort(s.Fields)
	s.Old, s.New = s.Masked(now), s.Masked(q.set)
	return s, nil
}

// show puts what was written into data. Bits that 1 clears are clear.
func show(c *certificate.Change, data []byte) {
	if c.Fields == nil {
		copy(data, c.New)
	}
	for _, name := range c.Fields {
		if f := c.Attr.Field(name); f.W1C {
			f.SetUint(data, 0)
		} else {
			f.SetUint(data, f.Uint(c.New))
		}
	}
}
