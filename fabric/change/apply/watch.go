package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// watchEvery is how often a change that waits for confirmation is checked.
const watchEvery = 2 * time.Second

// Waiting checks the fabric while the change waits to be confirmed: like Between, without
// the counters, which rise with load in the hours that this may take.
func (c *Checks) Waiting(ctx context.Context, cells []*Cell) error {
	return c.state(ctx, nodesOf(cells))
}

// Ports are ports of a node.
type Ports struct {
	Node  mad.GUID `json:"node"`
	Name  string   `json:"name"` // of the node, for people
	Ports []int    `json:"ports"`
}

// linksOf returns the ports with an active link of the switches that cells write, except
// those whose state the change writes.
func linksOf(f *fabric.Fabric, cells []*Cell) (links []Ports) {
	planned := map[*fabric.Port]bool{}
	for _, c := range cells {
		c.ports(f, planned)
	}
	for _, guid := range nodesOf(cells) {
		for _, n := range f.NodeByGUID(guid) {
			at := Ports{Node: guid, Name: n.Label()}
			for p := range n.Ports() {
				if p.Peer() != nil && p.Num() > 0 && !planned[p] && p.Info() != nil && p.Info().PortState == mad.PortStateActive {
					at.Ports = append(at.Ports, p.Num())
				}
			}
			if n.IsSwitch() && at.Ports != nil {
				links = append(links, at)
			}
		}
	}
	return links
}

// nodesOf returns the nodes that cells write, each once.
func nodesOf(cells []*Cell) (nodes []mad.GUID) {
	seen := map[mad.GUID]bool{}
	for _, c := range cells {
		if !seen[c.Node] {
			seen[c.Node] = true
			nodes = append(nodes, c.Node)
		}
	}
	return nodes
}

// checkLinks returns a *CheckError if ports that were active before the change are no
// longer active, or another subnet manager is in charge.
func (r *Run) checkLinks(ctx context.Context, b *Begin) error {
	checks := Checks{client: r.Host.SA, f: new(fabric.Fabric), manager: b.manager()}
	if err := checks.Manager(ctx); err != nil {
		return err
	}
	cells := map[mad.GUID]*Cell{}
	for _, c := range b.Cells {
		cells[c.Node] = c
	}
	var all []exchange
	at := newAccess(r.Host.Engine, nil)
	for _, link := range b.Links {
		cell := cells[link.Node]
		if cell == nil {
			return errors.New("the journal has links of a switch that the change does not write")
		}
		for _, port := range link.Ports {
			at.cells = append(at.cells, &Cell{Node: link.Node, Name: fmt.Sprintf("%s port %d", link.Name, port), Routes: cell.Routes, LID: cell.LID, PortGUID: cell.PortGUID, Attr: mad.AttrPortInfo, Modifier: uint32(port)})
			all = append(all, exchange{cell: len(all)})
		}
	}
	if err := at.do(ctx, mad.MethodGet, nil, all); err != nil {
		return err
	}
	var lost []string
	for i := range all {
		name := at.cells[i].Name
		if err := all[i].err; err != nil {
			lost = append(lost, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		var info mad.PortInfo
		if info.Decode(all[i].data); info.PortState != mad.PortStateActive {
			lost = append(lost, fmt.Sprintf("%s is %v", name, info.PortState))
		}
	}
	if lost == nil {
		return nil
	}
	return &CheckError{fmt.Sprintf("%s active before the change, and not now: %s", plural.Count(len(lost), "port was", "ports were"), firstOf(5, lost))}
}
