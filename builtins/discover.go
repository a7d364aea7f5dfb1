package builtins

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/mad/engine"
)

var discoverBuiltin = Builtin{
	Name:  "discover",
	Group: groupFabric,
	Params: []Param{
		{Name: "around", Kind: KindTarget, Default: "None", Keyword: true, Doc: "where the sweep begins: dr(...), or a node or port of a fabric; else at the local port"},
		{Name: "hops", Kind: KindInt, Default: "None", Keyword: true, Doc: "how many links it goes from there; else as far as it can"},
		{Name: "via", Kind: KindChoice, Default: `"smp"`, Keyword: true, Doc: `"smp" asks each node; "sa" asks the subnet administrator for its records of all`},
	},
	Doc: `Sweeps the subnet and returns what it found: a fabric.
Names and GUIDs of targets are looked up in the latest one. What did not answer is among its problems, is warned of on stderr, and makes the exit status 3.
With via="sa" no node is asked, for where nodes want M_Keys or the local port may not ask them. Such a fabric has no directed routes: its nodes are reached by LID. Nor has it what the subnet administrator does not tell: nodes without a LID, those in none of our partitions, vendors' own speeds such as FDR10, and in OpenSM's case all but the states of ports that are down.`,
	Example: `
> f = discover()
> f
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
> f.switches[0].type
"switch"
> discover(via="sa").dump("ibnetdiscover") == f.dump("ibnetdiscover")
True
`,
	fn: func(c *call) (starlark.Value, error) {
		s, f := c.session(), c.fiber()
		o := discover.Options{Around: mad.DirectedRoute{0}, Names: s.o.Names, PlainSpeeds: s.o.PlainSpeeds}
		if s.fabric != nil {
			o.Known = s.fabric.f
		}
		if s.o.Engine == nil && s.o.Loaded != nil {
			if c.Has("around") || c.Has("hops") {
				return nil, fmt.Errorf("discover: around and hops need a live fabric: this session reads a file")
			}
			return s.fabric, nil
		}
		if c.Has("around") {
			t, err := (&resolver{c: c}).target(c.Value("around"))
			switch {
			case err != nil:
				return nil, c.paramError("around", "%w", err)
			case t.err != nil:
				return nil, c.failed(&t, t.err)
			case t.route == nil:
				return nil, c.paramError("around", "%s has no directed route: use dr(...) or a node of discover()", t.label)
			}
			o.Around = t.route
		}
		switch via := c.Text("via"); {
		case via == "sa" && (c.Has("around") || c.Has("hops")):
			return nil, fmt.Errorf(`discover: around and hops are of sweeps: leave them out with via="sa"`)
		case via == "sa":
			return c.discoverSA(o)
		case via != "smp":
			return nil, c.paramError("via", "got %q, want \"smp\" or \"sa\"", via)
		}
		if c.Has("hops") {
			if o.Hops = c.Int("hops"); o.Hops < 1 {
				return nil, c.paramError("hops", "got %d, want at least 1", o.Hops)
			}
		}
		o.Progress = func(nodes int) { s.o.Progress(count(nodes, "node") + " found") }
		e, err := c.engine()
		if err != nil {
			return nil, err
		}
		var found *fabric.Fabric
		err = c.wait(func(ctx context.Context) (err error) {
			defer s.o.Progress("")
			found, err = discover.Sweep(ctx, e, o)
			return err
		})
		if stopped := f.stopped(); stopped != nil {
			return nil, stopped
		}
		if err != nil && !inTime(found, err) {
			c.count(err)
			failed := &requestError{op: c.Name, target: "route " + o.Around.String(), err: err, named: true, advice: c.advice(err)}
			var send *engine.SendError
			if errors.As(err, &send) { // virtual functions have no queue pair 0
				failed.advice = `or ask the subnet administrator: discover(via="sa")`
			}
			if errors.Is(err, engine.ErrTimeout) && o.Around.Hops() == 0 {
				failed.advice = "look at the local device, or allow more with --timeout and --retries; if the port has an M_Key, give it with --keys FILE"
				if c.hasKeys() {
					failed.advice = "look at the local device, and whether --keys gives its M_Key, or allow more with --timeout and --retries"
				}
			}
			return nil, failed
		}
		s.fabric = newFabric(found)
		f.report(found)
		return s.fabric, nil
	},
}

// inTime: a fabric was found before the deadline, which is worth having.
func inTime(found *fabric.Fabric, err error) bool {
	var late *DeadlineError
	return errors.As(err, &late) && found != nil
}

// discoverSA is discover(via="sa").
func (c *call) discoverSA(o discover.Options) (starlark.Value, error) {
	s, f := c.session(), c.fiber()
	if _, err := c.localPort(); err != nil {
		return nil, err
	}
	o.Progress = func(ports int) { s.o.Progress(count(ports, "port") + " known") }
	var found *fabric.Fabric
	err := c.wait(func(ctx context.Context) (err error) {
		defer s.o.Progress("")
		found, err = discover.ViaSA(ctx, s.sa, o)
		return err
	})
	if stopped := f.stopped(); stopped != nil {
		return nil, stopped
	}
	if err != nil && !inTime(found, err) {
		c.count(err)
		return nil, c.saFailed(mad.AttrNodeRecord, err)
	}
	s.fabric = newFabric(found)
	f.report(found)
	return s.fabric, nil
}

// maxWarnings is how many problems of a sweep are told; the others are in
// fabric.problems.
const maxWarnings = 10

// report warns of the problems of a sweep, and counts those for which something
// is missing, so that the exit status agrees with the report.
func (f *fiber) report(found *fabric.Fabric) {
	problems := found.Problems()
	for i, p := range problems {
		if p.Kind.Missing() {
			f.account.unanswered++
		}
		switch {
		case i < maxWarnings:
			f.warn("discover: %s", p.Text)
		case i == maxWarnings:
			f.warn("discover: %s more: see .problems", count(len(problems)-maxWarnings, "problem"))
		}
	}
}

var loadFabricBuiltin = Builtin{
	Name:   "load_fabric",
	Group:  groupFabric,
	Params: []Param{{Name: "path", Kind: KindPath, Doc: "the file; below the working directory, the script's folder or a folder of -I"}},
	Doc: `Reads a fabric from a topology file.
It may be what ibnetdiscover prints or its --cache, a net file of ibsim, an opensm-subnet.lst, a .topo of ibdm, or a snapshot of fabsh: the content tells. Where a file has no LIDs they are given in its order, from 1; problems says so.`,
	Example: `
> load_fabric("net.topo").switches[0].name
"leaf-1"
`,
	fn: func(c *call) (starlark.Value, error) {
		file, err := c.session().files.open(c.Text("path"))
		if err != nil {
			return nil, fmt.Errorf("load_fabric: %w", err)
		}
		defer file.Close()
		f, err := format.Load(file, c.Text("path"), func(name string) (io.ReadCloser, error) { return c.session().files.open(name) })
		if err != nil {
			return nil, fmt.Errorf("load_fabric: %w", err)
		}
		return newFabric(f.Renamed(c.session().o.Names)), nil
	},
}

// currentFabric is the fabric at hand, for an entry function that takes one:
// the latest, else what a sweep finds.
func (s *Session) currentFabric(t *starlark.Thread) (starlark.Value, error) {
	if s.fabric != nil {
		return s.fabric, nil
	}
	return starlark.Call(t, &function{Builtin: &discoverBuiltin}, nil, nil)
}
