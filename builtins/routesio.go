package builtins

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"go.starlark.net/starlark"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/format"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

var loadRoutesBuiltin = Builtin{
	Name:  "load_routes",
	Group: GroupFabric,
	Params: []Param{
		{Name: "path", Kind: KindPath, Doc: "a file of forwarding tables: opensm-lfts.dump, opensm.fdbs, what ibroute or dump_fts print, or a snapshot"},
		{Name: "fabric", Kind: KindAny, Default: "None", Doc: "of which they are; else the session's"},
		{Name: "sl", Kind: KindPath, Default: "None", Keyword: true, Doc: "a file of the service levels of paths"},
		{Name: "sl2vl", Kind: KindPath, Default: "None", Keyword: true, Doc: "a file of the virtual lanes of service levels: opensm-sl2vl.dump, ibdmchk's short form, or of smpquery sl2vl"},
	},
	Doc: `Reads forwarding tables from a file: routes.
The kind is told by the content. As OpenSM does, entries go to the LIDs that their ports have in the fabric, where the file says whose a LID was. What of file and fabric does not match is in the notes.`,
	Example: `
> f = load_fabric("net.topo")
> t = load_routes("net.lfts", f)
> t[f.switches[0]][2]
1
`,
	fn: func(c *call) (starlark.Value, error) {
		f, err := fabricArg(c)
		if err != nil {
			return nil, err
		}
		t, err := loadRoutes(f, c.runtime().Files, c.Text("path"), c.Text("sl"), c.Text("sl2vl"))
		if err != nil {
			return nil, computeError(c, err)
		}
		return t, nil
	},
}

// fabricArg is the parameter fabric, or the session's.
func fabricArg(c *call) (*fabricValue, error) {
	v := c.Value("fabric")
	if v == starlark.None {
		var err error
		if v, err = currentFabric(c.thread); err != nil {
			return nil, err
		}
	}
	f, ok := v.(*fabricValue)
	if !ok {
		return nil, c.paramError("fabric", "got %s, want fabric", v.Type())
	}
	return f, nil
}

// loadRoutes reads tables from files; sl and sl2vl may be "".
func loadRoutes(f *fabricValue, fs *files, path, sl, sl2vl string) (*routesValue, error) {
	g, err := routing.NewGraph(f.f, routing.GraphOptions{})
	if err != nil {
		return nil, err
	}
	t := newRoutes(routing.NewRoutes(g, 0), newGraph(g, f))
	t.r.Engine = "file"
	for _, part := range []struct {
		path string
		read func(r io.Reader, name string) error
	}{{path, t.readLFTs}, {sl, t.readSLs}, {sl2vl, t.readSL2VLs}} {
		if part.path == "" {
			continue
		}
		file, err := fs.open(part.path)
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

func (v *routesValue) readLFTs(r io.Reader, name string) error {
	in := bufio.NewReaderSize(r, 1<<16)
	head, _ := in.Peek(1 << 16) // an error comes again
	if format.Recognise(head) == format.KindSnapshot {
		return v.readSnapshot(in, name)
	}
	notes, err := format.ReadLFTs(in, name, v.r.Graph().Fabric(), func(n *fabric.Node) []byte {
		return v.r.Row(v.r.Graph().SwitchOf(n))
	})
	v.notes = append(v.notes, notes...)
	return err
}

func (v *routesValue) readSnapshot(r io.Reader, name string) error {
	s, err := format.ReadSnapshot(r, name)
	if err != nil {
		return err
	}
	found := 0
	for id, entries := range s.LFTs {
		if at := v.r.Graph().SwitchByGUID(s.Fabric.Nodes()[id].GUID()); at >= 0 && entries != nil {
			copy(v.r.Row(at), entries)
			found++
		}
	}
	if found == 0 {
		return fmt.Errorf("%s: expected forwarding tables, but this snapshot has none of a switch of the fabric", name)
	}
	if all := len(v.rows); found < all {
		v.notes = append(v.notes, fmt.Sprintf("%s: it has tables of %d of %d switches", name, found, all))
	}
	return nil
}

func (v *routesValue) readSLs(r io.Reader, name string) error {
	g := v.r.Graph()
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
				sls.Pair[t] = make([]uint8, int(v.r.Top())+1)
			}
			if int(p.DLID) < len(sls.Pair[t]) {
				sls.Pair[t][p.DLID] = p.SL
			}
		}
	}
	v.r.SL = sls
	return nil
}

