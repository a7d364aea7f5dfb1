package routing

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/hosts"
	"fabsh/fabric/jobs"
)

// LoadJobs is load_jobs(): the jobs of a scheduler.
var LoadJobs = lang.Builtin{
	Name:    "load_jobs",
	Returns: "list of job",
	Group:   topology.GroupFabric,
	Params:  []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "the output of squeue --json or sacct --json, or a table with a header and a column of lists of hosts, such as squeue -o '%i,%j,%u,%T,%N' writes"}},
	Doc: `Reads the jobs that run and have hosts from a file: a list of job.
A table is separated by commas, |, tabs or semicolons. Columns are found by the names of squeue, without case: JOBID, NODELIST (or hosts), and if any NAME, USER, PARTITION and STATE. A list of hosts in the last column needs no quotes: 7,node[001-004,7].`,
	Example: `
> jobs = load_jobs("jobs.csv")
> jobs[0].id, hostlist.fold(jobs[0].hosts)
("7", "node-[0001-0004]")
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path string }) (starlark.Value, error) {
		var list []jobs.Job
		err := c.Block(func(ctx context.Context) error {
			f, err := c.Runtime().Files.Open(ctx, a.Path)
			if err != nil {
				return err
			}
			defer f.Close()
			list, err = jobs.Read(f, a.Path)
			return err
		})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return lang.List(list, wrapJob), nil
	}),
}

// JobType is the type of a job.
var JobType = &lang.ResultType{
	Name: "job",
	Doc:  "A job of a scheduler that runs.",
	Members: []lang.ResultMember{
		{Name: "id", Type: "string", Doc: "its id as squeue prints it, such as 7, or 11_3 of a task of an array"},
		{Name: "name", Type: "string", Doc: "its name; None if the file does not have it"},
		{Name: "user", Type: "string", Doc: "its user; None likewise"},
		{Name: "partition", Type: "string", Doc: "its partition of the scheduler; None likewise"},
		{Name: "num_hosts", Doc: "number of hosts"},
		{Name: "hosts", Doc: "names of its hosts, in the order of the scheduler", Long: true},
	},
}

// Job is the value of a job.
type Job struct {
	*lang.Result
	Job jobs.Job
}

// wrapJob returns the value of j.
func wrapJob(j jobs.Job) starlark.Value {
	return &Job{lang.NewResult(JobType, starlark.String(j.ID), lang.TextOrNone(j.Name), lang.TextOrNone(j.User), lang.TextOrNone(j.Partition), starlark.MakeInt(len(j.Hosts)), lang.Texts(j.Hosts)), j}
}

// KindJobs is the kind of a parameter of jobs: a list of job, or a dict of id to hosts, as a list of names or as a text in
// Slurm's notation.
var KindJobs = &lang.Kind{Type: reflect.TypeFor[[]jobs.Job](), Convert: toJobs}

func toJobs(v starlark.Value) (any, error) {
	list := []jobs.Job{}
	switch v := v.(type) {
	case *starlark.Dict:
		for _, kv := range v.Items() {
			id, ok := starlark.AsString(kv[0])
			if !ok || id == "" {
				return nil, fmt.Errorf("got the key %s, want the id of a job as a string", lang.Brief(kv[0]))
			}
			names, err := namesOf(kv[1])
			if err != nil {
				return nil, fmt.Errorf("job %s: %w", lang.Brief(kv[0]), err)
			}
			list = append(list, jobs.Job{ID: id, Hosts: names})
		}
		return list, nil
	case starlark.Iterable:
		seen := map[string]bool{} // results are by id
		for i, x := range lang.Collect(v) {
			j, ok := x.(*Job)
			if !ok {
				return nil, fmt.Errorf("element %d: got %s, want job", i, x.Type())
			}
			if seen[j.Job.ID] {
				return nil, fmt.Errorf("element %d: job %q is listed twice", i, j.Job.ID)
			}
			seen[j.Job.ID] = true
			list = append(list, j.Job)
		}
		return list, nil
	}
	return nil, lang.WantType(v, "a list of job, or a dict of id to hosts")
}

// kindSomeJobs is KindJobs or None.
var kindSomeJobs = &lang.Kind{Type: reflect.TypeFor[*[]jobs.Job](), Convert: func(v starlark.Value) (any, error) {
	list, err := toJobs(v)
	if err != nil {
		return nil, err
	}
	some := list.([]jobs.Job)
	return &some, nil
}}

// namesOf returns the hosts of a job.
func namesOf(v starlark.Value) (names []string, err error) {
	if text, ok := starlark.AsString(v); ok {
		return hosts.Expand(text)
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("got %s, want hosts", v.Type())
	}
	for _, x := range lang.Collect(it) {
		name, ok := starlark.AsString(x)
		if !ok {
			return nil, fmt.Errorf("got %s, want the name of a host", x.Type())
		}
		if name == "" {
			return nil, errors.New("the name of a host is empty")
		}
		names = append(names, name)
	}
	return names, nil
}

// JobTrafficType is the type of the result of routes.job_traffic().
var JobTrafficType = &lang.ResultType{
	Name: "job_traffic",
	Doc:  "The traffic of jobs on links, if all of them send at once. The unit is the bandwidth of a port of a host. Where links have another rate, max, traffic, alone and together are per capacity: 1 on a link of half that rate is 2.",
	Members: []lang.ResultMember{
		{Name: "pattern", Doc: "which"},
		{Name: "num_jobs", Doc: "number of jobs"},
		{Name: "num_shared", Doc: "number of links between switches that several jobs use, in one direction"},
		{Name: "worst", Doc: "id of the job with the largest slowdown; None if no job is slowed down"},
		{Name: "max", Doc: "the most traffic on a link in one direction"},
		{Name: "port", Doc: "a port whose outgoing link has it; None without traffic"},
		{Name: "adaptive", Doc: "True if switches choose between ports: these share the traffic evenly here, and by load in the network"},
		{Name: "jobs", Type: "list of job_load", Doc: "for each job, its hosts and its traffic", Long: true},
		{Name: "shared", Type: "list of shared_link", Doc: "the links that several jobs use, the most traffic first", Long: true},
		{Name: "loads", Type: "dict", Doc: "a dict of the name of a port to a dict of id of a job to its outgoing traffic, for ports with traffic; GUID/NUMBER of ports of switches with the same name", Long: true},
		referenceMember,
	},
}

// JobLoadType is the type of the traffic of a job.
var JobLoadType = &lang.ResultType{
	Name:      "job_load",
	Doc:       "The place of a job in the network, and its traffic.",
	Important: []string{"id", "slowdown", "hosts", "alone", "together", "lost", "leaves"},
	Members: []lang.ResultMember{
		{Name: "id", Doc: "the job's id"},
		{Name: "hosts", Doc: "number of its hosts in the fabric"},
		{Name: "missing", Doc: "names of its hosts that are not in the fabric, or have no port with a LID at a switch"},
		{Name: "ports", Doc: "number of ports of its hosts"},
		{Name: "leaves", Doc: "number of leaves that its hosts are at, or of groups of leaves that serve the same hosts; None if unknown"},
		{Name: "least_leaves", Doc: "the smallest number of leaves that have room for them"},
		{Name: "pods", Doc: "number of groups of leaves below the top level; None in a network without pods"},
		{Name: "least_pods", Doc: "the smallest number of pods that have room for its hosts"},
		{Name: "alone", Doc: "its most traffic on a link, at least 1"},
		{Name: "together", Doc: "the most traffic of all jobs on a link that it uses, at least 1"},
		{Name: "slowdown", Doc: "together / alone: how many times longer its slowest flow takes than without the other jobs, if links are shared fairly"},
		{Name: "shared", Doc: "number of links, in one direction, that other jobs use too"},
		{Name: "lost", Doc: "flows that do not arrive"},
	},
}

// JobSharedType is the type of a link that several jobs use.
var JobSharedType = &lang.ResultType{
	Name:      "shared_link",
	Doc:       "A link between switches that several jobs use, in one direction.",
	Important: []string{"port", "to", "jobs", "traffic"},
	Members: []lang.ResultMember{
		{Name: "port", Doc: "the port that sends"},
		{Name: "to", Doc: "the port at the other end"},
		{Name: "traffic", Doc: "the traffic of all jobs"},
		{Name: "jobs", Doc: "ids of the jobs, the one with the most traffic first"},
	},
}

// patternsDoc describes the patterns of jobs.
func patternsDoc() string {
	var b strings.Builder
	for i, p := range jobs.AllPatterns() {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%q: %s", p.Name, p.Doc)
	}
	return b.String()
}

// groupParam is the parameter group, which groupOf reads.
var groupParam = lang.Param{Name: "group", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: fmt.Sprintf("number of hosts of a group of experts (default: %d)", jobs.GroupSize)}

// groupOf returns the number of hosts of a group; 0: the default.
func groupOf(n *int) (int, error) {
	switch {
	case n == nil:
		return 0, nil
	case *n < 1:
		return 0, lang.ParamError("group", "got %d, want at least 1", *n)
	}
	return *n, nil
}

// jobParams are the parameters of job_traffic and job_matrix.
var jobParams = []lang.Param{
	{Name: "jobs", Kind: KindJobs, Doc: `jobs of load_jobs(), or a dict of id to hosts, such as {"a": "node-[0001-0008]"}`},
	{Name: "pattern", Kind: lang.KindChoice, Default: `"all-to-all"`, Doc: patternsDoc()},
	groupParam,
}

// JobTrafficMethod is routes.job_traffic(): the links that jobs share.
var JobTrafficMethod = lang.Builtin{
	Name:    "job_traffic",
	Returns: "job_traffic",
	Params:  jobParams,
	Doc: `Adds up the traffic of jobs on links between switches, and compares each job with the same job alone.
