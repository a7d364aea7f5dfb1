package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ReadExtended reads what NVIDIA's devices have beyond a sweep: ExtendedPortInfo of ports with
// a link, virtual ports, AdaptiveRoutingInfo of switches, and the tables of routers. The
// engine asks each device once what it announces, and requests only that; the result has these
// answers too, so that a file has what a device does not announce.
//
// GUIDs and LIDs of virtual ports are in VPortInfo, which ReadVPorts reads. The result has the
// other answers of f too. What a file does not have is left out. The error is the end of ctx.
func ReadExtended(ctx context.Context, e *engine.Engine, f *fabric.Fabric) (fabric.Reading, error) {
	r := &extendedReader{f: f, batch: batch{ctx: ctx, e: e}}
	e.KnowNodes(f.NodeInfos())
	if err := r.ports(); err != nil {
		return fabric.Reading{}, err
	}
	for i := range f.OfType(mad.NodeTypeSwitch) {
		if err := r.get(f.OfType(mad.NodeTypeSwitch)[i].Port(0), mad.AttrAdaptiveRoutingInfo, 0, nil); err != nil {
			return fabric.Reading{}, err
		}
	}
	if err := r.routers(); err != nil {
		return fabric.Reading{}, err
	}
	for i := range f.Nodes() {
		a := fabric.Answer{Node: int32(i), Port: fabric.NoPort, Class: mad.ClassSubn, ID: mad.AttrGeneralInfo.ID, Modifier: mad.GeneralInfoFormCapabilities, Data: e.GeneralInfo(f.Nodes()[i].GUID())}
		known := slices.ContainsFunc(f.AnswersOf(i), func(b fabric.Answer) bool { return b.Class == a.Class && b.ID == a.ID })
		if a.Data != nil && !known {
			r.Answers = append(r.Answers, a)
		}
	}
	return r.with(extendedAttributes), nil
}

// VPort is a virtual port whose VPortInfo is to be read. No public source has the modifier.
type VPort struct {
	Port     *fabric.Port
	Modifier uint32
}

// ReadVPorts reads VPortInfo of virtual ports. Its result is like that of ReadExtended.
func ReadVPorts(ctx context.Context, e *engine.Engine, f *fabric.Fabric, list []VPort) (fabric.Reading, error) {
	r := &extendedReader{f: f, batch: batch{ctx: ctx, e: e}}
	for _, v := range list {
		if err := r.get(v.Port, mad.AttrVPortInfo, v.Modifier, nil); err != nil {
			return fabric.Reading{}, err
		}
	}
	err := r.done()
	return r.with([]*mad.Attribute{mad.AttrVPortInfo}), err
}

type extendedReader struct {
	fabric.Reading
	batch
	f      *fabric.Fabric
	errors []*extendedError // by request
}

type extendedError struct {
	err  error
	name string
}

// with returns what was read, and the answers of the fabric to all other attributes.
func (r *extendedReader) with(read []*mad.Attribute) fabric.Reading {
	for _, a := range r.f.Answers() {
		if a.Class != mad.ClassSubn || !slices.ContainsFunc(read, func(x *mad.Attribute) bool { return x.ID == a.ID }) {
			r.Answers = append(r.Answers, a)
		}
	}
	r.CountersRead = r.f.CountersRead()
	return r.Reading
}

var extendedAttributes = []*mad.Attribute{
	mad.AttrExtendedPortInfo, mad.AttrVirtualizationInfo, mad.AttrVPortState, mad.AttrAdaptiveRoutingInfo,
	mad.AttrRouterInfo, mad.AttrNextHopTable, mad.AttrAdjSiteLocalSubnetsTable, mad.AttrAdjSubnetsRouterLIDInfo,
}

