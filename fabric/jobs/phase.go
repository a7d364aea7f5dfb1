package jobs

import (
	"cmp"
	"context"
	"slices"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/traffic"
	"fabsh/mad"
)

// PhaseLoad is the load of links in a phase, per capacity as in graph.Capacity.
type PhaseLoad struct {
	Part      float64 // of the time, as in Phase; of jobs with different phases, of the longest
	Load      float64 // the largest of a channel
	At        int     // a channel with it, or -1
	Hosts     float64 // the largest at a port of a host or I/O node, in one direction
	Bandwidth float64 // the mean, over flows, of the load of the slower of its own ports over the largest on its path; 0 for a lost one
	Lost      int64   // flows that do not arrive
}

// PhasedLoad is the load of jobs that run their phases in step: job after job begins phase 1 again when it
// has ended its last one.
type PhasedLoad struct {
	Phases  []PhaseLoad
	Ports   int      // of hosts of the jobs
	Missing []string // hosts that are not in the fabric, of all jobs
	Worst   int      // the first phase with the largest load, or -1
	// Flows are the flows of the worst phase.
	Flows []traffic.Flow
	// Slowdown is how many times longer all phases of a job take than with only the ports of its hosts, if
	// links are shared fairly; of the job with the largest. Lost flows take no time.
	Slowdown float64
	// Collisions are the channels with a load above 1 in the worst phase, the largest first.
	Collisions []Collision
}

// Collision is a channel that flows overload; one flow alone, if it is slower than their ports.
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
	x := newPlacement(g, group)
	ports, all, most, flows := portsOf(g), make([][]Phase, len(list)), 0, 0
	t := &PhasedLoad{Worst: -1, Slowdown: 1}
	for i := range list {
		var j JobTraffic
		x.lids = j.findHosts(ports, list[i].Hosts)
		t.Ports, t.Missing = t.Ports+j.Ports, append(t.Missing, j.Missing...)
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
	parts := 0.0
	time, alone := make([]float64, len(all)), make([]float64, len(all)) // by job
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
		slowest, own := make([]float64, len(all)), make([]float64, len(all))
		one.Hosts = x.shares(r, flows, m.Traffic, func(i int, least, load float64) {
			job := list[i].Job
			slowest[job], own[job] = max(slowest[job], load), max(own[job], least)
			one.Bandwidth += least / load
		})
		one.Bandwidth /= float64(max(1, len(flows)))
		for i, phases := range all {
			if len(phases) > 0 {
				part := phases[k%len(phases)].Part
				time[i] += part * cmp.Or(slowest[i], 1)
				alone[i] += part * cmp.Or(own[i], 1)
			}
		}
		t.Phases = append(t.Phases, one)
		parts += one.Part
		if t.Worst < 0 && len(flows) > 0 || t.Worst >= 0 && one.Load > t.Phases[t.Worst].Load {
			t.Worst, t.Flows, worst = k, flows, list
		}
	}
	if parts > 1+tolerance {
		for i := range t.Phases {
			t.Phases[i].Part /= parts
		}
	}
	for i := range all {
		if alone[i] > 0 {
			t.Slowdown = max(t.Slowdown, time[i]/alone[i])
		}
	}
	t.Collisions = collisions(r, worst)
	return t, nil
}

// shares calls each for each flow that arrives: least is the load of the slower of its two ports with traffic 1, and
// load the largest on its way with these ports, by the traffic on channels. It returns the largest load of a port of
// a host or I/O node in one direction. Ports of aggregation nodes do not count: a switch adds up what comes in.
func (x *placement) shares(r *routes.Routes, flows []traffic.Flow, on []float64, each func(i int, least, load float64)) (most float64) {
	capacity := x.g.Capacity()
	loads := [2]map[mad.LID]float64{{}, {}} // out, in
	for _, f := range flows {
		for k, lid := range [2]mad.LID{f.From, f.To} {
			if t := x.g.TerminalByLID(lid); x.g.Terminals()[t].Class&graph.ClassAN == 0 {
				loads[k][lid] += f.Traffic * capacity.End(int32(t))
				most = max(most, loads[k][lid])
			}
		}
	}
	var path []int32
	for i, f := range flows {
		least := max(capacity.End(int32(x.g.TerminalByLID(f.From))), capacity.End(int32(x.g.TerminalByLID(f.To))))
		load := max(least, loads[0][f.From], loads[1][f.To])
		var arrives bool
		if path, arrives = traffic.Channels(r, f, path[:0]); !arrives {
			continue
		}
		for _, c := range path {
			load = max(load, capacity.Load(c, on[c]))
		}
		each(i, least, load)
	}
	return most
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
		path, _ = traffic.Channels(r, f.Flow, path[:0])
		for _, c := range path {
			load[c] += f.Traffic
			on[c] = append(on[c], int32(i))
		}
	}
	for c, sum := range load {
		load := g.Capacity().Load(int32(c), sum)
		if load <= 1+tolerance {
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
