package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"fabsh/mad"
)

// ErrUnsupported means that the device does not announce an attribute of its vendor. The
// request was not sent: an agent may ignore it.
var ErrUnsupported = errors.New("unsupported")

// ErrNotSimulated is why a transport refuses a query that the simulated devices behind it never
// answer: they announce nothing.
var ErrNotSimulated = errors.New("not simulated")

// unsupportedError is the ErrUnsupported of an attribute.
type unsupportedError struct{ attr *mad.Attribute }

func (u *unsupportedError) Error() string {
	text := "the device is not of NVIDIA or Mellanox"
	if by := u.attr.AnnouncedBy(); by != "" {
		text = "the device does not announce it by " + by
	}
	return fmt.Sprintf("%v: %s; no request was sent", ErrUnsupported, text)
}

func (u *unsupportedError) Is(target error) bool { return target == ErrUnsupported }

// capabilities is what devices announce, by the GUID of their node. A device is queried once
// in the life of the engine; one that did not answer, again after silentFor.
type capabilities struct {
	mu    sync.Mutex
	nodes map[mad.GUID]*device
}

// silentFor is how long a device that did not answer is not queried again.
const silentFor = 10 * time.Minute

// device is what a device announces.
type device struct {
	querying chan struct{} // holds a token while a goroutine queries the device
	info     mad.NodeInfo
	known    bool // info is set
	answers  map[*mad.Attribute]announcement
}

// announcement is a device's answer to a query for what it announces.
type announcement struct {
	data  []byte // nil: the device refused the query, or did not answer
	err   error  // there was no answer
	until time.Time
}

// KnowNodes sets the NodeInfo of nodes, which announces their vendors, so that it need not
// be read again.
func (e *Engine) KnowNodes(nodes iter.Seq[*mad.NodeInfo]) {
	s := &e.capabilities
	s.mu.Lock()
	defer s.mu.Unlock()
	for info := range nodes {
		s.of(info.NodeGUID).learn(info)
	}
}

// GeneralInfo returns the capabilities that a node has announced to this engine; nil: it was
// not queried, or did not answer.
func (e *Engine) GeneralInfo(node mad.GUID) []byte {
	s := &e.capabilities
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.nodes[node]
	if d == nil || d.answers[mad.AttrGeneralInfo].data == nil {
		return nil
	}
	return slices.Clone(d.answers[mad.AttrGeneralInfo].data[:mad.AttrGeneralInfo.Size])
}

// of returns the device of a node; s.mu is held.
func (s *capabilities) of(node mad.GUID) *device {
	d := s.nodes[node]
	if d == nil {
		d = &device{querying: make(chan struct{}, 1)}
		if s.nodes == nil {
			s.nodes = map[mad.GUID]*device{}
		}
		s.nodes[node] = d
	}
	return d
}

// learn records the NodeInfo of the device.
func (d *device) learn(info *mad.NodeInfo) { d.info, d.known = *info, true }

// question is whether a device announces an attribute, with what the device has answered so far.
type question struct {
	*device
	attr   *mad.Attribute
	nvidia bool // by its GUID, or by its NodeInfo
	bull   bool // by its NodeInfo

	// The answer to GeneralInfo, if its capabilities decide:
	unread bool  // it is missing
	silent bool  // the device did not answer the query, or refused it
	failed error // there was no answer
	lacks  bool  // it has none of the capabilities of attr
}

// ruling is what a rule decides.
type ruling int

const (
	isAnnounced ruling = iota
	isUnsupported
	hasFailed    // with the error of the query for GeneralInfo
	readNodeInfo // the answer is missing
	readGeneralInfo
)

// rules decide whether a device announces an attribute. The first whose condition holds decides; if none
// does, Needs of the attribute decide.
var rules = []struct {
	when func(q question) bool
	then ruling
}{
	// The vendor and the type of the device.
	{func(q question) bool { return !q.known && (!q.nvidia || q.attr.OnlyRouters) }, readNodeInfo},
	{func(q question) bool { return q.bull && q.isListed() }, isAnnounced},
	{func(q question) bool { return !q.nvidia }, isUnsupported},
	{func(q question) bool { return q.attr.OnlyRouters && q.info.NodeType != mad.NodeTypeRouter }, isUnsupported},

	// GeneralInfo. An M_Key may keep a device from answering it, but not its own class.
	{func(q question) bool { return q.unread }, readGeneralInfo},
	{func(q question) bool { return q.silent && q.attr == mad.AttrExtendedPortInfo && !q.known }, readNodeInfo},
	{func(q question) bool { return q.silent && q.isListed() }, isAnnounced},
	{func(q question) bool { return q.failed != nil && q.attr.Class.IsVendor() }, isAnnounced},
	{func(q question) bool { return q.failed != nil }, hasFailed},

	// A device that does not announce it: an older one may have another attribute with its number.
	{func(q question) bool { return q.lacks && q.older() == 0 }, isUnsupported},
	{func(q question) bool { return q.lacks && !q.known }, readNodeInfo},
	{func(q question) bool { return q.lacks && q.info.DeviceID != q.older() }, isUnsupported},
	{func(q question) bool { return q.lacks }, isAnnounced},

	{func(q question) bool { return len(q.attr.Needs) == 0 }, isAnnounced},
}

