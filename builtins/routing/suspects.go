package routing

import (
	"context"
	"fmt"
	"reflect"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/suspect"
)

// LoadMeasurements is load_measurements(): benchmarks of pairs.
var LoadMeasurements = lang.Builtin{
	Name:    "load_measurements",
	Returns: "list of measurement",
	Group:   topology.GroupFabric,
	Params:  []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "a table with a header and the columns from, to and gbps; or the output of nccl-tests, perftest (ib_write_bw ...), OSU, mpiGraph, hp2p (HTML) or SuperBench (metrics of ib-traffic)"}},
	Doc: `Reads benchmarks of pairs or groups of hosts from a file: a list of measurement.
The column of values is gbps, Gb/s, GB/s, MB/s, MiB/s, busbw (GB/s), or us for times; an empty field is a pair that is not measured yet. Ends are names of hosts or adapters, GUIDs or LIDs, and from sends. Other columns, if any: hosts (a group, in Slurm's notation, instead of from and to), pattern (ring or all-to-all, of a group), test and size (only equal ones are compared), round (measured at the same time), rail (the ordinal of the port of each host, from 1; default: all at once) and both (yes: the sum of both directions).
Outputs of benchmarks may follow each other. A line "# pair: FROM TO" names the ends of those that follow; OSU does not print them.`,
	Example: `
> pairs = load_measurements("pairs.csv")
> len(pairs), pairs[0].from_end, pairs[0].value, pairs[0].unit
(6, "node-0001", 391.0, "Gb/s")
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path string }) (starlark.Value, error) {
		var list []suspect.Measurement
		err := c.Block(func(ctx context.Context) error {
			f, err := c.Runtime().Files.Open(ctx, a.Path)
			if err != nil {
				return err
			}
			defer f.Close()
			list, err = suspect.Read(f, a.Path)
			return err
		})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return lang.List(list, wrapMeasurement), nil
	}),
}

// MeasurementType is the type of a measurement.
var MeasurementType = &lang.ResultType{
	Name: "measurement",
	Doc:  "A benchmark of a pair or a group of hosts.",
	Members: []lang.ResultMember{
		{Name: "from_end", Type: "string", Doc: "the sender by name, GUID or LID; None of a group"},
		{Name: "to_end", Type: "string", Doc: "the receiver; None of a group"},
		{Name: "value", Type: "float", Doc: "the bandwidth or the time; None if it is not measured yet, or the benchmark failed"},
		{Name: "unit", Type: "string", Doc: "Gb/s or us"},
		{Name: "state", Type: "string", Doc: "measured, empty (not measured yet) or failed", Words: []string{"measured", "empty", "failed"}},
		{Name: "group", Type: "list of string", Doc: "the members of a group"},
		{Name: "pattern", Type: "string", Doc: "ring or all-to-all; None of a pair", Words: []string{"ring", "all-to-all"}},
		{Name: "both", Type: "bool", Doc: "whether the value is the sum of both directions"},
		{Name: "test", Type: "string", Doc: "what was measured; only equal ones are compared; None if the file does not have it"},
		{Name: "round", Type: "string", Doc: "the measurements with which it ran at the same time; None: alone"},
		{Name: "rail", Type: "int", Doc: "the ordinal of the port of each host; None: all at once"},
	},
}

// Measurement is the value of a measurement.
type Measurement struct {
	*lang.Result
	Measurement suspect.Measurement
}

func wrapMeasurement(m suspect.Measurement) starlark.Value {
	pattern, unit := "", "Gb/s"
	if m.Group != nil {
		pattern = "ring"
		if m.AllToAll {
			pattern = "all-to-all"
		}
	}
	if m.Time {
		unit = "us"
	}
	state := [...]string{"measured", "empty", "failed"}[m.State]
	return &Measurement{lang.NewResult(MeasurementType, lang.TextOrNone(m.From), lang.TextOrNone(m.To), lang.OrNone(m.State == suspect.Measured, starlark.Float(m.Value)), starlark.String(unit), starlark.String(state),
		lang.Texts(m.Group), lang.TextOrNone(pattern), starlark.Bool(m.Both), lang.TextOrNone(m.Class), lang.TextOrNone(m.Round), lang.OrNone(m.Rail > 0, starlark.MakeInt(m.Rail))), m}
}

// kindMeasurements is the kind of a parameter of measurements: a list of measurement, or of
// tuples of sender, receiver and Gb/s.
var kindMeasurements = &lang.Kind{Type: reflect.TypeFor[[]suspect.Measurement](), Convert: func(v starlark.Value) (any, error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, lang.WantType(v, "a list of measurement, or of (from, to, Gb/s)")
	}
	list := []suspect.Measurement{}
	for i, x := range lang.Collect(it) {
		switch x := x.(type) {
		case *Measurement:
			list = append(list, x.Measurement)
			continue
		case starlark.Tuple:
			if len(x) == 3 {
				from, ok := starlark.AsString(x[0])
				to, also := starlark.AsString(x[1])
				value, number := starlark.AsFloat(x[2])
				if ok && also && number && value > 0 {
					list = append(list, suspect.Measurement{From: from, To: to, Value: value})
					continue
				}
			}
		}
		return nil, fmt.Errorf("element %d: got %s, want measurement, or (from, to, Gb/s)", i, lang.Brief(x))
	}
	return list, nil
}}

// SuspectsType is the type of the result of routes.suspects().
var SuspectsType = &lang.ResultType{
	Name: "suspects",
	Doc:  "What benchmarks of pairs show about the links, switches and hosts that their packets cross.",
	Members: []lang.ResultMember{
		{Name: "num_faults", Type: "int", Doc: "number of faults; 0: no fault explains the measurements"},
		{Name: "faults", Type: "list of suspect_fault", Doc: "parts that must be slow (probability at least 0.95), those that explain the most measurements first", Long: true},
		{Name: "probability", Type: "float", Doc: "that of one more fault"},
		{Name: "candidates", Type: "list of suspect", Doc: "the candidates for one more fault", Long: true},
		{Name: "read", Type: "int", Doc: "number of measurements"},
		{Name: "used", Type: "int", Doc: "number of measurements that were judged"},
		{Name: "empty", Type: "int", Doc: "number that are not measured yet"},
		{Name: "failed", Type: "int", Doc: "number without a result"},
		{Name: "alone", Type: "int", Doc: "number that fewer than two others of their test can be compared with"},
		{Name: "unknown", Type: "list of string", Doc: "ends that are not in the fabric, or have no LID"},
		{Name: "not_routed", Type: "list of string", Doc: "measurements whose packets do not arrive, by the tables"},
		{Name: "noise", Type: "float", Doc: "relative deviation of a measurement"},
		{Name: "slow", Type: "int", Doc: "number of measurements that are slower than those of their test by more than three deviations, and 10 %"},
		{Name: "unexplained", Type: "int", Doc: "number of these that no fault explains"},
		{Name: "adaptive", Type: "bool", Doc: "whether switches choose paths of measured packets: their ports share the packets evenly here"},
	},
}

// SuspectFaultType is the type of the elements of suspects.faults.
var SuspectFaultType = &lang.ResultType{
	Name: "suspect_fault",
	Doc:  "A fault that benchmarks show.",
	Members: []lang.ResultMember{
		{Name: "probability", Type: "float", Doc: "that of a fault, beside the other faults"},
		{Name: "candidates", Type: "list of suspect", Doc: "parts that may be the fault, the most probable first"},
	},
}

// SuspectType is the type of a candidate.
var SuspectType = &lang.ResultType{
	Name:      "suspect",
	Doc:       "A part of a fabric that may be slow.",
	Important: []string{"name", "kind", "probability", "factor"},
	Members: []lang.ResultMember{
		{Name: "name", Type: "string", Doc: `its name; of a link "leaf-1/7 - spine-1/2", with -> for one direction`},
		{Name: "kind", Type: "string", Doc: "link, switch, adapter or host", Words: []string{"link", "switch", "adapter", "host"}},
		{Name: "probability", Type: "float", Doc: "the probability, among the candidates, of this part or one of same"},
		{Name: "factor", Type: "float", Doc: "its most likely rate, relative to a part without a fault"},
		{Name: "slow", Type: "int", Doc: "number of measurements across it that are nearer to the rate of the fault than to the normal one"},
		{Name: "crossed", Type: "int", Doc: "number of measurements across it"},
		{Name: "same", Type: "list of string", Doc: "parts that the same measurements cross, to equal extents: these measurements cannot separate them"},
		{Name: "ports", Type: "list of port", Doc: "the ends of a link, the sender first; the ports of a switch or host that have links", Long: true},
	},
}

// wrapSuspect returns the value of a candidate.
func wrapSuspect(f *fabric.Fabric) func(c suspect.Candidate) starlark.Value {
	return func(c suspect.Candidate) starlark.Value {
		same := lang.List(c.Same, func(p suspect.Part) starlark.Value { return starlark.String(p.Name()) })
		ports := lang.List(partPorts(f, &c.Part), func(p *fabric.Port) starlark.Value { return topology.PortOf(p) })
		return lang.NewResult(SuspectType, starlark.String(c.Name()), starlark.String(c.Kind.String()), starlark.Float(c.Probability), starlark.Float(c.Factor), starlark.MakeInt(c.Slow), starlark.MakeInt(c.Crossed), same, ports)
	}
}

// partPorts returns the ports of a part.
func partPorts(f *fabric.Fabric, p *suspect.Part) (ports []*fabric.Port) {
	if p.Kind == suspect.Link {
		return []*fabric.Port{p.Port, p.Port.Peer()}
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		host, _ := fabric.HostName(n.Name())
		if n != p.Node && (p.Kind != suspect.Host || n.IsSwitch() || host != p.Host) {
			continue
		}
		for q := range n.Ports() {
			if q.Peer() != nil {
				ports = append(ports, q)
			}
		}
	}
	return ports
}

// measurementsParam is the parameter of measurements.
var measurementsParam = lang.Param{Name: "measurements", Kind: kindMeasurements, Doc: "measurements of load_measurements(), or a list of (from, to, Gb/s)"}

// SuspectsMethod is routes.suspects().
var SuspectsMethod = lang.Builtin{
	Name:    "suspects",
	Returns: "suspects",
	Params:  []lang.Param{measurementsParam},
	Doc: `Judges how well each link, switch, adapter and host explains slow and fast benchmarks of pairs, by the paths of the tables: suspects.
