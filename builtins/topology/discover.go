package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Discover is discover().
var Discover = lang.Builtin{
	Name:    "discover",
	Returns: "fabric",
	Group:   GroupFabric,
	Params: []lang.Param{
		{Name: "around", Kind: KindTarget, Default: "None", Keyword: true, Doc: "start of the sweep: dr(...), or a node or port of the latest discover(), as a value or by name, GUID or LID (default: the local port)"},
		{Name: "hops", Kind: lang.KindInt, Default: "None", Keyword: true, Doc: "maximum distance from there, in links (default: unlimited)"},
		{Name: "via", Kind: lang.KindChoice, Default: `"smp"`, Keyword: true, Doc: `"smp" reads from each node; "sa" reads the records of the subnet administrator`},
		{Name: "extended", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "whether to read what NVIDIA's devices have beyond a sweep: health and planes of ports, virtual ports, tables of routers; two requests for each port with a link"},
		{Name: "vport_modifier", Kind: lang.KindFunction, Default: "None", Keyword: true, Doc: "with extended: a function of a port and the index of a virtual port; it returns the modifier of VPortInfo, which no public source has, or None (default: GUIDs and LIDs of virtual ports are not read)"},
	},
	Doc: `Sweeps the subnet and returns a fabric.
Names and GUIDs of targets are looked up in the latest fabric. Requests that were not answered are in its problems, cause warnings on standard error, and make the exit status 3.
via="sa" sends no requests to nodes, for fabrics whose nodes require M_Keys or whose local port may not send SMPs. Such a fabric has no directed routes: its nodes are reached by LID. It lacks what the subnet administrator does not report: nodes without a LID, nodes that share no partition with this port, vendor-specific speeds such as FDR10, and, with OpenSM, everything about ports that are down except their states.`,
	Example: `
> f = discover()
> f
fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete
> f.switches[0].type
"switch"
> discover(via="sa").dump("ibnetdiscover") == f.dump("ibnetdiscover")
True
`,
	Run: lang.Do(func(c *lang.Call, a *discoverArgs) (starlark.Value, error) {
		s := EnvOf(c.Runtime())
		o := s.SweepOptions()
		if s.Engine == nil && s.Loaded != nil {
			if a.isPartial() {
				return nil, lang.Errorf("around and hops require a live fabric; this session reads a file")
			}
			reportProblems(c.Fiber(), s.Loaded)
			return s.Current, nil
		}
		if a.Around != nil {
			t, err := (&Resolver{Call: c}).target(a.Around)
			switch {
			case err != nil:
				return nil, lang.ParamError("around", "%w", err)
			case t.Err != nil:
				return nil, FailedRequest(c, &t, t.Err)
			}
			if t.Route == nil && s.Current != nil { // a LID
				if p := s.Current.PortByLID(t.LID); p != nil {
					t.Route = p.Route()
				}
			}
			if t.Route == nil {
				return nil, lang.ParamError("around", "%s has no directed route; use dr(...), or a node or port of the latest discover()", t.Label)
			}
			o.Around = t.Route
		}
		switch {
		case !a.Extended && a.VportModifier != nil:
			return nil, lang.ParamError("vport_modifier", "requires extended=True")
		case a.Via == "sa" && a.Extended:
			return nil, lang.Errorf(`extended is not supported with via="sa"`)
		case a.Via == "sa" && a.isPartial():
			return nil, lang.Errorf(`around and hops are not supported with via="sa"`)
		case a.Via == "sa":
			return discoverSA(c, o)
		case a.Via != "smp":
			return nil, lang.ParamError("via", "got %q, want \"smp\" or \"sa\"", a.Via)
		}
		if a.Hops != nil {
			if o.Hops = *a.Hops; o.Hops < 1 {
				return nil, lang.ParamError("hops", "got %d, want at least 1", o.Hops)
			}
		}
		f, err := sweep(c, o)
		if err != nil {
			return nil, err
		}
		return a.extend(c, f)
	}),
}

// discoverArgs are the arguments of discover().
type discoverArgs struct {
	Around starlark.Value
	Hops   *int
	Via    string

	Extended      bool
	VportModifier starlark.Callable
}