func (v *routesValue) readSL2VLs(r io.Reader, name string) error {
	g := v.r.Graph()
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
	v.r.SL2VL = lanes
	return nil
}

var getRoutesBuiltin = Builtin{
	Name:   "get_routes",
	Group:  GroupTable,
	Params: []Param{{Name: "fabric", Kind: KindAny, Default: "None", Doc: "whose switches are read; else the session's"}},
	Doc: `Reads the forwarding tables of all switches of a fabric: routes.
Of each only the blocks up to LinearFDBTop are read, all switches at once. What did not answer is in the notes, is warned of on stderr, and makes the exit status 3.`,
	Example: `
> t = get_routes(discover())
> t.verify().unreachable
0
> t.diff(get_routes()).blocks
0
`,
	fn: func(c *call) (starlark.Value, error) {
		f, err := fabricArg(c)
		if err != nil {
			return nil, err
		}
		return readRoutes(c, f)
	},
}

func readRoutes(c *call, f *fabricValue) (*routesValue, error) {
	e, err := engineOf(c)
	if err != nil {
		return nil, err
	}
	g, err := routing.NewGraph(f.f, routing.GraphOptions{})
	if err != nil {
		return nil, computeError(c, err)
	}
	var dests []fabric.Dest
	var asked []int
	failed := map[int]error{}
	for s, n := range g.Switches() {
		t := nodeTarget(n)
		if err := t.reachable(); err != nil {
			failed[s] = err
			continue
		}
		dests, asked = append(dests, t.dest()), append(asked, s)
	}
	var tables []change.LFT
	err = c.wait(func(ctx context.Context) (err error) {
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
	v.r.Engine = "live"
	for i, s := range asked {
		if tables[i].Err == nil {
			copy(v.r.Row(s), tables[i].Entries)
		}
	}
	for s, n := range g.Switches() {
		if err := failed[s]; err != nil {
			t := nodeTarget(n)
			failure := failedRequest(c, &t, err)
			countUnanswered(c, err)
			c.fiber().warn("%v", failure)
			v.notes = append(v.notes, fmt.Sprintf("the table of %s is not known: %v", n.Label(), failure))
		}
	}
	if len(failed) == len(g.Switches()) && len(failed) > 0 {
		t := nodeTarget(g.Switches()[0])
		return nil, failedRequest(c, &t, failed[0])
	}
	return v, nil
}

var dumpRoutesMethod = Builtin{
	Name:   "dump",
	Params: []Param{{Name: "kind", Kind: KindChoice, Default: `"opensm-lfts"`, Doc: format.TablesHelp()}},
	Doc: `Returns the tables as the text of a file.
fabsh route POLICY --out FILE writes one without holding it in memory.`,
	Example: `
> discover().graph().route("ftree").dump().splitlines()[0]
"Unicast lids [0-44] of switch Lid 1 guid 0x0002c90300100000 ('leaf-1'):"
`,
	fn: func(c *call) (starlark.Value, error) {
		var b bytes.Buffer
		if err := c.recv.(*routesValue).write(c.fiber().ctx, &b, format.Kind(c.Text("kind"))); err != nil {
			return nil, computeError(c, err)
		}
		return starlark.String(b.String()), nil
	},
}

// write writes a file of a kind.
func (v *routesValue) write(ctx context.Context, w io.Writer, kind format.Kind) error {
	g := v.r.Graph()
	return format.DumpTables(w, g.Fabric(), kind, &format.Tables{
		LFT:   func(n *fabric.Node) []byte { return v.r.Row(g.SwitchOf(n)) },
		Hops:  func() (format.HopsFunc, error) { return hopsFunc(ctx, g) },
		SL2VL: v.lanes,
		SL: func(src *fabric.Port, dlid mad.LID) (uint8, bool) {
			t := g.TerminalOf(src)
			if t < 0 {
				return 0, false
			}
			return v.r.SL.Of(t, dlid), true
		},
	})
}

// lanes are those of the ports of a switch. All of a CA's links have VL n for SL n.
func (v *routesValue) lanes(in, out *fabric.Port) (vls [16]uint8, ok bool) {
	for sl := range vls {
		switch {
		case in == nil:
			vls[sl] = uint8(sl)
		default:
			vls[sl] = v.r.SL2VL.VL(v.r.Graph().SwitchOf(out.Node()), uint8(in.Num()), uint8(out.Num()), uint8(sl))
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