The method is Bayesian: each part, slow by each factor, is compared with no fault; deviations have Student's t distribution, so that single wild measurements decide nothing. Measurements are compared with the median of their test. Links are compared at the rate that both ends support, so a link that is up at a lower one is a suspect too. Parts that less than 2 % of the packets of a measurement cross are not judged. Of the flows of a group, the slowest decides.`,
	Example: `
> r = discover().graph().route("ftree")
> slow = [("node-0001", "node-000%d" % n, 200) for n in [5, 6, 7, 8]]
> fast = [("node-000%d" % n, "node-000%d" % (n % 4 + 5), 390) for n in [2, 3, 4] for _ in range(3)]
> s = r.suspects(slow + fast)
> s.num_faults, s.faults[0].candidates[0].name
(1, "node-0001 HCA-1/1 -> leaf-1/1")
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Measurements []suspect.Measurement }) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		defer progress(c, "comparing measurements")()
		res, err := suspect.Find(c.Fiber().Context, v.Tables, a.Measurements)
		if err != nil {
			return nil, computeError(c, err)
		}
		wrap := wrapSuspect(v.Tables.Graph().Fabric())
		faults := lang.List(res.Faults, func(f suspect.Fault) starlark.Value {
			return lang.NewResult(SuspectFaultType, starlark.Float(f.Probability), lang.List(f.Candidates, wrap))
		})
		return lang.NewResult(SuspectsType, starlark.MakeInt(len(res.Faults)), faults, starlark.Float(res.Probability), lang.List(res.Best, wrap), starlark.MakeInt(res.Read), starlark.MakeInt(res.Used), starlark.MakeInt(res.Empty), starlark.MakeInt(res.Failed), starlark.MakeInt(res.Alone),
			lang.Texts(res.Unknown), lang.Texts(res.NotRouted), starlark.Float(res.Noise), starlark.MakeInt(res.Slow), starlark.MakeInt(res.Unexplained), starlark.Bool(res.Adaptive)), nil
	}),
}

// NextPairType is the type of the elements of the result of routes.next_pairs().
var NextPairType = &lang.ResultType{
	Name: "next_pair",
	Doc:  "A pair to measure.",
	Members: []lang.ResultMember{
		{Name: "from_end", Type: "string", Doc: "the sender: a name by which load_measurements() and suspects() find it"},
		{Name: "to_end", Type: "string", Doc: "the receiver"},
		{Name: "crosses", Type: "list of string", Doc: "the candidates that make it slow"},
		{Name: "from_port", Type: "port", Doc: "the port of the sender", Long: true},
		{Name: "to_port", Type: "port", Doc: "the port of the receiver", Long: true},
	},
}

// NextPairsMethod is routes.next_pairs().
var NextPairsMethod = lang.Builtin{
	Name:    "next_pairs",
	Returns: "list of next_pair",
	Params: []lang.Param{
		measurementsParam,
		{Name: "count", Kind: lang.KindInt, Doc: "how many pairs at most, 1 to 1000"},
		{Name: "busy", Kind: kindNames, Default: "None", Keyword: true, Doc: "hosts that cannot run benchmarks, such as those of jobs"},
	},
	Doc: `Chooses the pairs to measure next: those that separate the candidates of suspects() best, with what was measured so far.