// verdict reports whether the device of a node announces a: err is nil, ErrUnsupported, or
// the error of a query. If missing is not nil, the answer to that attribute is missing.
func (d *device) verdict(node mad.GUID, a *mad.Attribute) (missing *mad.Attribute, err error) {
	q := d.question(node, a)
	for i := range rules {
		if !rules[i].when(q) {
			continue
		}
		switch rules[i].then {
		case readNodeInfo:
			return mad.AttrNodeInfo, nil
		case readGeneralInfo:
			return mad.AttrGeneralInfo, nil
		case isUnsupported:
			return nil, &unsupportedError{a}
		case hasFailed:
			return nil, q.failed
		}
		return nil, nil
	}
	return d.meetsNeeds(a)
}

// question collects what the device has answered so far.
func (d *device) question(node mad.GUID, a *mad.Attribute) question {
	q := question{device: d, attr: a, nvidia: mad.IsNVIDIA(0, node)}
	q.bull = !q.nvidia && d.info.VendorID == mad.VendorBull
	q.nvidia = q.nvidia || d.known && mad.IsNVIDIA(d.info.VendorID, node)
	if len(a.Capabilities) == 0 {
		return q
	}
	data, missing, err := d.answer(mad.AttrGeneralInfo)
	if q.unread = missing != nil; q.unread {
		return q
	}
	var caps mad.GeneralInfoCapabilities
	if data != nil {
		caps.Decode(data)
	}
	q.silent, q.failed, q.lacks = data == nil, err, !slices.ContainsFunc(a.Capabilities, caps.Has)
	return q
}

// isListed reports whether the attribute is ExtendedPortInfo and the device is known to have it by its
// NodeInfo: some devices are older than GeneralInfo, and so is ibsim.
func (q question) isListed() bool {
	return q.attr == mad.AttrExtendedPortInfo && q.info.HasExtPortInfo()
}

// older returns the type of the older devices that have another attribute with the attribute's number; 0: none.
func (q question) older() uint16 {
	if a := mad.OlderOf(q.attr); a != nil {
		return a.Device
	}
	return 0
}

// meetsNeeds reports whether an answer of the device meets one of the needs of a.
func (d *device) meetsNeeds(a *mad.Attribute) (missing *mad.Attribute, err error) {
	for i := range a.Needs {
		n := &a.Needs[i]
		data, missing, err := d.answer(n.Of)
		if missing != nil || err != nil {
			return missing, err
		}
		if data != nil && n.IsMet(data) {
			return nil, nil
		}
	}
	return nil, &unsupportedError{a}
}

// answer returns the device's answer to a; missing is a if the device was not queried for it yet.
func (d *device) answer(a *mad.Attribute) (data []byte, missing *mad.Attribute, err error) {
	got, ok := d.answers[a]
	if !ok || got.err != nil && time.Now().After(got.until) {
		return nil, a, nil
	}
	return got.data, nil, got.err
}

// mustBeAnnounced returns the attribute of c if the device must announce it before c is
// sent; otherwise nil.
func (e *Engine) mustBeAnnounced(c *Call) *mad.Attribute {
	h := c.Header()
	if h.Attribute < 0xff00 && !h.Class.IsVendor() || e.traits.Recorded || !h.IsAnswered() {
		return nil
	}
	if a := mad.LookupVersion(h.Class, h.ClassVersion, h.Attribute); a != nil && a.IsAnnounced() {
		return a
	}
	return nil
}

// announced returns the calls that may be sent, in their order. The others have ended:
// their devices do not announce the attribute, or did not answer the query. The error
// is the end of ctx.
func (e *Engine) announced(ctx context.Context, calls []*Call) ([]*Call, error) {
	open := map[*Call]*mad.Attribute{} // verdicts that need an answer of the device
	refused := false
	for _, c := range calls {
		c.announced, c.refused = false, false
		a := e.mustBeAnnounced(c)
		if a == nil {
			continue
		}
		missing, err := e.verdict(c.Guard.Node, a)
		switch {
		case missing != nil:
			open[c] = a
		case err != nil:
			c.refuse(err)
			refused = true
		default:
			c.announced = true
		}
	}
	if len(open) > 0 {
		if err := e.queryDevices(ctx, calls, open); err != nil {
			return nil, err
		}
	} else if !refused {
		return calls, nil
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c *Call) bool { return c.refused }), nil
}

// verdict returns the verdict of a node's device on a; node is 0 if unknown.
func (e *Engine) verdict(node mad.GUID, a *mad.Attribute) (missing *mad.Attribute, err error) {
	if node == 0 {
		return mad.AttrNodeInfo, nil
	}
	s := &e.capabilities
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(node).verdict(node, a)
}

