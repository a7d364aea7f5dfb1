package routing

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/format"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

var LoadRoutes = lang.Builtin{
	Name:  "load_routes",
	Group: topology.GroupFabric,
	Params: []lang.Param{
		{Name: "path", Kind: lang.KindPath, Doc: "a file of forwarding tables: opensm-lfts.dump, opensm.fdbs, what ibroute or dump_fts print, or a snapshot"},
		{Name: "fabric", Kind: lang.KindAny, Default: "None", Doc: "of which they are; else the session's"},
		{Name: "sl", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "a file of the service levels of paths"},
		{Name: "sl2vl", Kind: lang.KindPath, Default: "None", Keyword: true, Doc: "a file of the virtual lanes of service levels: opensm-sl2vl.dump, ibdmchk's short form, or of smpquery sl2vl"},
	},
	Doc: `Reads forwarding tables from a file: routes.
The kind is told by the content. As OpenSM does, entries go to the LIDs that their ports have in the fabric, where the file says whose a LID was. What of file and fabric does not match is in the notes.`,
	Example: `
> f = load_fabric("net.topo")
> t = load_routes("net.lfts", f)
> t[f.switches[0]][2]
1
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		f, err := fabricArg(c)
		if err != nil {
			return nil, err
		}
		t, err := RoutesFile(f, c.Runtime().Files, c.Text("path"), c.Text("sl"), c.Text("sl2vl"))
		if err != nil {
			return nil, computeError(c, err)
		}
		return t, nil
	}),
}

// fabricArg is the parameter fabric, or the session's.
func fabricArg(c *lang.Call) (*topology.Fabric, error) {
	v := c.Value("fabric")
	if v == starlark.None {
		var err error
		if v, err = topology.CurrentFabric(c.Thread); err != nil {
			return nil, err
		}
	}
	f, ok := v.(*topology.Fabric)
	if !ok {
		return nil, lang.ParamError("fabric", "got %s, want fabric", v.Type())
	}
	return f, nil
}

// RoutesFile reads tables from files; sl and sl2vl may be "".
func RoutesFile(f *topology.Fabric, fs *lang.Files, path, sl, sl2vl string) (*Routes, error) {
	g, err := routing.NewGraph(f.F, routing.GraphOptions{})
	if err != nil {
		return nil, err
	}
	t := newRoutes(routing.NewRoutes(g, 0), newGraph(g, f))
	t.R.Engine = "file"
	for _, part := range []struct {
		path string
		read func(r io.Reader, name string) error
	}{{path, t.readLFTs}, {sl, t.readSLs}, {sl2vl, t.readSL2VLs}} {
		if part.path == "" {
			continue
		}
		file, err := fs.Open(part.path)
		if err != nil {
			return nil, err
		}
		err = part.read(file, part.path)
		file.Close()
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (v *Routes) readLFTs(r io.Reader, name string) error {
	in := bufio.NewReaderSize(r, 1<<16)
	head, _ := in.Peek(1 << 16) // an error comes again
	if format.Recognise(head) == format.KindSnapshot {
		return v.readSnapshot(in, name)
	}
	notes, err := format.ReadLFTs(in, name, v.R.Graph().Fabric(), func(n *fabric.Node) []byte {
		return v.R.Row(v.R.Graph().SwitchOf(n))
	})
	v.Notes = append(v.Notes, notes...)
	return err
}

func (v *Routes) readSnapshot(r io.Reader, name string) error {
	s, err := format.ReadSnapshot(r, name)
	if err != nil {
		return err
	}
	found := 0
	for id, entries := range s.LFTs {
		if at := v.R.Graph().SwitchByGUID(s.Fabric.Nodes()[id].GUID()); at >= 0 && entries != nil {
			copy(v.R.Row(at), entries)
			found++
		}
	}
	if found == 0 {
		return fmt.Errorf("%s: expected forwarding tables, but this snapshot has none of a switch of the fabric", name)
	}
	if all := len(v.rows); found < all {
		v.Notes = append(v.Notes, fmt.Sprintf("%s: it has tables of %d of %d switches", name, found, all))
	}
	return nil
}

func (v *Routes) readSLs(r io.Reader, name string) error {
	g := v.R.Graph()
	sls := &routing.SL{Pair: make([][]uint8, len(g.Terminals()))}
	for p, err := range format.PathSLs(r, name) {
		if err != nil {
			return err
		}
		ports := g.Fabric().PortByGUID(p.GUID)
		if len(ports) == 0 {
			n, err := p.Find(g.Fabric())
			if err != nil {
				return err
			}
			ports = portsWithLIDs(n)
		}
		for _, q := range ports {
			t := g.TerminalOf(q)
			if t < 0 {
				continue
			}
			if sls.Pair[t] == nil {
				sls.Pair[t] = make([]uint8, int(v.R.Top())+1)
			}
			if int(p.DLID) < len(sls.Pair[t]) {
				sls.Pair[t][p.DLID] = p.SL
			}
		}
	}
	v.R.SL = sls
	return nil
}

func (v *Routes) readSL2VLs(r io.Reader, name string) error {
	g := v.R.Graph()
	lanes := routing.NewSL2VL(g)
	for x, err := range format.SL2VLs(r, name) {
		if err != nil {
			return err
		}
		n, err := x.Find(g.Fabric())
		if err != nil {
			return err
		}
		s := g.SwitchOf(n)
		if s < 0 {
			continue // of the link into the network, for which nothing waits
		}
		if max(x.In, x.Out) > n.NumPorts() {
			return fmt.Errorf("%s: expected ports from 0 to %d, which %s has, not %d", x.Position(), n.NumPorts(), n.Label(), max(x.In, x.Out))
		}
		if err := lanes.Set(s, uint8(x.In), uint8(x.Out), x.VLs); err != nil {
			return fmt.Errorf("%s: %w", x.Position(), err)
		}
	}
	v.R.SL2VL = lanes
	return nil
}

var GetRoutes = lang.Builtin{
	Name:   "get_routes",
	Group:  topology.GroupTable,
	Params: []lang.Param{{Name: "fabric", Kind: lang.KindAny, Default: "None", Doc: "whose switches are read; else the session's"}},
	Doc: `Reads the forwarding tables of all switches of a fabric: routes.
Of each only the blocks up to LinearFDBTop are read, all switches at once. What did not answer is in the notes, is warned of on stderr, and makes the exit status 3.`,
	Example: `
> t = get_routes(discover())
> t.verify().unreachable
0
> t.diff(get_routes()).blocks
0
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		f, err := fabricArg(c)
		if err != nil {
			return nil, err
		}
		return readRoutes(c, f)
	}),
}

