package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ViaSA makes a fabric of the records of the subnet administrator, where the nodes
// cannot be read: for want of their M_Keys, or of a queue pair 0. Of o, Names,
// PlainSpeeds and Progress count.
//
// It has no directed routes, nor what the administrator does not know or
// report: nodes without a LID, nodes in none of our partitions, M_Keys,
// vendors' own speeds, and in OpenSM's case all but the states of ports that
// are down. Where the transport cannot carry a table, records are asked for one
// by one, in a breadth-first search.
//
// A fabric is returned even where a part of the records is missing: its Problems
// name it. The error is for an administrator that has no node, and for the
// end of ctx; the fabric is then what is known so far, nil where nothing is.
func ViaSA(ctx context.Context, c *sa.Client, o Options) (*fabric.Fabric, error) {
	port, err := c.Engine.Port()
	if err != nil {
		return nil, err
	}
	r := &records{client: c, opt: o, nodes: map[mad.LID]*mad.NodeRecord{}, ports: map[end]*mad.PortInfo{}, switches: map[mad.LID]*mad.SwitchInfo{}}
	err = r.tables(ctx)
	if err == nil && r.cut {
		err = r.search(ctx, port.LID)
	}
	switch {
	case len(r.nodes) == 0:
		return nil, cmp.Or(err, r.nodesErr, errors.New("the subnet administrator has no nodes"))
	case err != nil:
		r.problem(fabric.ProblemCut, "the records are incomplete: %v; discover again", err)
		return r.known(&port), fmt.Errorf("reading the records ended after %s: %w", plural.Count(len(r.nodes), "port", "ports"), err)
	}
	return r.known(&port), nil
}

// known is the fabric, whose LMCs the engine gets.
func (r *records) known(port *engine.Port) *fabric.Fabric {
	f := r.fabric(port)
	r.client.Engine.KnowLMCs(f.LMCs())
	r.client.Engine.KnowNodes(f.NodeInfos())
	return f
}

// records are the subnet administrator's answers so far.
type records struct {
	client *sa.Client
	opt    Options

	nodes    map[mad.LID]*mad.NodeRecord // by the LID of the port that they are of
	ports    map[end]*mad.PortInfo
	switches map[mad.LID]*mad.SwitchInfo
	links    []mad.LinkRecord
	cut      bool  // a table did not come whole
	nodesErr error // of the table of NodeRecords
	problems []fabric.Problem
}

// end is a port as records name it: of a channel adapter the number is 0.
type end struct {
	lid mad.LID
	num uint8
}

func (r *records) problem(k fabric.ProblemKind, format string, args ...any) {
	r.problems = append(r.problems, fabric.Problem{Kind: k, Text: fmt.Sprintf(format, args...)})
}

// recordKinds are the records that make up a fabric.
var recordKinds = []*mad.Attribute{mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrSwitchInfoRecord, mad.AttrLinkRecord}

// tables reads all records, a table of each kind.
func (r *records) tables(ctx context.Context) error {
	requests := make([]sa.Request, len(recordKinds))
	for i, a := range recordKinds {
		requests[i] = sa.NewRequest(mad.MethodGetTable, a, nil)
		if a == mad.AttrPortInfoRecord {
			requests[i] = portInfoRequest(mad.MethodGetTable, mad.PortInfoRecord{})
		}
	}
	calls, err := r.client.Do(ctx, requests...)
	if err != nil {
		return err
	}
	for i, a := range recordKinds {
		err := r.take(a, calls[i])
		switch {
		case err == nil:
		case errors.Is(err, engine.ErrCut):
			r.cut = true
		default:
			if a == mad.AttrNodeRecord {
				r.nodesErr = err
			}
			r.problem(kindOf(err), "the %ss are unknown: %v; check the subnet manager", a.Name, err)
		}
	}
	return nil
}

// portInfoRequest asks for PortInfoRecords with the components named, and for
// the extended speeds: without Options 0x80 ports that have them are shown as
// QDR (opensm osm_sa_portinfo_record.c, pir_rcv_new_pir).
func portInfoRequest(m mad.Method, r mad.PortInfoRecord, components ...string) sa.Request {
	r.Options = 0x80
	return sa.NewRequest(m, mad.AttrPortInfoRecord, &r, append(components, "options")...)
}

