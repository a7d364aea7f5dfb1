package routes

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// Hop is a switch on a path. In and Out are ports: In is 0 if the path begins at the
// switch itself, Out if it ends there.
type Hop struct {
	Switch  int
	In, Out uint8
	VL      uint8 // on the link out
}

// Path is the path of packets from a terminal to a LID.
type Path struct {
	From int // terminal
	LID  mad.LID
	SL   uint8
	Hops []Hop
	// Steps are, where switches choose among ports, all switches that packets may pass, by the
	// number of links crossed before. Hops follow the static ports alone.
	Steps [][]Step
	// Broken is the reason why the packets do not arrive, and "" if they do,
	// whatever switches choose.
	Broken string

	routes *Routes
}

// Trace follows packets from LID src to LID dst. It is an error if no port has
// a LID, but not if packets do not arrive.
func (r *Routes) Trace(src, dst mad.LID) (*Path, error) {
	g := r.graph
	from, to := g.TerminalByLID(src), g.TerminalByLID(dst)
	for _, end := range []struct {
		lid      mad.LID
		terminal int
	}{{src, from}, {dst, to}} {
		if end.terminal < 0 {
			return nil, fmt.Errorf("trace: no port has LID %d; the highest is %d", end.lid, g.Top())
		}
	}
	t := &g.Terminals()[from]
	p := &Path{From: from, LID: dst, SL: r.SL.Of(from, dst), routes: r}
	if from == to {
		return p, nil
	}
	if t.Switch < 0 {
		p.Broken = t.Port.Label() + " is on no switch"
		return p, nil
	}
	at, in := int32(t.Switch), t.Out
	p.follow(at, in, int32(to), func(s int) uint8 { return r.Row(s).Port(dst) })
	if r.HasChoices() {
		var broken string
		if p.Steps, broken = r.steps(at, in, p.SL, dst, int32(to)); p.Steps != nil {
			p.Broken = broken
		}
	}
	return p, nil
}

// PathBy is a path of packets from a terminal on a switch to lid, by one port of each switch
// among the ports that it may choose.
func PathBy(r *Routes, terminal int, lid mad.LID, port func(s int) uint8) *Path {
	t := &r.graph.Terminals()[terminal]
	p := &Path{From: terminal, LID: lid, SL: r.SL.Of(terminal, lid), routes: r}
	p.follow(int32(t.Switch), t.Out, int32(r.graph.TerminalByLID(lid)), port)
	return p
}

// follow follows the ports that port returns from switch at on, which packets enter by port in.
func (p *Path) follow(at int32, in uint8, to int32, port func(s int) uint8) {
	r, dst := p.routes, p.LID
	g := r.graph
	for range len(g.Switches()) + 1 {
		out := port(int(at))
		h := Hop{Switch: int(at), In: in, Out: out, VL: r.SL2VL.VL(int(at), in, min(out, uint8(g.Switches()[at].NumPorts())), p.SL)}
		p.Hops = append(p.Hops, h)
		target := g.Target(at, out)
		switch {
		case target == graph.ToTerminal(to):
			return
		case target < 0:
			p.Broken = r.deadEnd(int(at), out, dst)
			return
		case h.VL == mad.DropVL && r.SL2VL != nil:
			p.Broken = fmt.Sprintf("%s drops SL %d from port %d to port %d", g.Switches()[at].Label(), p.SL, in, out)
			return
		}
		c := &g.Channels()[target]
		at, in = c.To, c.PeerPort
	}
	p.Broken = "loops"
}

// deadEnd is the reason why port out of switch s does not lead to lid.
func (r *Routes) deadEnd(s int, out uint8, lid mad.LID) string {
	n := r.graph.Switches()[s]
	switch target := r.graph.Target(int32(s), out); {
	case out == NoPort:
		return fmt.Sprintf("%s drops LID %d", n.Label(), lid)
	case int(out) > n.NumPorts():
		return fmt.Sprintf("%s sends LID %d to port %d, which does not exist", n.Label(), lid, out)
	case target.IsTerminal():
		return fmt.Sprintf("%s sends LID %d to %s, which has another LID", n.Label(), lid, r.graph.Terminals()[target.Terminal()].Port.Label())
	}
	return fmt.Sprintf("%s sends LID %d to port %d, which has no link", n.Label(), lid, out)
}

// Graph is the graph of the tables that p follows.
func (p *Path) Graph() *graph.Graph { return p.routes.graph }

// Ports are all ports on the path, in order.
func (p *Path) Ports() []*fabric.Port {
	g := p.routes.graph
	ports := []*fabric.Port{g.Terminals()[p.From].Port}
	for _, h := range p.Hops {
		n := g.Switches()[h.Switch]
		if in := n.Port(int(h.In)); in != ports[len(ports)-1] {
			ports = append(ports, in)
		}
		if out := n.Port(int(h.Out)); out != nil && h.Out > 0 {
			ports = append(ports, out)
		}
	}
	if t := g.TerminalByLID(p.LID); p.Broken == "" && g.Terminals()[t].Port != ports[len(ports)-1] && g.Terminals()[t].Out > 0 {
		ports = append(ports, g.Terminals()[t].Port)
	}
	return ports
}