// refuse ends c, which is not sent.
func (c *Call) refuse(err error) {
	c.Table, c.Attempts, c.Elapsed, c.refused = nil, 0, 0, true
	c.Err = newError(c, err)
}

// deviceKey identifies the device that a call goes to: by the node, or by the address of
// one that is unknown.
type deviceKey struct {
	node  mad.GUID
	to    Address
	route string
}

func deviceKeyOf(c *Call) deviceKey {
	switch {
	case c.Guard.Node != 0:
		return deviceKey{node: c.Guard.Node}
	case mad.Class(c.MAD[mad.ClassOffset]) == mad.ClassSubnDirected:
		return deviceKey{to: c.To, route: string(mad.RouteOf(c.MAD[:]))}
	}
	return deviceKey{to: c.To}
}

// queryDevices finds the verdicts of the open calls. All devices are queried concurrently, in
// a goroutine each: many silent devices take as long as one.
func (e *Engine) queryDevices(ctx context.Context, calls []*Call, open map[*Call]*mad.Attribute) error {
	byDevice := map[deviceKey][]*Call{}
	var order []deviceKey
	for _, c := range calls {
		if open[c] == nil {
			continue
		}
		k := deviceKeyOf(c)
		if byDevice[k] == nil {
			order = append(order, k)
		}
		byDevice[k] = append(byDevice[k], c)
	}
	var group sync.WaitGroup
	for _, k := range order {
		group.Go(func() {
			node := k.node
			for _, c := range byDevice[k] {
				if err := e.query(ctx, c, &node, open[c]); err != nil {
					c.refuse(err)
				} else {
					c.announced = true
				}
			}
		})
	}
	group.Wait()
	if ctx.Err() == nil {
		return nil
	}
	for _, c := range calls {
		c.refuse(context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// query queries the device that c goes to until the verdict on a is known. node is its GUID,
// which query sets if it is 0.
func (e *Engine) query(ctx context.Context, c *Call, node *mad.GUID, a *mad.Attribute) error {
	s := &e.capabilities
	for {
		if *node == 0 {
			var info mad.NodeInfo
			call := c.capabilityQuery(mad.AttrNodeInfo)
			if err := cmp.Or(e.do(ctx, []*Call{call}), call.Err); err != nil {
				return err
			}
			info.Decode(call.Data())
			if *node = info.NodeGUID; *node == 0 {
				return errors.New("the NodeInfo of the device has no GUID")
			}
			s.mu.Lock()
			s.of(*node).learn(&info)
			s.mu.Unlock()
		}
		s.mu.Lock()
		d := s.of(*node)
		s.mu.Unlock()
		select {
		case d.querying <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		done, err := e.queryOnce(ctx, c, *node, a)
		<-d.querying
		if done || err != nil {
			return err
		}
	}
}

// queryOnce sends the device the next query for the verdict on a; done reports that err is
// the verdict. The token of the device is held.
func (e *Engine) queryOnce(ctx context.Context, c *Call, node mad.GUID, a *mad.Attribute) (done bool, err error) {
	missing, err := e.verdict(node, a)
	if missing == nil {
		return true, err
	}
	call := c.capabilityQuery(missing)
	call.announced = true
	if err := e.do(ctx, []*Call{call}); err != nil {
		return false, err
	}
	s := &e.capabilities
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.of(node)
	var got announcement
	var refusal *Error
	switch {
	case call.Err == nil && missing == mad.AttrNodeInfo:
		var info mad.NodeInfo
		info.Decode(call.Data())
		d.learn(&info)
		return false, nil
	case call.Err == nil:
		got.data = slices.Clone(call.MAD[missing.OffsetIn(call.Header().ClassVersion):])
	case missing == mad.AttrNodeInfo:
		return false, call.Err
	case errors.As(call.Err, &refusal) && refusal.Status != 0 && refusal.Status&mad.StatusBusy == 0, errors.Is(call.Err, ErrNotSimulated):
	default:
		got.err, got.until = call.Err, time.Now().Add(silentFor)
	}
	if d.answers == nil {
		d.answers = map[*mad.Attribute]announcement{}
	}
	d.answers[missing] = got
	return false, nil
}

// capabilityQuery returns the call that reads a from the device that c goes to.
func (c *Call) capabilityQuery(a *mad.Attribute) *Call {
	q := &Call{To: c.To, Guard: c.Guard, Timeout: c.Timeout, Retries: c.Retries}
	if a.Class != mad.ClassSubn {
		q.PutMAD(mad.Header{Class: a.Class, ClassVersion: a.Version, Method: mad.MethodGet, Attribute: a.ID}, nil)
		return q
	}
	modifier := uint32(0)
	if a == mad.AttrGeneralInfo {
		modifier = mad.GeneralInfoFormCapabilities
	}
	q.PutSMP(mad.MethodGet, a.ID, modifier, nil)
	q.SetPathOf(c)
	return q
}