func kindOf(err error) fabric.ProblemKind {
	if errors.Is(err, engine.ErrTimeout) {
		return fabric.ProblemTimedOut
	}
	return fabric.ProblemFailed
}

// take adds the records of an answer.
func (r *records) take(a *mad.Attribute, c *engine.Call) error {
	all, err := sa.Records(c, a)
	if err != nil {
		return err
	}
	for data := range all {
		switch a {
		case mad.AttrNodeRecord:
			rec := new(mad.NodeRecord)
			rec.Decode(data)
			r.nodes[rec.LID] = rec
		case mad.AttrPortInfoRecord:
			rec := new(mad.PortInfoRecord)
			rec.Decode(data)
			r.ports[end{rec.EndportLID, rec.PortNum}] = &rec.PortInfo
		case mad.AttrSwitchInfoRecord:
			var rec mad.SwitchInfoRecord
			rec.Decode(data)
			r.switches[rec.LID] = &rec.SwitchInfo
		case mad.AttrLinkRecord:
			var rec mad.LinkRecord
			rec.Decode(data)
			r.links = append(r.links, rec)
		}
	}
	if r.opt.Progress != nil {
		r.opt.Progress(len(r.nodes))
	}
	return nil
}

// search reads record by record, in a breadth-first search from one port. Each
// level is a batch of NodeRecords, and one of the records of their ports.
func (r *records) search(ctx context.Context, from mad.LID) error {
	failed := map[*mad.Attribute][]error{}
	ask := func(requests []sa.Request) error {
		calls, err := r.client.Do(ctx, requests...)
		if err != nil {
			return err
		}
		for i, c := range calls {
			a := requests[i].Attr
			if err := r.take(a, c); err != nil {
				failed[a] = append(failed[a], err)
			}
		}
		return nil
	}
	seen := map[mad.LID]bool{from: true}
	for level := []mad.LID{from}; len(level) > 0; {
		var requests []sa.Request
		for _, lid := range level {
			requests = append(requests, sa.NewRequest(mad.MethodGet, mad.AttrNodeRecord, &mad.NodeRecord{LID: lid}, "lid"))
		}
		if err := ask(requests); err != nil {
			return err
		}
		requests = nil
		for _, lid := range level {
			if n := r.nodes[lid]; n != nil {
				requests = append(requests, recordsOf(lid, &n.NodeInfo)...)
			}
		}
		links := len(r.links)
		if err := ask(requests); err != nil {
			return err
		}
		level = nil
		for _, l := range r.links[links:] {
			if !seen[l.ToLID] {
				seen[l.ToLID] = true
				level = append(level, l.ToLID)
			}
		}
	}
	for _, a := range recordKinds {
		if errs := failed[a]; len(errs) > 0 {
			r.problem(kindOf(errs[0]), "%s unknown: %v; check the subnet manager", plural.Count(len(errs), a.Name+" is", a.Name+"s are"), errs[0])
		}
	}
	return nil
}

// recordsOf asks for the records of the node at lid, of its ports and links.
func recordsOf(lid mad.LID, n *mad.NodeInfo) (requests []sa.Request) {
	first, last := n.LocalPortNum, n.LocalPortNum
	if n.NodeType == mad.NodeTypeSwitch {
		first, last = 0, n.NumPorts
		requests = append(requests, sa.NewRequest(mad.MethodGet, mad.AttrSwitchInfoRecord, &mad.SwitchInfoRecord{LID: lid}, "lid"))
	}
	for num := int(first); num <= int(last); num++ {
		port := mad.PortInfoRecord{EndportLID: lid, PortNum: uint8(num)}
		requests = append(requests, portInfoRequest(mad.MethodGet, port, "endport_lid", "port_num"))
		if num > 0 {
			link := mad.LinkRecord{FromLID: lid, FromPort: uint8(num)}
			requests = append(requests, sa.NewRequest(mad.MethodGet, mad.AttrLinkRecord, &link, "from_lid", "from_port"))
		}
	}
	return requests
}

// place is the port that has a LID: its node's handle in a Builder, its number.
type place struct{ node, port int }

