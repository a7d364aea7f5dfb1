package device_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// beside runs fn with a simulated fabric, and all that fabsh snapshot --all keeps of it,
// through its file; in virtual time, for some requests get no answer.
func beside(t *testing.T, fn func(t *testing.T, e *engine.Engine, f *fabric.Fabric)) {
	synctest.Test(t, func(t *testing.T) {
		e, f := live(t)
		defer e.Close()
		fn(t, e, f)
	})
}

func live(t *testing.T) (*engine.Engine, *fabric.Fabric) {
	t.Helper()
	f, o, err := sim.Parse("fattree:k=4,levels=2,errors=3")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(conn, engine.Options{Keys: &engine.Keys{SA: 1}})
	if f, err = discover.Sweep(t.Context(), e, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	answers, err := device.ReadAnswers(t.Context(), &sa.Client{Engine: e}, f, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := format.WriteSnapshot(&file, f.With(answers)); err != nil {
		t.Fatal(err)
	}
	if f, err = format.ReadSnapshot(&file, "file"); err != nil {
		t.Fatal(err)
	}
	return e, f
}

func open(f *fabric.Fabric) *engine.Engine {
	return engine.New(device.NewStoredTransport(f), engine.Options{})
}

// requests are Gets of what a sweep and a snapshot read of the nodes of f: SMPs by directed
// route and by LID, and general packets.
func requests(f *fabric.Fabric) (calls []*engine.Call, names []string) {
	smp := func(n *fabric.Node, attr *mad.Attribute, modifier uint32) {
		for _, route := range []mad.DirectedRoute{n.Route(), nil} {
			if route == nil && n.LID() == 0 {
				continue
			}
			c := fabric.Dest{Route: route, LID: n.LID()}.Put(new(engine.Call), mad.MethodGet, attr, modifier, nil)
			calls, names = append(calls, c), append(names, fmt.Sprintf("%s(%#x) of %s, by route: %v", attr.Name, modifier, n.Name(), route != nil))
		}
	}
	perf := func(p *fabric.Port, attr *mad.Attribute) {
		data := make([]byte, mad.ClassPerf.DataSize())
		if x := attr.Field("port_select"); x != nil {
			x.SetUint(data, uint64(p.Num()))
		}
		c := new(engine.Call)
		c.PutPerf(mad.MethodGet, attr.ID, 0, data)
		c.To = engine.Address{LID: p.LID(), QP: 1}
		calls, names = append(calls, c), append(names, fmt.Sprintf("%s of %s", attr.Name, p.Name()))
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		for _, attr := range []*mad.Attribute{mad.AttrNodeInfo, mad.AttrNodeDescription, mad.AttrPKeyTable} {
			smp(n, attr, 0)
		}
		if n.IsSwitch() {
			smp(n, mad.AttrSwitchInfo, 0)
			perf(n.Port(0), mad.AttrPerfClassPortInfo)
		}
		for p := range n.Ports() {
			smp(n, mad.AttrPortInfo, uint32(p.Num()))
			if p.Peer() != nil {
				perf(p, mad.AttrPortCounters)
				perf(p, mad.AttrPortCountersExtended)
			}
		}
	}
	return calls, names
}

// TestAnswers: each request is answered as the node has answered it.
func TestAnswers(t *testing.T) {
	beside(t, func(t *testing.T, e *engine.Engine, f *fabric.Fabric) {
		file := open(f)
		defer file.Close()
		theirs, names := requests(f)
		ours, _ := requests(f)
		if err := errors.Join(e.Do(t.Context(), theirs...), file.Do(t.Context(), ours...)); err != nil {
			t.Fatal(err)
		}
		if len(names) < 200 {
			t.Errorf("%d requests", len(names))
		}
		for i, name := range names {
			if theirs[i].Err != nil || ours[i].Err != nil {
				t.Errorf("%s: %v; of the file: %v", name, theirs[i].Err, ours[i].Err)
				continue
			}
			h := mad.ParseHeader(theirs[i].MAD[:])
			attr := mad.Lookup(h.Class.Family(), h.Attribute)
			want, got := theirs[i].Data()[:attr.Size], ours[i].Data()[:attr.Size]
			if x := attr.Field("local_port_num"); x != nil { // where the request came in
				x.SetUint(want, 0)
				x.SetUint(got, 0)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: (-fabric +file):\n%s", name, d)
			}
		}
	})
}

// tableOf are the records of an answer, sorted.
func tableOf(t *testing.T, e *engine.Engine, r sa.Request) []string {
	t.Helper()
	seq, err := (&sa.Client{Engine: e}).Table(t.Context(), r)
	if err != nil {
		t.Fatalf("%s: %v", r.Attr.Name, err)
	}
	var list []string
	for record := range seq {
		list = append(list, fmt.Sprintf("%x", record[:r.Attr.Size]))
	}
	slices.Sort(list)
	return list
}

// TestRecords: so it is of the subnet administrator: whole tables, parts of them, one
// record, none, and too many for one.
func TestRecords(t *testing.T) {
	beside(t, func(t *testing.T, e *engine.Engine, f *fabric.Fabric) {
		file := open(f)
		defer file.Close()
		for _, attr := range device.StoredRecords {
			all := sa.NewRequest(mad.MethodGetTable, attr, nil)
			if d := cmp.Diff(tableOf(t, e, all), tableOf(t, file, all)); d != "" {
				t.Errorf("%s: (-fabric +file):\n%s", attr.Name, d)
			}
		}
		lid := f.OfType(mad.NodeTypeCA)[3].Port(1).LID()
		some := sa.NewRequest(mad.MethodGetTable, mad.AttrLinkRecord, &mad.LinkRecord{FromLID: lid}, "from_lid")
		if want, got := tableOf(t, e, some), tableOf(t, file, some); len(want) != 1 || !slices.Equal(want, got) {
			t.Errorf("links of LID %d: %v; of the file: %v", lid, want, got)
		}
		for _, r := range []struct {
			node mad.NodeRecord
			by   string
		}{
			{mad.NodeRecord{LID: lid}, "lid"},
			{mad.NodeRecord{LID: 0xbfff}, "lid"},                                            // none
			{mad.NodeRecord{NodeInfo: mad.NodeInfo{NodeType: mad.NodeTypeCA}}, "node_type"}, // too many
		} {
			request := sa.NewRequest(mad.MethodGet, mad.AttrNodeRecord, &r.node, r.by)
			want, wantErr := (&sa.Client{Engine: e}).Query(t.Context(), request)
			got, err := (&sa.Client{Engine: file}).Query(t.Context(), request)
			if err == nil && (wantErr != nil || !bytes.Equal(want, got)) || err != nil && (wantErr == nil || err.Error() != wantErr.Error()) {
				t.Errorf("by %s: %x, %v; of the file: %x, %v", r.by, want, wantErr, got, err)
			}
		}
	})
}

// TestNotInFile: what nobody asked for is not there, and what got no answer gets none
// again, at once.
func TestNotInFile(t *testing.T) {
	b := fabric.NewBuilder()
	n := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 1, PortGUID: 2, LocalPortNum: 1}, Route: mad.DirectedRoute{}})
	b.SetPort(n, 1, &mad.PortInfo{LID: 7, MasterSMLID: 7})
	b.SetFrom(n, 1)
	b.AddAnswer(fabric.Answer{Node: int32(n), Port: 1, Class: mad.ClassPerf, ID: mad.AttrPortCounters.ID})
	b.AddAnswer(fabric.Answer{Node: fabric.NoNode, Port: fabric.NoPort, Class: mad.ClassSubnAdm, ID: mad.AttrServiceRecord.ID})
	e := open(b.Build())
	defer e.Close()
	perf := func(m mad.Method, attr *mad.Attribute, lid mad.LID, port byte) error {
		c := new(engine.Call)
		c.PutPerf(m, attr.ID, 0, []byte{0, port})
		c.To = engine.Address{LID: lid, QP: 1}
		if err := e.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return c.Err
	}
	table := func(attr *mad.Attribute) error {
		_, err := (&sa.Client{Engine: e}).Table(t.Context(), sa.NewRequest(mad.MethodGetTable, attr, nil))
		return err
	}
	began := time.Now()
	for name, x := range map[string]struct {
		err    error
		silent bool
	}{
		"counters, asked in vain":       {perf(mad.MethodGet, mad.AttrPortCounters, 7, 1), true},
		"counters of another port":      {perf(mad.MethodGet, mad.AttrPortCounters, 7, 2), false},
		"other counters":                {perf(mad.MethodGet, mad.AttrPortCountersExtended, 7, 1), false},
		"another LID":                   {perf(mad.MethodGet, mad.AttrPortCounters, 8, 1), false},
		"a LID that there is not":       {perf(mad.MethodGet, mad.AttrPortCounters, 0xffff, 1), false},
		"a table, asked for in vain":    {table(mad.AttrServiceRecord), true},
		"a table that nobody asked for": {table(mad.AttrNodeRecord), false},
		"a table that no file has":      {table(mad.AttrPathRecord), false},
	} {
		if errors.Is(x.err, engine.ErrTimeout) != x.silent || errors.Is(x.err, device.ErrNotInFile) == x.silent {
			t.Errorf("%s: %v", name, x.err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestHostile: a file may hold any answers, and be asked anything.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var f *fabric.Fabric
	beside(t, func(_ *testing.T, _ *engine.Engine, all *fabric.Fabric) { f = all })
	var odd []fabric.Answer
	for _, a := range f.Answers() {
		for _, size := range []int{1, 3, mad.Size, 1 << 16} {
			if a.Data = make([]byte, size); r.IntN(20) == 0 {
				odd = append(odd, a)
			}
		}
	}
	for _, port := range []int16{fabric.NoPort, 0, 254, 1<<15 - 1, -1 << 15} {
		for class := range 256 {
			odd = append(odd, fabric.Answer{Node: int32(r.IntN(3)) + fabric.NoNode, Port: port, Class: mad.Class(class), ID: mad.AttrPortInfo.ID, Modifier: r.Uint32(), Data: []byte{9}})
		}
	}
	tr := device.NewStoredTransport(f.With(fabric.Reading{Answers: odd}))
	defer tr.Close()
	calls, _ := requests(f)
	answered := 0
	for i := range 20_000 {
		c := calls[i%len(calls)]
		m := bytes.Clone(c.MAD[:])
		to := c.To
		for range r.IntN(4) {
			m[r.IntN(80)] = byte(r.Uint32())
		}
		if i%7 == 0 {
			m[1] = byte(mad.ClassSubnAdm)
		}
		if i%11 == 0 {
			to.LID = mad.LID(r.Uint32())
		}
		if i%13 == 0 {
			m = m[:24+r.IntN(len(m)-24)]
		}
		var failed *engine.SendError
		switch err := tr.Send(&engine.Datagram{Address: to, MAD: m}); {
		case err == nil:
			back := engine.Datagram{MAD: make([]byte, 0, mad.Size)}
			if err := tr.Recv(&back); err != nil || len(back.MAD) < mad.Size {
				t.Fatalf("%x: got %d bytes, %v", m, len(back.MAD), err)
			}
			answered++
		case !errors.As(err, &failed):
			t.Fatalf("%x: %v", m, err)
		}
	}
	if answered < 1000 {
		t.Errorf("%d were answered", answered)
	}
}

// TestUnannounced: what a device does not announce is answered from a file as unsupported; of
// a device whose GeneralInfo the file does not have, nothing is known.
func TestUnannounced(t *testing.T) {
	for _, test := range []struct {
		vendor uint32
		caps   *mad.GeneralInfoCapabilities // nil: not in the file
		want   string
	}{
		{0x2c9, &mad.GeneralInfoCapabilities{CapMask0: mad.Capabilities0ExtendedPortInfo}, "unsupported"},
		{0x2c9, &mad.GeneralInfoCapabilities{CapMask0: mad.Capabilities0AR}, "not in the file"},
		{0x2c9, nil, "not in the file"},
		{0x1175, nil, "unsupported"},
		{mad.VendorBull, nil, "not in the file"},
	} {
		b := fabric.NewBuilder()
		n := b.AddNode(fabric.NodeSpec{Name: "sw", Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 4, NodeGUID: 0x1175_0000_0000_0001, VendorID: test.vendor}})
		b.SetPort(n, 0, &mad.PortInfo{LID: 7})
		if test.caps != nil {
			data := make([]byte, mad.AttrGeneralInfo.Size)
			test.caps.Encode(data)
			b.AddAnswer(fabric.Answer{Node: int32(n), Port: fabric.NoPort, Class: mad.ClassSubn, ID: mad.AttrGeneralInfo.ID, Modifier: mad.GeneralInfoFormCapabilities, Data: data})
		}
		e := open(b.Build())
		c := fabric.Dest{LID: 7}.Put(new(engine.Call), mad.MethodGet, mad.AttrAdaptiveRoutingInfo, 0, nil)
		err := e.Do(t.Context(), c)
		var answered *engine.Error
		got := fmt.Sprint(err, c.Err)
		switch {
		case errors.Is(c.Err, device.ErrNotInFile):
			got = "not in the file"
		case errors.As(c.Err, &answered) && answered.Status == mad.StatusBadMethodAttribute:
			got = "unsupported"
		}
		if got != test.want {
			t.Errorf("vendor %#x, %+v: %s, want %s", test.vendor, test.caps, got, test.want)
		}
		e.Close()
	}
}

// TestStoredRegister: a register in a file is the answer to the query that selects it.
func TestStoredRegister(t *testing.T) {
	b := fabric.NewBuilder()
	n := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NodeGUID: 0x10, NumPorts: 2, VendorID: 0x2c9}, Name: "sw"})
	b.SetPort(n, 0, &mad.PortInfo{LID: 1})
	general := make([]byte, mad.AttrGeneralInfo.Size)
	caps := mad.GeneralInfoCapabilities{CapMask0: mad.Capabilities0AccessRegister}
	caps.Encode(general)
	b.AddAnswer(fabric.Answer{Node: int32(n), Port: fabric.NoPort, Class: mad.ClassSubn, ID: mad.AttrGeneralInfo.ID, Modifier: mad.GeneralInfoFormCapabilities, Data: general})
	layout := mad.RegisterNamed("MTMP")
	for sensor, celsius := range []int{46, 58} {
		data := make([]byte, layout.Size)
		layout.Field("sensor_index").SetUint(data, uint64(sensor))
		layout.Field("temperature").SetUint(data, uint64(8*celsius))
		b.AddAnswer(fabric.Answer{Node: int32(n), Port: int16(sensor), Class: mad.ClassVendor0A, ID: mad.AttrAccessRegister.ID, Modifier: uint32(layout.Register), Data: data})
	}
	e := open(b.Build())
	defer e.Close()
	var got []string
	for sensor := range 3 {
		call := fabric.Dest{LID: 1}.Put(new(engine.Call), mad.MethodGet, mad.AttrPortInfo, 0, nil)
		call.PutMAD(mad.Header{Class: mad.ClassVendor0A, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrAccessRegister.ID, Modifier: uint32(layout.Register)}, nil)
		query := make([]byte, layout.Size)
		layout.Field("sensor_index").SetUint(query, uint64(sensor))
		mad.PutRegister(call.MAD[:], layout, query)
		if err := e.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if call.Err != nil {
			got = append(got, fmt.Sprint(errors.Is(call.Err, device.ErrNotInFile)))
			continue
		}
		content, _, ok := mad.RegisterContent(call.MAD[:], layout)
		got = append(got, fmt.Sprint(layout.Field("temperature").Number(content, 0), ok))
	}
	if want := []string{"46 true", "58 true", "true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
