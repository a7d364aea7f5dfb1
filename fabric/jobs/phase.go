package jobs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// PhaseLoad is the load of links in a phase, per capacity as in graph.Capacity.
type PhaseLoad struct {
	Part      float64 // of the time, as in Phase; of jobs with different phases, the largest
	Load      float64 // the largest of a channel
	At        int     // a channel with it, or -1
	Hosts     float64 // the largest at a port of a host or I/O node, in one direction
	Bandwidth float64 // the mean, over flows, of 1 over the largest load on the path with its ends, which is at least 1
	Lost      int64   // flows that do not arrive
}

// PhasedLoad is the load of jobs that run their phases in step: job after job begins phase 1 again when it
// has ended its last one.
type PhasedLoad struct {
	Phases []PhaseLoad
	Ports  int // of hosts of the jobs
	Worst  int // the first phase with the largest load, or -1
	// Flows are the flows of the worst phase.
	Flows []traffic.Flow
	// Slowdown is how many times longer all phases take than on links that no flows share, if links are
	// shared fairly.
	Slowdown float64
	// Collisions are the channels with a load above 1 in the worst phase, the largest first.
	Collisions []Collision
}

// Collision is a channel that several flows overload.
type Collision struct {
	Channel int32
	Load    float64
	Flows   []JobFlow // the largest first
}

// JobFlow is a flow of a job.
type JobFlow struct {
	Job int
	traffic.Flow
}

// MeasurePhases measures the load of each phase of jobs, by static ports. group is the number of hosts of a
// group of experts; 0: GroupSize.
//
// Time: O(P) for each flow, P links a path.
func MeasurePhases(ctx context.Context, r *routes.Routes, list []Job, pattern string, group int) (*PhasedLoad, error) {
	g := r.Graph()
	p, err := patternNamed(pattern)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("no jobs")
	}
	x := newPlacement(g, group)
	ports, all, most, flows := portsOf(g), make([][]Phase, len(list)), 0, 0
	t := &PhasedLoad{Worst: -1, Slowdown: 1}
	for i := range list {
		var j JobTraffic
		x.lids = j.findHosts(ports, list[i].Hosts)
		t.Ports += j.Ports
		if all[i], err = p.phasesOf(x, maxFlows-flows); err != nil {
			return nil, err
		}
		for _, phase := range all[i] {
			if flows += len(phase.Flows); flows > maxFlows {
				return nil, tooManyFlows(maxFlows)
			}
		}
		most = max(most, len(all[i]))
	}
	parts, time := 0.0, 0.0
	var worst []JobFlow
	for k := range most {
		one, list := PhaseLoad{At: -1}, []JobFlow(nil)
		var flows []traffic.Flow
		for i, phases := range all {
			if len(phases) == 0 {
				continue
			}
			phase := phases[k%len(phases)]
			one.Part = max(one.Part, phase.Part)
			for _, f := range phase.Flows {
				list, flows = append(list, JobFlow{i, f}), append(flows, f)
			}
		}
		m, err := traffic.MeasureFlows(ctx, r, flows)
		if err != nil {
			return nil, err
		}
		one.Load, one.At, one.Lost = m.MaxLoad, m.At, m.Lost
		one.Hosts, one.Bandwidth = x.ends(r, flows, m.Traffic)
		t.Phases = append(t.Phases, one)
		parts += one.Part
		time += one.Part * max(1, one.Load, one.Hosts)
		if t.Worst < 0 && len(flows) > 0 || t.Worst >= 0 && one.Load > t.Phases[t.Worst].Load {
			t.Worst, t.Flows, worst = k, flows, list
		}
	}
	if parts > 0 {
		t.Slowdown = time / parts
	}
	t.Collisions = collisions(r, worst)
	return t, nil
}

// ends returns the largest load of a port of a terminal in one direction, and the effective bandwidth of flows, by
// the traffic on channels.
func (x *placement) ends(r *routes.Routes, flows []traffic.Flow, on []float64) (most, bandwidth float64) {
	capacity := x.g.Capacity()
	loads := [2]map[mad.LID]float64{{}, {}} // out, in
	for _, f := range flows {
		loads[0][f.From] += f.Traffic * capacity.End(int32(x.g.TerminalByLID(f.From)))
		loads[1][f.To] += f.Traffic * capacity.End(int32(x.g.TerminalByLID(f.To)))
	}
	for _, of := range loads {
		for _, load := range of {
			most = max(most, load)
		}
	}
	var path []int32
	for _, f := range flows {
		worst := max(1, loads[0][f.From], loads[1][f.To])
		path = traffic.Channels(r, f, path[:0])
		for _, c := range path {
			worst = max(worst, capacity.Load(c, on[c]))
		}
		if len(path) > 0 || x.g.Terminals()[x.g.TerminalByLID(f.From)].Switch == x.g.Terminals()[x.g.TerminalByLID(f.To)].Switch {
			bandwidth += 1 / worst
		}
	}
	return most, bandwidth / float64(max(1, len(flows)))
}

// tolerance is the error of sums of parts.
const tolerance = 1e-9

// collisions finds the flows on channels with a load above 1.
func collisions(r *routes.Routes, flows []JobFlow) (list []Collision) {
	g := r.Graph()
	load := make([]float64, len(g.Channels()))
	on := make([][]int32, len(load))
	var path []int32
	for i, f := range flows {
		path = traffic.Channels(r, f.Flow, path[:0])
		for _, c := range path {
			load[c] += f.Traffic
			on[c] = append(on[c], int32(i))
		}
	}
	for c, sum := range load {
		load := g.Capacity().Load(int32(c), sum)
		if load <= 1+tolerance || len(on[c]) < 2 {
			continue
		}
		x := Collision{Channel: int32(c), Load: load}
		for _, i := range on[c] {
			x.Flows = append(x.Flows, flows[i])
		}
		slices.SortStableFunc(x.Flows, func(a, b JobFlow) int { return cmp.Compare(b.Traffic, a.Traffic) })
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b Collision) int { return cmp.Compare(b.Load, a.Load) })
	return list
}