Each port of a host sends 1 in total, shared evenly between its partners, unless the pattern differs; of a pattern with phases, the mean counts (congestion() has the phases). A host is the first word of an adapter's name, with or without domain; its ports are ordered by name. Where switches choose between ports (adaptive routing, or by hashes), these share the traffic of reliable connections on service level 0 evenly.`,
	Example: `
> t = discover().graph().route("ftree").job_traffic({"a": "node-[0001-0002,0005-0006]", "b": "node-[0003-0004,0007-0008]"}, "ring")
> t.worst, len(t.shared), [(j.id, j.leaves, j.least_leaves) for j in t.jobs]
(None, 0, [("a", 2, 1), ("b", 2, 1)])
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Jobs    []jobs.Job
		Pattern string
		Group   *int
	}) (starlark.Value, error) {
		v := c.Recv.(*Routes)
		group, err := groupOf(a.Group)
		if err != nil {
			return nil, err
		}
		defer progress(c, "adding up the traffic of jobs")()
		t, err := jobs.Measure(c.Fiber().Context, v.Tables, a.Jobs, a.Pattern, group)
		if err != nil {
			return nil, computeError(c, err)
		}
		return wrapJobTraffic(v, a.Jobs, a.Pattern, t), nil
	}),
}

// JobMatrixMethod is routes.job_matrix(): the traffic of jobs as a matrix.
var JobMatrixMethod = lang.Builtin{
	Name:    "job_matrix",
	Returns: "dict",
	Params:  jobParams,
	Doc:     "Returns the traffic of jobs as a matrix for congestion(): a dict of (source LID, destination LID) to traffic. job_traffic has the patterns and the unit. congestion() follows the static ports of switches.",
	Example: `
