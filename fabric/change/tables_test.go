package change_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// writesOf are the blocks by which tables differ from those in force.
func writesOf(r, live *routes.Routes) (all []certificate.Change) {
	for _, sd := range r.Diff(live).Switches {
		n := r.Graph().Switches()[sd.Switch]
		for _, b := range sd.Blocks {
			w := certificate.Change{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(b), Node: n.GUID(), New: make([]byte, mad.LFTBlock)}
			for i := range w.New {
				w.New[i] = r.Row(sd.Switch).Port(mad.LID(b*mad.LFTBlock + i))
			}
			all = append(all, w)
		}
	}
	return all
}

// TestLanesAreRead: where tables have a credit loop on one lane, the lanes that the
// switches have are read, and the proof is per lane: of the service levels that are in
// use, or of all where that is not known.
func TestLanesAreRead(t *testing.T) {
	f, _, err := sim.Parse("dragonfly:p=1,a=4,h=1")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	target, err := engines.Compute(t.Context(), g, "dragonfly", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// All service levels on the lanes of SL 0, or all but SL 1.
	lanes, but := routes.NewSL2VL(g), routes.NewSL2VL(g)
	for s, n := range g.Switches() {
		for in := range n.NumPorts() + 1 {
			for out := range n.NumPorts() + 1 {
				var all [mad.ServiceLevels]uint8
				for sl := range all {
					all[sl] = target.SL2VL.VL(s, uint8(in), uint8(out), 0)
				}
				if err := lanes.Set(s, uint8(in), uint8(out), all); err != nil {
					t.Fatal(err)
				}
				all[1] = 0
				if err := but.Set(s, uint8(in), uint8(out), all); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	zero := &routes.SL{Dest: []uint8{}}
	one := &routes.SL{Dest: slices.Repeat([]uint8{1}, int(g.Top())+1)}
	for i, c := range []struct {
		lanes  *routes.SL2VL
		levels *routes.SL
		safe   bool
	}{{lanes, nil, true}, {routes.NewSL2VL(g), nil, false}, {nil, nil, false}, {but, nil, false}, {but, zero, true}, {but, one, false}, {lanes, one, true}} {
		live, err := engines.Compute(t.Context(), g, "updn", engines.Options{})
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		tables := change.Tables{Live: live, Lanes: func(_ context.Context, r *routes.Routes) error {
			read++
			if r.SL2VL = c.lanes; r.SL2VL == nil {
				return errors.New("no answer")
			}
			return nil
		}}
		told := 0
		tables.Levels = func(context.Context, *routes.Routes) (*routes.SL, string, error) {
			told++
			return c.levels, "known", nil
		}
		_, s, err := tables.Order(t.Context(), writesOf(target, live))
		if safe := s != nil; safe != c.safe || change.CreditLoop(err) == c.safe || read != 1 || told > 1 {
			t.Errorf("case %d: read %d times, told %d times, a schedule: %v, %v", i, read, told, safe, err)
		}
	}
}

// levelled is a transport on which the first path of each table has SL 5; or the last
// bit of its source LID, if paths from the LIDs of a port are to differ.
type levelled struct {
	engine.Transport
	differ bool
}

func (l levelled) TrySend(*engine.Datagram) (bool, error) { return false, nil }
func (l levelled) BeforeWait(func() bool) bool            { return false }

func (l levelled) Recv(d *engine.Datagram) error {
	err := l.Transport.Recv(d)
	const firstSegment, records = 1, 56 // number and place of the records (IBA 13.6.2.1, 15.2.1.1)
	if m := d.MAD[:]; err == nil && m[1] == uint8(mad.ClassSubnAdm) && m[3] == uint8(mad.MethodGetTableResp) && binary.BigEndian.Uint32(m[28:]) == firstSegment {
		sl := uint64(5)
		if l.differ {
			sl = mad.AttrPathRecord.Field("slid").Uint(m[records:]) & 1
		}
		mad.AttrPathRecord.Field("sl").SetUint(m[records:], sl)
	}
	return err
}

// TestLevels: the service levels of all pairs come from path records, if the subnet administrator
// returns them and they are not too many; else from a file, or any may be in use.
func TestLevels(t *testing.T) {
	for _, c := range []struct {
		spec, basis string
		file        string // content
		err         string
	}{
		{spec: "ring:n=3", basis: "those of 18 path records assumed"},
		{spec: "ring:n=3,lmc=1", basis: "those of 54 path records assumed"},
		{spec: "ring:n=3,lmc=1,differ", basis: "all 16 assumed to be in use: paths from the LIDs of node-0001 HCA-1/1 to LID 1 have several"},
		{spec: "ring:n=3,lmc=7", basis: "all 16 assumed to be in use: node-0001 HCA-1/1 has 128 LIDs"},
		{spec: "ring:n=3,silent", basis: "all 16 assumed to be in use: query of the subnet administrator"},
		{spec: "fattree:k=34", basis: "all 16 assumed to be in use: 578 LIDs have too many paths"},
		{spec: "ring:n=3", file: "%v 2 3\n", basis: "those of levels assumed"},
		{spec: "ring:n=3", file: "rubbish 1 2", err: "levels:1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			spec, silent := strings.CutSuffix(c.spec, ",silent")
			spec, differ := strings.CutSuffix(spec, ",differ")
			topology, o, err := sim.Parse(spec)
			if err != nil {
				t.Fatal(err)
			}
			subnet := sim.New(topology, o)
			if silent {
				for i := range topology.Ports() {
					if p := &topology.Ports()[i]; p.Num() > 0 != p.Node().IsSwitch() {
						if err := subnet.Edit.Port(p.Node().GUID(), p.Num(), func(info *mad.PortInfo) { info.MasterSMLID = 0 }); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			conn, err := subnet.Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
			if err != nil {
				t.Fatal(err)
			}
			e := engine.New(levelled{conn, differ}, engine.Options{})
			defer e.Close()
			f, err := discover.Sweep(t.Context(), e, discover.Options{})
			if err != nil {
				t.Fatal(err)
			}
			live, _, err := device.ReadRoutes(t.Context(), e, f)
			if err != nil {
				t.Fatal(err)
			}
			l := change.Levels{Client: &sa.Client{Engine: e}}
			if strings.Contains(c.basis+c.err, "levels") {
				l.File, l.Open = "levels", func(name string) (io.ReadCloser, error) {
					if name != "levels" {
						return nil, errors.New("not there")
					}
					return io.NopCloser(strings.NewReader(strings.Replace(c.file, "%v", topology.OfType(mad.NodeTypeCA)[1].GUID().String(), 1))), nil
				}
			}
			levels, basis, err := l.Of(t.Context(), live)
			if err != nil {
				if c.err == "" || !strings.Contains(err.Error(), c.err) {
					t.Error(c.spec, err)
				}
				return
			}
			if !strings.HasPrefix(basis, c.basis) || (levels == nil) != strings.HasPrefix(basis, "all 16") {
				t.Errorf("%s: %q, levels: %v", c.spec, basis, levels != nil)
			}
			if levels != nil && !levels.Any() {
				t.Errorf("%s: all are 0", c.spec)
			}
		})
	}
}