// CurrentFabric returns the latest fabric, or sweeps if none exists. It is for entry
// functions that take a fabric, and for commands.
func CurrentFabric(t *starlark.Thread) (*Fabric, error) {
	if e := EnvOf(lang.FiberOf(t).Runtime); e.Current != nil {
		return e.Current, nil
	}
	return Sweep(t)
}

// PresentFabric discovers the whole fabric again; of a session that reads a file, it is the file's.
func PresentFabric(t *starlark.Thread) (*Fabric, error) {
	if e := EnvOf(lang.FiberOf(t).Runtime); e.Engine == nil && e.Loaded != nil {
		return e.Current, nil
	}
	return Sweep(t)
}

// Sweep discovers the whole fabric again.
func Sweep(t *starlark.Thread) (f *Fabric, err error) {
	err = lang.Operate(t, "discover", func(c *lang.Call) (err error) {
		f, err = sweep(c, EnvOf(c.Runtime()).SweepOptions())
		return err
	})
	return f, err
}

// SweepQuietly discovers the whole fabric again, for a command. It does not warn of
// problems, but counts unanswered requests.
func SweepQuietly(ctx context.Context, r *lang.Runtime) (*fabric.Fabric, error) {
	t, release := lang.NewThread(&lang.Fiber{Runtime: r, Context: ctx, Sink: lang.Discard{}, Account: &r.Account}, "command")
	defer release()
	f, err := Sweep(t)
	if err != nil {
		return nil, err
	}
	return f.Fabric, nil
}