> r = discover().graph().route("ftree")
> m = r.job_matrix({"a": "node-[0001,0005,0009]"}, "ring")
> list(m.values()), r.congestion(m).max
([1.0, 1.0, 1.0], 1.0)
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Jobs    []jobs.Job
		Pattern string
		Group   *int
	}) (starlark.Value, error) {
		group, err := groupOf(a.Group)
		if err != nil {
			return nil, err
		}
		flows, err := jobs.Matrix(c.Recv.(*Routes).Tables.Graph(), a.Jobs, a.Pattern, group)
		if err != nil {
			return nil, computeError(c, err)
		}
		d := starlark.NewDict(len(flows))
		for _, f := range flows {
			d.SetKey(starlark.Tuple{starlark.MakeInt(int(f.From)), starlark.MakeInt(int(f.To))}, starlark.Float(f.Traffic))
		}
		return d, nil
	}),
}

// wrapJobTraffic returns t as a value for scripts.
func wrapJobTraffic(v *Routes, list []jobs.Job, pattern string, t *jobs.Traffic) starlark.Value {
	g := v.Tables.Graph()
	places := jobs.FindPlaces(g.Fabric())
	known := func(n int) starlark.Value { return lang.OrNone(n > 0, starlark.MakeInt(n)) }
	loads := make([]starlark.Value, len(t.Jobs))
	links := new(starlark.Dict)
	for i, j := range t.Jobs {
		s := places.Spread(j.Hosts)
		loads[i] = lang.NewResult(JobLoadType, starlark.String(list[i].ID), starlark.MakeInt(len(j.Hosts)), lang.Texts(j.Missing), starlark.MakeInt(j.Ports),
			known(s.Leaves), known(s.LeastLeaves), known(s.Pods), known(s.LeastPods),
			starlark.Float(j.Alone), starlark.Float(j.Together), starlark.Float(j.Slowdown()), starlark.MakeInt(j.Shared), starlark.MakeInt64(j.Lost))
		for _, l := range j.Loads {
			port := portKey(g.ChannelPort(int(l.Channel)))
			of, found, _ := links.Get(port)
			if !found {
				of = new(starlark.Dict)
				links.SetKey(port, of)
			}
			of.(*starlark.Dict).SetKey(starlark.String(list[i].ID), starlark.Float(l.Traffic))
		}
	}
	shared := lang.List(t.Shared, func(s jobs.Shared) starlark.Value {
		p := g.ChannelPort(int(s.Channel))
		ids := make([]string, len(s.Jobs))
		for i, job := range s.Jobs {
			ids[i] = list[job].ID
		}
		return lang.NewResult(JobSharedType, topology.PortOf(p), topology.PortOf(p.Peer()), starlark.Float(s.Traffic), lang.Texts(ids))
	})
	var worst, at, most starlark.Value = starlark.None, starlark.None, starlark.Float(0)
	if t.Worst >= 0 {
		worst = starlark.String(list[t.Worst].ID)
	}
	if t.At >= 0 {
		at, most = topology.PortOf(g.ChannelPort(t.At)), starlark.Float(t.Loads[t.At])
	}
	return &loadValue{lang.NewResult(JobTrafficType, starlark.String(pattern), starlark.MakeInt(len(loads)), starlark.MakeInt(shared.Len()), worst, most, at, starlark.Bool(v.Tables.HasChoices()), starlark.NewList(loads), shared, links, v.reference())}
}