func readRoutes(c *lang.Call, f *topology.Fabric) (*Routes, error) {
	e, err := topology.EngineOf(c)
	if err != nil {
		return nil, err
	}
	g, err := routing.NewGraph(f.F, routing.GraphOptions{})
	if err != nil {
		return nil, computeError(c, err)
	}
	var dests []fabric.Dest
	var asked []int
	failed := map[int]error{}
	for s, n := range g.Switches() {
		t := topology.NodeTarget(n)
		if err := t.Reachable(); err != nil {
			failed[s] = err
			continue
		}
		dests, asked = append(dests, t.Dest()), append(asked, s)
	}
	var tables []change.LFT
	err = c.Block(func(ctx context.Context) (err error) {
		tables, err = change.ReadLFTs(ctx, e, dests)
		return err
	})
	if err != nil {
		return nil, err
	}
	top := 0
	for i := range tables {
		if tables[i].Err != nil {
			failed[asked[i]] = tables[i].Err
		}
		top = max(top, len(tables[i].Entries)-1)
	}
	v := newRoutes(routing.NewRoutes(g, mad.LID(top)), newGraph(g, f))
	v.R.Engine = "live"
	for i, s := range asked {
		if tables[i].Err == nil {
			copy(v.R.Row(s), tables[i].Entries)
		}
	}
	for s, n := range g.Switches() {
		if err := failed[s]; err != nil {
			t := topology.NodeTarget(n)
			failure := topology.FailedRequest(c, &t, err)
			topology.CountUnanswered(c, err)
			c.Fiber().Warn("%v", failure)
			v.Notes = append(v.Notes, fmt.Sprintf("the table of %s is not known: %v", n.Label(), failure))
		}
	}
	if len(failed) == len(g.Switches()) && len(failed) > 0 {
		t := topology.NodeTarget(g.Switches()[0])
		return nil, topology.FailedRequest(c, &t, failed[0])
	}
	return v, nil
}