// LoadFabric is load_fabric().
var LoadFabric = lang.Builtin{
	Name:    "load_fabric",
	Returns: "fabric",
	Group:   GroupFabric,
	Params: []lang.Param{
		{Name: "path", Kind: lang.KindPath, Doc: "the file, or a directory such as that of ibdiagnet; the rules of fs.read apply"},
		{Name: "hca_map", Kind: lang.KindPath, Default: `""`, Keyword: true, Doc: "a file hca_mapping.csv, which names the adapters of hosts by the numbers of a plan: lines such as 1,mlx5_0"},
		{Name: "map", Kind: lang.KindText, Default: `""`, Keyword: true, Doc: `the columns of a plan whose header is not recognised: "a_name=Device,a_port=Col 3,b_name=Col 5,b_port=Col 6"`},
	},
	Doc: `Reads a fabric from a topology file or a plan of cables.
The content determines the format: output of ibnetdiscover or its --cache, a net file of ibsim, an opensm-subnet.lst, a .topo of ibdm, ibdiagnet2.db_csv, or a snapshot of fabsh; a plan of cables (a P2P or A/Z sheet as CSV or xlsx, UFM's NDT, topoconfig.conf, cables of NetBox, and others: help("formats")); or an archive (.tgz, .zip, ...) or a directory with one of these and tables for it, or with the sheets of a plan. If a file has no LIDs, they are assigned in its order, from 1, and problems reports it. What a plan states besides cables is fabric.plan; its rows that could not be used are listed there and make the fabric incomplete.`,
	Example: `
> load_fabric("net.topo").switches[0].name
"leaf-1"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path, HCAMap, Map string }) (starlark.Value, error) {
		m, err := format.ParsePlanMap(a.Map)
		if err != nil {
			return nil, lang.ParamError("map", "%w", err)
		}
		o := format.PlanOptions{Map: m}
		if a.HCAMap != "" {
			err := openFile(c, a.HCAMap, func(file io.Reader, _ format.Opener) (err error) {
				o.Adapters, err = format.LoadAdapters(file, a.HCAMap)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		if o.Map == nil && o.Adapters == nil {
			return fabricValue(OpenFabric(c, a.Path))
		}
		var f *fabric.Fabric
		err = openFile(c, a.Path, func(file io.Reader, open format.Opener) (err error) {
			f, err = format.LoadPlan([]format.PlanFile{{Name: a.Path, Reader: file}}, o, open)
			return err
		})
		if err != nil {
			return nil, err
		}
		return NewFabric(f.Renamed(EnvOf(c.Runtime()).Names)), nil
	}),
}

// fabricValue returns a fabric as a value; nil after an error.
func fabricValue(f *Fabric, err error) (starlark.Value, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openFile opens a file that the script may read, and passes it to read.
func openFile(c *lang.Call, path string, read func(file io.Reader, open format.Opener) error) error {
	return c.Block(func(ctx context.Context) error {
		files := c.Runtime().Files
		file, err := files.Open(ctx, path)
		if err != nil {
			return lang.Errorf("%w", err)
		}
		defer file.Close()
		if err := read(file, func(name string) (io.ReadCloser, error) { return files.Open(ctx, name) }); err != nil {
			return lang.Errorf("%w", err)
		}
		return nil
	})
}

// OpenFabric reads a fabric from the file or directory at path.
func OpenFabric(c *lang.Call, path string) (*Fabric, error) {
	dir, err := c.Runtime().Files.OpenDirectory(path)
	if err != nil {
		return nil, lang.Errorf("%w", err)
	}
	var f *fabric.Fabric
	if dir != nil {
		defer dir.Close()
		err = c.Block(func(context.Context) (err error) {
			if f, err = format.LoadDir(dir, path, nil); err != nil {
				return lang.Errorf("%w", err)
			}
			return nil
		})
	} else {
		err = openFile(c, path, func(file io.Reader, open format.Opener) (err error) {
			f, err = format.Load(file, path, open)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return NewFabric(f.Renamed(EnvOf(c.Runtime()).Names)), nil
}

// Known makes f the latest fabric without a sweep, if its nodes are still at their LIDs:
// it reads NodeInfo at the LID of each. moved describes the first difference.
func Known(t *starlark.Thread, f *fabric.Fabric) (v *Fabric, moved string, err error) {
	err = lang.Operate(t, "discover", func(c *lang.Call) error {
		var calls []*engine.Call
		var of []*fabric.Node
		for i := range f.Nodes() {
			if n := &f.Nodes()[i]; n.LID() != 0 {
				call := new(engine.Call)
				fabric.Dest{LID: n.LID(), Guard: n.Guard()}.Put(call, mad.MethodGet, mad.AttrNodeInfo, 0, nil)
				calls, of = append(calls, call), append(of, n)
			}
		}
		if err := SendProbes(c, calls); err != nil {
			return err
		}
		for i, call := range calls {
			var info mad.NodeInfo
			if call.Err == nil {
				info.Decode(call.Data())
			}
			switch {
			case call.Err != nil:
				moved = fmt.Sprintf("%s does not answer at LID %d", of[i].Label(), of[i].LID())
			case info.NodeGUID != of[i].GUID():
				moved = fmt.Sprintf("LID %[2]d no longer belongs to %[1]s", of[i].Label(), of[i].LID())
			default:
				continue
			}
			return nil
		}
		if len(calls) == 0 {
			moved = "no node of the file has a LID"
			return nil
		}
		v = NewFabric(f)
		s := EnvOf(c.Runtime())
		s.Current, s.swept = v, false
		return nil
	})
	return v, moved, err
}

// SweepOptions returns the options of a sweep of the whole fabric.
func (e *Env) SweepOptions() discover.Options {
	o := discover.Options{Around: mad.DirectedRoute{0}, Names: e.Names, PlainSpeeds: e.PlainSpeeds}
	if e.Current != nil {
		o.Known = e.Current.Fabric
	}
	return o
}

// isPartial reports whether only a part of the subnet is requested, which only a sweep by
// SMPs supports.
func (a *discoverArgs) isPartial() bool { return a.Around != nil || a.Hops != nil }

// sweep discovers the fabric by SMPs. The result becomes the latest fabric. It fails if
// the first node does not answer or the sweep is stopped; other nodes that do not answer
// are problems of the result.
func sweep(c *lang.Call, o discover.Options) (*Fabric, error) {
	s, f := EnvOf(c.Runtime()), c.Fiber()
	o.Progress = func(nodes int) { c.Runtime().Progress(plural.Count(nodes, "node", "nodes") + " found") }
	e, err := EngineOf(c)
	if err != nil {
		return nil, err
	}
	if s.Recent != nil && s.Current == nil && o.Around.Hops() == 0 && o.Hops == 0 {
		if recent := s.Recent(); recent != nil {
			s.Current, s.swept = NewFabric(recent), true
			reportProblems(f, recent)
			return s.Current, nil
		}
	}
	var found *fabric.Fabric
	err = c.Block(func(ctx context.Context) (err error) {
		defer c.Runtime().Progress("")
		if err := s.mayBeginSweep(ctx); err != nil {
			return err
		}
		found, err = discover.Sweep(ctx, e, o)
		return err
	})
	if stopped := f.Stopped(); stopped != nil {
		return nil, stopped
	}
	if err != nil && !foundBeforeDeadline(found, err) {
		CountUnanswered(c, err)
		failed := &RequestError{op: c.Name, target: "route " + o.Around.String(), err: err, named: true, Advice: adviceFor(c, err)}
		var send *engine.SendError
		if errors.As(err, &send) { // virtual functions have no queue pair 0
			failed.Advice = `or use the subnet administrator: discover(via="sa")`
		}
		if errors.Is(err, engine.ErrTimeout) && o.Around.Hops() == 0 {
			failed.Advice = "check the local device, or increase --timeout and --retries; if the port has an M_Key, give it with --keys FILE"
			if hasKeys(c) {
				failed.Advice = "check the local device and its M_Key in --keys, or increase --timeout and --retries"
			}
		}
		return nil, failed
	}
	if err := checkLocalPort(c, o.Around, found.From()); err != nil {
		return nil, err
	}
	s.Current, s.swept = NewFabric(found), true
	reportProblems(f, found)
	return s.Current, nil
}

// checkLocalPort returns an error if the link of the local port, at which a sweep began, is down: then
// nothing is known of the fabric.
func checkLocalPort(c *lang.Call, around mad.DirectedRoute, p *fabric.Port) error {
	if around.Hops() > 0 || p == nil || p.Num() == 0 || p.Info() == nil || p.PhysicalState() == mad.PortPhysicalStateLinkUp {
		return nil
	}
	local, err := LocalPort(c)
	if err != nil {
		return err
	}
	return localPortError(c, &local, p.PhysicalState())
}

// ErrLocalPort is in the error of a session whose local port cannot reach the fabric.
var ErrLocalPort = errors.New("the link is down")

// localPortError returns the error of a local port whose link is down; physical is 0 if unknown.
func localPortError(c *lang.Call, p *engine.Port, physical mad.PortPhysicalState) error {
	why := ErrLocalPort
	advice := "check the cable and the other end"
	switch {
	case physical == mad.PortPhysicalStateDisabled:
		why, advice = fmt.Errorf("the port is disabled: %w", ErrLocalPort), "enable it"
	case physical != 0:
		why = fmt.Errorf("%w (%s)", ErrLocalPort, strings.ReplaceAll(physical.String(), "_", " "))
	}
	failed := &RequestError{op: c.Name, target: fmt.Sprintf("local port %s/%d", p.Device, p.Num), err: why, Advice: advice + ", or choose another port with -C and -P"}
	if others := EnvOf(c.Runtime()).otherPorts(nil); len(others) > 0 {
		failed.Advice += "; active ports: " + strings.Join(others, ", ")
	}
	return failed
}

// otherPorts returns the names of active ports of this host that are not in f.
func (e *Env) otherPorts(f *fabric.Fabric) (names []string) {
	if e.HostPorts == nil {
		return nil
	}
	for _, p := range e.HostPorts() {
		if f == nil || len(f.PortByGUID(p.PortGUID)) == 0 {
			names = append(names, fmt.Sprintf("%s/%d", p.Device, p.Num))
		}
	}
	return names
}

// Unswept returns a note that names active ports of this host that are not in f; "" without any.
func (e *Env) Unswept(f *fabric.Fabric) string {
	others := e.otherPorts(f)
	if len(others) == 0 {
		return ""
	}
	device, port, _ := strings.Cut(others[0], "/")
	return fmt.Sprintf("not swept: the fabric of %s of this host (%s); use -C %s -P %s, or audit --each-port",
		plural.Count(len(others), "other active port", "other active ports"), strings.Join(others, ", "), device, port)
}

// mayBeginSweep calls BeforeSweep.
func (e *Env) mayBeginSweep(ctx context.Context) error {
	if e.BeforeSweep == nil {
		return nil
	}
	return e.BeforeSweep(ctx)
}

// foundBeforeDeadline reports whether a usable fabric was found before the deadline.
func foundBeforeDeadline(found *fabric.Fabric, err error) bool {
	var late *lang.DeadlineError
	return errors.As(err, &late) && found != nil
}

// discoverSA is discover(via="sa"): it sends no SMPs and reads the records of the subnet
// administrator (IBA 15.2.5).
func discoverSA(c *lang.Call, o discover.Options) (starlark.Value, error) {
	s, f := EnvOf(c.Runtime()), c.Fiber()
	local, err := LocalPort(c)
	if err != nil {
		return nil, err
	}
	if local.State == mad.PortStateDown {
		return nil, localPortError(c, &local, 0)
	}
	o.Progress = func(ports int) { c.Runtime().Progress(plural.Count(ports, "port", "ports") + " known") }
	var found *fabric.Fabric
	err = c.Block(func(ctx context.Context) (err error) {
		defer c.Runtime().Progress("")
		if err := s.mayBeginSweep(ctx); err != nil {
			return err
		}
		found, err = discover.ViaSA(ctx, s.SA, o)
		return err
	})
	if stopped := f.Stopped(); stopped != nil {
		return nil, stopped
	}
	if err != nil && !foundBeforeDeadline(found, err) {
		CountUnanswered(c, err)
		return nil, SAFailed(c, mad.AttrNodeRecord, err)
	}
	s.Current, s.swept = NewFabric(found), false
	reportProblems(f, found)
	return s.Current, nil
}

// maxWarnings is the maximum number of warnings about problems of a sweep; all problems
// are in fabric.problems.
const maxWarnings = 10

// reportProblems warns of the problems of a sweep, or of those of a file that make it incomplete, and counts
// the latter, so that the exit status agrees with the report.
func reportProblems(f *lang.Fiber, found *fabric.Fabric) {
	if note := EnvOf(f.Runtime).Unswept(found); note != "" && found.Scope() == "" {
		f.Warn("discover: %s", note)
	}
	problems := found.Problems()
	if found == EnvOf(f.Runtime).Loaded {
		problems = slices.DeleteFunc(slices.Clone(problems), func(p fabric.Problem) bool { return !p.Kind.Missing() })
	}
	for i, p := range problems {
		if p.Kind.Missing() {
			f.Account.Unanswered++
		}
		switch {
		case i < maxWarnings:
			f.Warn("discover: %s", p.Text)
		case i == maxWarnings:
			f.Warn("discover: %s more: see .problems", plural.Count(len(problems)-maxWarnings, "problem", "problems"))
		}
	}
}

// extend returns f, which was just swept, with what NVIDIA's devices have beyond a sweep, if
// that is requested. It is then the latest fabric.
func (a *discoverArgs) extend(c *lang.Call, f *Fabric) (starlark.Value, error) {
	if !a.Extended {
		return f, nil
	}
	e, err := EngineOf(c)
	if err != nil {
		return nil, err
	}
	more := func(read func(ctx context.Context) (fabric.Reading, error)) error {
		var r fabric.Reading
		err := c.Block(func(ctx context.Context) (err error) {
			r, err = read(ctx)
			return err
		})
		for _, p := range r.Problems {
			c.Fiber().Account.Unanswered++
			c.Fiber().Warn("%s: %s", c.Name, p.Text)
		}
		if err == nil {
			f = NewFabric(f.With(r))
		}
		return err
	}
	if err := more(func(ctx context.Context) (fabric.Reading, error) { return device.ReadExtended(ctx, e, f.Fabric) }); err != nil {
		return nil, err
	}
	if a.VportModifier != nil {
		list, err := a.vports(c, f.Fabric)
		if err != nil {
			return nil, err
		}
		if err := more(func(ctx context.Context) (fabric.Reading, error) { return device.ReadVPorts(ctx, e, f.Fabric, list) }); err != nil {
			return nil, err
		}
	}
	EnvOf(c.Runtime()).Current = f
	return f, nil
}

// vports returns the virtual ports for which the script has a modifier.
func (a *discoverArgs) vports(c *lang.Call, f *fabric.Fabric) (list []device.VPort, err error) {
	for _, v := range f.VirtualPorts() {
		got, err := starlark.Call(c.Thread, a.VportModifier, starlark.Tuple{Port{v.Port}, starlark.MakeInt(v.Index)}, nil)
		if err != nil {
			return nil, err
		}
		if got == starlark.None {
			continue
		}
		n, err := lang.ToInt(got)
		if err != nil || n < 0 || n > 1<<32-1 {
			return nil, lang.ParamError("vport_modifier", "returned %s, want a modifier of 32 bits or None", got)
		}
		list = append(list, device.VPort{Port: v.Port, Modifier: uint32(n)})
	}
	return list, nil
}