// get requests an attribute of a node through p, whose answer it is.
func (r *extendedReader) get(p *fabric.Port, attr *mad.Attribute, modifier uint32, take func(data []byte)) error {
	n := p.Node()
	if p.Route() == nil && p.LID() == 0 {
		return nil
	}
	failed := &extendedError{name: fmt.Sprintf("%s of %s", attr.Name, n.Label())}
	r.errors = append(r.errors, failed)
	a := fabric.Answer{Node: int32(n.ID()), Port: int16(p.Num()), Class: mad.ClassSubn, ID: attr.ID, Modifier: modifier}
	return r.add(fabric.Dest{Route: p.Route(), LID: p.LID(), Guard: p.Guard()}, &failed.err, mad.MethodGet, attr, modifier, nil, func(c *engine.Call) {
		a.Data = slices.Clone(c.Data()[:attr.Size])
		r.Answers = append(r.Answers, a)
		if take != nil {
			take(a.Data)
		}
	})
}

// done waits for the requests, and notes those without an answer.
func (r *extendedReader) done() error {
	if err := r.flush(); err != nil {
		return err
	}
	for _, x := range r.errors {
		var e *engine.Error
		switch {
		case x.err == nil, errors.Is(x.err, engine.ErrUnsupported), errors.Is(x.err, ErrNotInFile), errors.As(x.err, &e) && e.Err == nil:
		case errors.Is(x.err, engine.ErrTimeout):
			r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemTimedOut, Text: fmt.Sprintf("%s is unknown: %v", x.name, x.err)})
		default:
			r.Problems = append(r.Problems, fabric.Problem{Kind: fabric.ProblemFailed, Text: fmt.Sprintf("%s is unknown: %v", x.name, x.err)})
		}
	}
	r.errors = r.errors[:0]
	return nil
}

// ports reads ExtendedPortInfo and virtual ports.
func (r *extendedReader) ports() error {
	type virtual struct {
		p    *fabric.Port
		info mad.VirtualizationInfo
	}
	var virtuals []virtual
	for i := range r.f.Ports() {
		p := &r.f.Ports()[i]
		if p.Num() == 0 || p.Peer() == nil {
			continue
		}
		if err := r.get(p, mad.AttrExtendedPortInfo, uint32(p.Num()), nil); err != nil {
			return err
		}
		if p.Node().Type() != mad.NodeTypeCA {
			continue
		}
		err := r.get(p, mad.AttrVirtualizationInfo, uint32(p.Num()), func(data []byte) {
			v := virtual{p: p}
			if v.info.Decode(data); v.info.VirtualizationEnable {
				virtuals = append(virtuals, v)
			}
		})
		if err != nil {
			return err
		}
	}
	if err := r.done(); err != nil {
		return err
	}
	for _, v := range virtuals {
		const block = len(mad.VPortState{}.State)
		for b := range int(v.info.VPortIndexTop)/block + 1 {
			if err := r.get(v.p, mad.AttrVPortState, uint32(b), nil); err != nil {
				return err
			}
		}
	}
	return r.done()
}

// routers reads the tables of routers.
func (r *extendedReader) routers() error {
	type router struct {
		p    *fabric.Port
		info mad.RouterInfo
	}
	var routers []router
	for i := range r.f.OfType(mad.NodeTypeRouter) {
		n := &r.f.OfType(mad.NodeTypeRouter)[i]
		for p := range n.Ports() {
			if p.Peer() == nil {
				continue
			}
			if err := r.get(p, mad.AttrRouterInfo, 0, func(data []byte) {
				x := router{p: p}
				x.info.Decode(data)
				routers = append(routers, x)
			}); err != nil {
				return err
			}
			break
		}
	}
	if err := r.done(); err != nil {
		return err
	}
	for _, x := range routers {
		for _, t := range []struct {
			attr    *mad.Attribute
			entries int
		}{
			{mad.AttrNextHopTable, int(min(x.info.NextHopTop, maxNextHops))},
			{mad.AttrAdjSiteLocalSubnetsTable, int(x.info.AdjSubnetsTop)},
			{mad.AttrAdjSubnetsRouterLIDInfo, int(x.info.AdjLIDInfoTop)},
		} {
			for b := range fabric.RouterBlocks(t.attr, t.entries) {
				if err := r.get(x.p, t.attr, uint32(b), nil); err != nil {
					return err
				}
			}
		}
	}
	return r.done()
}

// maxNextHops limits the entries of NextHopTable that are read: as many subnets as a prefix
// can distinguish by its last 16 bits.
const maxNextHops = 1 << 16