var dumpRoutesMethod = lang.Builtin{
	Name:   "dump",
	Params: []lang.Param{{Name: "kind", Kind: lang.KindChoice, Default: `"opensm-lfts"`, Doc: format.TablesHelp()}},
	Doc: `Returns the tables as the text of a file.
fabsh route POLICY --out FILE writes one without holding it in memory.`,
	Example: `
> discover().graph().route("ftree").dump().splitlines()[0]
"Unicast lids [0-44] of switch Lid 1 guid 0x0002c90300100000 ('leaf-1'):"
`,
	Run: lang.Raw(func(c *lang.Call) (starlark.Value, error) {
		var b bytes.Buffer
		if err := c.Recv.(*Routes).Write(c.Fiber().Context, &b, format.Kind(c.Text("kind"))); err != nil {
			return nil, computeError(c, err)
		}
		return starlark.String(b.String()), nil
	}),
}

// write writes a file of a kind.
func (v *Routes) Write(ctx context.Context, w io.Writer, kind format.Kind) error {
	g := v.R.Graph()
	return format.DumpTables(w, g.Fabric(), kind, &format.Tables{
		LFT:   func(n *fabric.Node) []byte { return v.R.Row(g.SwitchOf(n)) },
		Hops:  func() (format.HopsFunc, error) { return hopsFunc(ctx, g) },
		SL2VL: v.lanes,
		SL: func(src *fabric.Port, dlid mad.LID) (uint8, bool) {
			t := g.TerminalOf(src)
			if t < 0 {
				return 0, false
			}
			return v.R.SL.Of(t, dlid), true
		},
	})
}

// lanes are those of the ports of a switch. All of a CA's links have VL n for SL n.
func (v *Routes) lanes(in, out *fabric.Port) (vls [16]uint8, ok bool) {
	for sl := range vls {
		switch {
		case in == nil:
			vls[sl] = uint8(sl)
		default:
			vls[sl] = v.R.SL2VL.VL(v.R.Graph().SwitchOf(out.Node()), uint8(in.Num()), uint8(out.Num()), uint8(sl))
		}
	}
	return vls, true
}

// hopsFunc gives distances of switches' LIDs by port, as OpenSM's minhop has them.
func hopsFunc(ctx context.Context, g *routing.Graph) (format.HopsFunc, error) {
	h, err := g.Hops(ctx)
	if err != nil {
		return nil, err
	}
	from := make([][]routing.Channel, len(g.Switches()))
	for _, ch := range g.Channels() {
		from[ch.From] = append(from[ch.From], ch)
	}
	return func(sw *fabric.Node, lid mad.LID, hops []byte) bool {
		t := g.TerminalByLID(lid)
		if t < 0 || g.Terminals()[t].Class&routing.ClassSwitch == 0 {
			return false
		}
		s, d := g.SwitchOf(sw), g.Terminals()[t].Switch
		for i := range hops {
			hops[i] = format.NoPath
		}
		if s == d {
			hops[0] = 0
			return true
		}
		for _, ch := range from[s] {
			if far := h.Distance(int(ch.To), d); far >= 0 {
				hops[ch.Port] = uint8(far + 1)
				hops[0] = min(hops[0], uint8(far+1))
			}
		}
		return true
	}, nil
}
