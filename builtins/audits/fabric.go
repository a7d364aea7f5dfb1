package audits

import (
	"cmp"
	"slices"
	"sync"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// readBoth reads the fabric, and judges the baseline at the same time: a sweep mostly waits.
func (x *auditRun) readBoth(in *script.Interpreter, list []*Audit) (f *topology.Fabric, err error) {
	if x.Baseline == nil {
		return x.read()
	}
	beside := in.Beside()
	env := topology.EnvOf(beside.Runtime)
	*env = *x.env
	env.Load(x.Baseline)
	env.Current = topology.NewFabric(x.Baseline)
	defer env.Unload()
	var sweep sync.WaitGroup
	var unswept error
	sweep.Go(func() {
		unswept = lang.Protect("audit", func() (err error) {
			f, err = x.read()
			return err
		})
	})
	defer sweep.Wait() // also where an audit of the baseline panics
	known, err := judgeBaseline(x.judge, beside.Runtime, list)
	sweep.Wait()
	x.runtime.Join(beside.Runtime)
	x.known = known
	return f, cmp.Or(unswept, err)
}

// judgeBaseline returns the IDs of the findings of a baseline, and those that they stand for, the fabric of r: no request is
// sent. j is the judge of the run.
func judgeBaseline(j judge, r *lang.Runtime, list []*Audit) (map[string]bool, error) {
	j.runtime, j.report, j.requests = r, new(audit.Report), new(observer)
	found, err := j.all(topology.EnvOf(r).Current, list, starlark.None)
	if err = cmp.Or(err, late(j.ctx)); err != nil { // its findings are unknown
		return nil, err
	}
	known := map[string]bool{}
	audit.IDs(found, known)
	return known, nil
}

// read returns the fabric: that of the file; Known, if its nodes are still there; or that of a
// sweep. Its problems are in the report, not in warnings.
func (x *auditRun) read() (*topology.Fabric, error) {
	t, release := lang.NewThread(&lang.Fiber{Runtime: x.runtime, Context: lang.AnySteps(x.ctx), Sink: lang.Discard{}, Account: new(lang.Account)}, "audit")
	defer release()
	if x.env.Engine == nil {
		return topology.CurrentFabric(t)
	}
	if x.Known != nil {
		f, moved, err := topology.Known(t, x.Known)
		if err != nil {
			return nil, err
		}
		if moved == "" {
			if len(x.report.Notes) == 0 {
				x.report.Note("the fabric was not swept: new and missing nodes and links are unknown, and states are those of the file")
			}
			return f, nil
		}
		x.report.Note("the fabric is swept: %s", moved)
		x.Known = nil
	}
	f, err := topology.Sweep(t)
	if err == nil {
		lang.StateOf[topology.Observer](x.runtime).Swept = f.Fabric
	}
	return f, err
}

// isCut reports whether the sweep ended early.
func isCut(f *topology.Fabric) bool {
	return slices.ContainsFunc(f.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemCut })
}

// cover counts the requests of the sweep, and sets the fabric and subnet of the report.
func (x *auditRun) cover(f *topology.Fabric) {
	live := x.env.Engine != nil
	if h := x.env.Host; h != nil {
		x.missed = nil
		x.report.Fabric = h.String()                                         // Model is nil: it would be metrics of a fabric
		x.report.Subnet = fabric.Subnet{Given: cmp.Or(x.Subnet, h.Subnet())} // its ports may be in several
		return
	}
	if x.missed = nil; x.Known == nil {
		x.missed = x.report.Coverage.CountSweep(f.Fabric, live)
	}
	x.report.Fabric, x.report.Model = f.String(), f.Fabric
	x.report.Subnet = fabric.SubnetOf(f.Fabric, x.Subnet)
	if p := f.From(); p != nil && live {
		x.report.Port = p.Name()
	}
}

// RunAcks returns the acks of a subnet below a directory of states; none, if the directory is of
// another subnet, which the report of the run notes. It warns of invalid lines.
func RunAcks(r *lang.Runtime, dir string, subnet fabric.Subnet) audit.Acks {
	if dir == "" || audit.CheckSubnet(dir, subnet) != nil {
		return nil
	}
	acks, bad := audit.ReadAcks(audit.AckFile(dir, subnet), r.Clock.Now())
	for _, err := range bad {
		r.WarnOnce("%v", err)
	}
	return acks
}
