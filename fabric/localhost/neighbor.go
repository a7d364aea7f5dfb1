package localhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/umad"
)

// peer is the port at the other end of a cable.
type peer struct {
	known bool
	info  mad.NodeInfo // LocalPortNum is the port
	name  string
}

// errNoUmad is why no SMP was sent.
var errNoUmad = errors.New("ib_umad does not serve the port")

// neighbor reads the name of the neighbour of p: two SMPs that travel one hop. unserved is
// why the kernel serves no port at all, or nil. asked is set if they were sent.
func (o *ReadOptions) neighbor(ctx context.Context, p umad.HostPort, unserved error) (end peer, asked bool, err error) {
	switch {
	case p.Link != "infiniband", p.PhysicalState != mad.PortPhysicalStateLinkUp, p.Role == "gsi", p.Num == 0:
		return end, false, nil
	case p.Umad == "" && o.Open == nil:
		return end, false, cmp.Or(unserved, errNoUmad)
	}
	open := o.Open
	if open == nil {
		open = func(p umad.HostPort) (engine.Transport, error) { return umad.OpenPort(o.FS, p) }
	}
	t, err := open(p)
	if err != nil {
		return end, false, err
	}
	e := engine.New(t, engine.Options{Timeout: cmp.Or(o.Timeout, defaultTimeout), Retries: o.Retries})
	defer e.Close()
	var info, name engine.Call
	for _, c := range []struct {
		call *engine.Call
		attr *mad.Attribute
	}{{&info, mad.AttrNodeInfo}, {&name, mad.AttrNodeDescription}} {
		c.call.PutSMP(mad.MethodGet, c.attr.ID, 0, nil)
		c.call.SetRoute(mad.DirectedRoute{0, p.Num})
	}
	if err := e.Do(ctx, &info, &name); err != nil {
		return end, true, err
	}
	if err := cmp.Or(info.Err, name.Err); err != nil {
		return end, true, err
	}
	end.info.Decode(info.Data())
	if end.info.LocalPortNum == 0 || end.info.LocalPortNum > end.info.NumPorts || end.info.NodeGUID == 0 || end.info.NumPorts == 255 {
		return peer{}, true, fmt.Errorf("the neighbour sent an invalid NodeInfo: GUID %v, port %d of %d", end.info.NodeGUID, end.info.LocalPortNum, end.info.NumPorts)
	}
	var text mad.NodeDescription
	text.Decode(name.Data())
	end.name, end.known = text.String(), true
	return end, true, nil
}