Fewer pairs are returned if these are enough. Where nothing is left to separate, the pairs cross what no measurement has crossed yet. The method is greedy, by the Bhattacharyya bound on the probability of a wrong decision. Measure the pairs one after the other.`,
	Example: `
> r = discover().graph().route("ftree")
> len(r.next_pairs([], 3))
3
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Measurements []suspect.Measurement
		Count        int
		Busy         []string
	}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		if a.Count < 1 || a.Count > 1000 {
			return nil, lang.ParamError("count", "%d; want 1 to 1000", a.Count)
		}
		defer progress(c, "choosing pairs")()
		pairs, _, err := suspect.Next(c.Fiber().Context, v.Tables, a.Measurements, a.Count, suspect.PlanOptions{Busy: a.Busy})
		if err != nil {
			return nil, computeError(c, err)
		}
		g := v.Tables.Graph()
		return lang.List(pairs, func(p suspect.Pair) starlark.Value {
			crosses := lang.List(p.Crosses, func(x suspect.Part) starlark.Value { return starlark.String(x.Name()) })
			return lang.NewResult(NextPairType, starlark.String(suspect.Name(g, p.From)), starlark.String(suspect.Name(g, p.To)), crosses, topology.PortOf(p.From), topology.PortOf(p.To))
		}), nil
	}),
}

// kindNames is the kind of a parameter of names of hosts: a list, or a text in Slurm's notation.
var kindNames = &lang.Kind{Type: reflect.TypeFor[[]string](), Convert: func(v starlark.Value) (any, error) { return namesOf(v) }}
