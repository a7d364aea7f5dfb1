package sim

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// hostRoutes are the ports through which each switch of a plane forwards to each host, by
// the names of both; the plane has the names of the fabric without planes.
func (r *rig) hostRoutes(plane int) map[string]int {
	routes := map[string]int{}
	r.state.EnsureTables()
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		name, in := n.Name(), 1
		if !n.IsSwitch {
			continue
		}
		if plane > 0 {
			var base string
			if fmt.Sscanf(name, "%s plane-%d", &base, &in); in != plane {
				continue
			}
			name = base
		}
		for _, host := range r.OfType(mad.NodeTypeCA) {
			if host.Kind() == fabric.KindHost {
				lid := r.state.Nodes[host.ID()].Ports[max(plane, 1)].LID
				routes[name+" to "+host.Name()] = int(n.LFT[lid])
			}
		}
	}
	return routes
}

// TestPlanes: each plane has the routes of the fabric without planes, aggregation nodes do
// not change them, every port of every plane reaches every other, and a packet leaves its
// plane at the first switch.
func TestPlanes(t *testing.T) {
	const spec = "fattree:k=4,levels=3"
	want := newRig(t, spec).hostRoutes(0)
	if got := newRig(t, spec+",aggregation=yes").hostRoutes(0); !cmp.Equal(want, got) {
		t.Errorf("with aggregation nodes (-want +got)\n%s", cmp.Diff(want, got))
	}
	r := newRig(t, spec+",planes=2,aggregation=yes,generation=xdr")
	for plane := 1; plane <= 2; plane++ {
		if got := r.hostRoutes(plane); !cmp.Equal(want, got) {
			t.Errorf("plane %d (-want +got)\n%s", plane, cmp.Diff(want, got))
		}
	}
	var ends []*state.Port
	for p := range state.EndPorts(r.state.LIDs) {
		ends = append(ends, p)
	}
	if want := 2*20 + 2*16 + 2*20; len(ends) != want { // switches, ports of hosts, aggregation nodes
		t.Errorf("%d LIDs, want %d", len(ends), want)
	}
	for _, from := range ends {
		for _, to := range ends {
			if in := state.ForwardLID(from, to.LID, false); (in == nil || in.EndPort() != to) && (from.Node.IsSwitch || from.Node != to.Node) {
				t.Fatalf("from port %d of %s to port %d of %s: %v", from.Num, from.Node.Label, to.Num, to.Node.Label, in)
			}
			at, hops := from, 0
			for at.Node != to.Node {
				out, _ := at.NextHop(to.LID, at == from)
				if out.FNM && (hops > 1 || hops == 1 && from.Node.IsSwitch) {
					t.Fatalf("from %s to %s: crosses to another plane after %d hops", from.Node.Label, to.Node.Label, hops)
				}
				at, hops = out.Peer, hops+1
			}
		}
	}
}

// TestPlanesHaveRates: links show the width and speed of their generation.
func TestPlanesHaveRates(t *testing.T) {
	for spec, want := range map[string]string{
		"speed=xdr":                     "4x xdr",
		"generation=xdr,planes=4":       "1x xdr",
		"generation=ndr,split=yes":      "2x ndr",
		"generation=hdr":                "4x hdr",
		"planes=2":                      "2x hdr",
		"generation=ndr,speed=edr":      "4x edr",
		"generation=xdr,width=1x":       "1x xdr",
		"aggregation=yes,planes=4":      "1x hdr",
		"generation=ndr,remove_links=1": "4x ndr",
	} {
		r := newRig(t, "fattree:k=4,"+spec)
		f := r.discover(engine.Options{})
		p := f.OfType(mad.NodeTypeCA)[0].Port(1)
		if got := p.Width() + " " + p.Speed(); got != want || p.BestSpeed() != p.Speed() || p.BestWidth() != p.Width() {
			t.Errorf("%s: %s, best %s %s, want %s", spec, got, p.BestWidth(), p.BestSpeed(), want)
		}
	}
}