// fabric makes a Fabric of the records.
func (r *records) fabric(local *engine.Port) *fabric.Fabric {
	b := fabric.NewBuilder()
	b.SetScope("by the records of the subnet administrator")
	places := r.addNodes(b, local)
	for at, info := range r.ports {
		if p, ok := places[at.lid]; ok && p.port > 0 {
			b.SetPort(p.node, p.port, info)
		} else if ok {
			b.SetPort(p.node, int(at.num), info)
		}
	}
	r.addLinks(b, places)
	r.report(b, places)
	for _, p := range r.problems {
		b.AddProblem(p)
	}
	return b.Build()
}

// addNodes makes a node of all records with one node GUID.
func (r *records) addNodes(b *fabric.Builder, local *engine.Port) map[mad.LID]place {
	places := map[mad.LID]place{}
	handles := map[mad.GUID]int{}
	for _, lid := range slices.Sorted(maps.Keys(r.nodes)) {
		rec := r.nodes[lid]
		info := rec.NodeInfo
		p := place{port: int(info.LocalPortNum)}
		if info.NodeType == mad.NodeTypeSwitch {
			p.port = 0
		}
		h, ok := handles[info.NodeGUID]
		if !ok {
			name := cmp.Or(r.opt.Names[info.NodeGUID], rec.NodeDescription.String())
			h = b.AddNode(fabric.NodeSpec{Info: info, Name: name, Switch: r.switches[lid]})
			handles[info.NodeGUID] = h
		}
		b.SetPortGUID(h, p.port, info.PortGUID)
		p.node = h
		places[lid] = p
		if info.PortGUID == local.PortGUID {
			b.SetFrom(h, p.port)
		}
	}
	return places
}

// addLinks adds the links of LinkRecords, which contain a link once or twice.
func (r *records) addLinks(b *fabric.Builder, places map[mad.LID]place) {
	for _, l := range r.links {
		from, ok := places[l.FromLID]
		to, also := places[l.ToLID]
		if !ok || !also {
			r.problem(fabric.ProblemInvalid, "a LinkRecord leads from port %d of LID %d to port %d of LID %d, but one of them has no NodeRecord; discover again", l.FromPort, l.FromLID, l.ToPort, l.ToLID)
			continue
		}
		from.port, to.port = int(l.FromPort), int(l.ToPort)
		if err := b.Link(from.node, from.port, to.node, to.port); err != nil {
			r.problem(fabric.ProblemChanged, "%v; discover again", err)
		}
	}
}

// report makes problems of what the records leave open.
func (r *records) report(b *fabric.Builder, places map[mad.LID]place) {
	qdr := 0
	for _, lid := range slices.Sorted(maps.Keys(places)) {
		at := places[lid]
		node := r.nodes[lid].NodeInfo
		first, last := at.port, at.port
		if node.NodeType == mad.NodeTypeSwitch {
			first, last = 0, int(node.NumPorts)
		}
		caps, _, _ := b.Port(at.node, first)
		var unknown, open []string
		for num := first; num <= last; num++ {
			info, linked, ok := b.Port(at.node, num)
			switch {
			case !ok:
				continue
			case info == nil:
				unknown = append(unknown, fmt.Sprint(num))
			case num > 0 && info.PortPhysicalState == mad.PortPhysicalStateLinkUp && !linked:
				open = append(open, fmt.Sprint(num))
			}
			if info != nil && caps != nil && linked && node.HasExtPortInfo() && fabric.ActiveSpeed(caps, info) == "qdr" {
				qdr++
			}
		}
		if len(unknown) > 0 && len(r.ports) > 0 {
			r.problem(fabric.ProblemFailed, "no PortInfoRecord of %s of %s; check the subnet manager", portWords(unknown), b.Label(at.node))
		}
		if len(open) > 0 && len(r.links) > 0 {
			r.problem(fabric.ProblemFailed, "%s of %s: the node at the other end is unknown: no LinkRecord although the link is up; check that node", portWords(open), b.Label(at.node))
		}
	}
	if qdr > 0 && !r.opt.PlainSpeeds {
		r.problem(fabric.ProblemLeftOut, "%s QDR may run FDR10, which records do not show", plural.Count(qdr, "port that shows", "ports that show"))
	}
}

func portWords(nums []string) string {
	if len(nums) == 1 {
		return "port " + nums[0]
	}
	return "ports " + strings.Join(nums, ", ")
}
