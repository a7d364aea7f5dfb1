package discover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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
