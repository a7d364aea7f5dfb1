// Package jobs has the jobs of schedulers for scripts, and their traffic.
//
//	load.go    load_jobs(), and its values
//	traffic.go routes.job_traffic(), routes.job_matrix()

package routing

import (
	"context"
	"errors"
	"fmt"
	"reflect"

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
		return lang.List(list, wrap), nil
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

func wrap(j jobs.Job) starlark.Value {
	return &Job{lang.NewResult(JobType, starlark.String(j.ID), lang.TextOrNone(j.Name), lang.TextOrNone(j.User), lang.TextOrNone(j.Partition), starlark.MakeInt(len(j.Hosts)), lang.Texts(j.Hosts)), j}
}

// kindJobs are jobs: a list of job, or a dict of id to hosts, as a list of names or as a text in
// Slurm's notation.
var kindJobs = &lang.Kind{Type: reflect.TypeFor[[]jobs.Job](), Convert: toJobs}

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
