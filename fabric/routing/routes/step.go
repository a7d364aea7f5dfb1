package routes

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

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