// String has a line for each port, such as "leaf-1/3"; where switches choose, a line for
// switches with equal choices, such as "leaf-1/5-8  bounded; static port 8".
func (p *Path) String() string {
	var b strings.Builder
	switch g := p.routes.graph; {
	case p.Steps == nil:
		for _, port := range p.Ports() {
			b.WriteString(port.Name() + "\n")
		}
	default:
		b.WriteString(g.Terminals()[p.From].Port.Name() + "\n")
		for _, step := range p.Steps {
			b.WriteString(p.stepText(step))
		}
		if p.Broken == "" {
			b.WriteString(g.Terminals()[g.TerminalByLID(p.LID)].Port.Name() + "\n")
		}
	}
	if p.Broken != "" {
		b.WriteString(p.Broken + "\n")
	}
	return b.String()
}

// Step is a switch on a path where switches choose, and what it chooses from.
type Step struct {
	Switch int
	In     uint8 // one of the ports that packets come in by
	adaptive.Choice
}

// steps are the switches that packets from a switch may pass, by the number of links that they
// have crossed; nil where no switch on any path chooses. broken is the reason why some
// packets may not arrive; "": all do.
//
// Time: O(S*P) for each link of the longest path, P ports of a switch.
func (r *Routes) steps(at int32, in, sl uint8, lid mad.LID, to int32) (list [][]Step, broken string) {
	g := r.graph
	switches := ActiveSwitches(r)
	type visit struct {
		at int32
		in uint8
	}
	now, chosen, loops := []visit{{at, in}}, false, true
	seen, fresh := map[visit]bool{}, true // whether the step has a switch that no earlier one has
	for range len(g.Switches()) + 1 {
		var step []Step
		var next []visit
		met := map[visit]bool{}
		for _, v := range now {
			c := adaptive.Single(r.Entry(v.at, lid))
			if a := switches[v.at]; a != nil {
				c = a.Choose(adaptive.Packet{In: v.in, SL: sl, LID: lid}, Down(g, int(v.at)))
			}
			step = append(step, Step{Switch: int(v.at), In: v.in, Choice: c})
			chosen = chosen || c.Ports.Len() > 1 || c.Adaptive || c.Hashed
			if c.Ports.Empty() && broken == "" {
				broken = r.deadEnd(int(v.at), NoPort, lid)
			}
			for p := range c.Ports.All() {
				target := g.Target(v.at, p)
				switch {
				case target == graph.ToTerminal(to):
				case !target.IsChannel():
					if broken == "" {
						broken = r.deadEnd(int(v.at), p, lid)
					}
				case r.SL2VL != nil && r.SL2VL.VL(int(v.at), v.in, p, sl) == mad.DropVL:
					if broken == "" {
						broken = fmt.Sprintf("%s drops SL %d from port %d to port %d", g.Switches()[v.at].Label(), sl, v.in, p)
					}
				default:
					ch := &g.Channels()[target.Channel()]
					w := visit{ch.To, ch.PeerPort}
					key := w
					if a := switches[ch.To]; (a == nil || a.Private == nil) && r.SL2VL == nil {
						key.in = 0 // it does not matter
					}
					if !met[key] {
						met[key] = true
						next = append(next, w)
					}
				}
			}
		}
		if fresh {
			list = append(list, step)
		}
		if len(next) == 0 {
			loops = false
			break
		}
		now, fresh = next, false
		for v := range met {
			fresh = fresh || !seen[v]
			seen[v] = true
		}
	}
	if !chosen {
		return nil, ""
	}
	if loops && broken == "" {
		return list, "some packets may loop"
	}
	return list, broken
}

// stepNames is how many switches of a step the text names.
const stepNames = 4

// stepText describes a step: the switches with equal choices on a line each.
func (p *Path) stepText(step []Step) string {
	var b strings.Builder
	g := p.routes.graph
	var lines []string
	names := map[string][]string{}
	for i := range step {
		s := &step[i]
		name := g.Switches()[s.Switch].Name()
		if !s.Ports.Empty() {
			name += "/" + s.Ports.String()
		}
		line := s.text()
		if names[line] == nil {
			lines = append(lines, line)
		}
		if !slices.Contains(names[line], name) {
			names[line] = append(names[line], name)
		}
	}
	for _, line := range lines {
		list := names[line]
		b.WriteString(strings.Join(list[:min(len(list), stepNames)], ", "))
		if more := len(list) - stepNames; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// text is what a switch does: "bounded; static port 8".
func (s *Step) text() string {
	if !s.Adaptive && !s.Hashed && !s.Recovers {
		return "static"
	}
	text := s.State.String()
	if s.Direct && s.Port != NoPort {
		text += fmt.Sprintf("; static port %d", s.Port)
	}
	return text
}
