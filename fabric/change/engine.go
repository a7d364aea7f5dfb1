package change

import (
	"context"
	"fmt"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
)

// resembles is the share of entries in which the tables of an engine must agree with
// those in force, for the subnet manager to be assumed to use it.
const resembles = 0.95

// fewSteps is the product of LIDs and channels up to which all engines are compared: beyond,
// as in a tree of 1,728 hosts, all take more than 10 s, and those of quick under 1 s.
const fewSteps = 1 << 22

// quick are the engines that are compared on networks of any size.
func quick(name string) bool { return name == "minhop" || name == "updn" || name == "ftree" }

// recognise finds the engine whose tables for the network agree with those in force in
// the most entries.
func (p *Predictor) recognise(ctx context.Context) error {
	g := p.routes.Graph()
	large := len(g.Dests())*len(g.Channels()) > fewSteps
	best, engineName := 0.0, ""
	for _, e := range engines.All() {
		if e.Name == routes.FromFile || large && !quick(e.Name) {
			continue
		}
		r, err := engines.Compute(ctx, g, e.Name, engines.Options{})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var share float64
		if err == nil {
			share = agreement(p.routes, r)
		}
		if share <= best {
			continue
		}
		if share >= resembles && !p.loop { // else it is another one with the same paths, and lanes
			v, err := verify.Tables(ctx, r, verify.Options{})
			if err != nil {
				return err
			}
			if !v.Acyclic {
				continue
			}
		}
		if best, engineName = share, e.Name; share == 1 {
			break
		}
	}
	switch {
	case best == 1:
		p.engine, p.basis = engineName, fmt.Sprintf("by %s, whose tables are those in force", engineName)
	case best >= resembles:
		p.engine, p.basis = engineName, fmt.Sprintf("by %s, which agrees with the tables in force in %.0f %% of the entries", engineName, 100*best)
	default:
		p.basis = fmt.Sprintf("by a repair of the tables in force, which resemble those of no engine (at most %.0f %% of the entries agree)", 100*best)
	}
	return nil
}

// agreement is the share of the entries to CAs and routers in which tables of one graph
// agree.
func agreement(a, b *routes.Routes) float64 {
	g := a.Graph()
	same, all := 0, 0
	for s := range g.Switches() {
		for _, d := range g.Dests() {
			if d.Out == 0 { // a switch: engines differ there
				continue
			}
			if all++; a.Entry(int32(s), d.LID) == b.Entry(int32(s), d.LID) {
				same++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(same) / float64(all)
}
