package ibsim_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// connect attaches with an engine, which waits for answers as long as busy machines
// take.
func connect(t testing.TB, o ibsim.Options, eo engine.Options) *engine.Engine {
	t.Helper()
	if eo.Timeout == 0 {
		eo.Timeout = 20 * time.Second
	}
	e := engine.New(attach(t, o), eo)
	t.Cleanup(func() { e.Close() })
	return e
}

// do carries out calls, all of which must succeed.
func do(t testing.TB, e *engine.Engine, calls ...*engine.Call) {
	t.Helper()
	if err := e.Do(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if c.Err != nil {
			t.Fatal(c.Err)
		}
	}
}

// fields reads what smpquery prints: "Name:....value".
func fields(out string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = strings.TrimLeft(value, ".")
		}
	}
	return m
}

// NodeInfo and PortInfo, by directed route and by LID, are what smpquery says.
func TestSMPs(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "mesh"), ibsimtest.FixtureOptions{SM: "n3"})
	e := connect(t, ibsim.Options{Socket: f.Name}, engine.Options{})
	for _, route := range []mad.DirectedRoute{{0}, {0, 1}, {0, 1, 1}, {0, 1, 7}, {0, 1, 20, 30}, {0, 1, 1, 7, 5}, {0, 1, 1, 7, 1}} {
		node, port := nodeInfo(route), &engine.Call{}
		port.PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, 0, nil)
		port.SetRoute(route)
		do(t, e, node, port)
		checkNode(t, node, f.Run(t, "smpquery", "-D", "nodeinfo", route.String()))
		lid := checkPort(t, port, f.Run(t, "smpquery", "-D", "portinfo", route.String(), "0"))
		if lid == 0 {
			t.Fatalf("%s has no LID", route)
		}
		node.SetLID(lid)
		node.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
		port.PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, 0, nil)
		port.SetLID(lid)
		node.SetLID(lid)
		do(t, e, node, port)
		checkNode(t, node, f.Run(t, "smpquery", "nodeinfo", fmt.Sprint(lid)))
		checkPort(t, port, f.Run(t, "smpquery", "portinfo", fmt.Sprint(lid), "0"))
	}
}

func checkNode(t *testing.T, c *engine.Call, out string) {
	t.Helper()
	var n mad.NodeInfo
	n.Decode(c.Data())
	theirs := fields(out)
	got := map[string]string{
		"NodeType":     map[mad.NodeType]string{mad.NodeTypeCA: "Channel Adapter", mad.NodeTypeSwitch: "Switch"}[n.NodeType],
		"NumPorts":     fmt.Sprint(n.NumPorts),
		"SystemGuid":   n.SystemImageGUID.String(),
		"Guid":         n.NodeGUID.String(),
		"PortGuid":     n.PortGUID.String(),
		"PartCap":      fmt.Sprint(n.PartitionCap),
		"DevId":        fmt.Sprintf("%#04x", n.DeviceID),
		"Revision":     fmt.Sprintf("%#08x", n.Revision),
		"LocalPort":    fmt.Sprint(n.LocalPortNum),
		"VendorId":     fmt.Sprintf("%#06x", n.VendorID),
		"BaseVers":     fmt.Sprint(n.BaseVersion),
		"ClassVers":    fmt.Sprint(n.ClassVersion),
		"# Node info":  theirs["# Node info"],
		"GuidCap":      theirs["GuidCap"],
		"NodeDescript": theirs["NodeDescript"],
	}
	for _, name := range []string{"# Node info", "GuidCap", "NodeDescript"} {
		if _, ok := theirs[name]; !ok {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(theirs, got); diff != "" {
		t.Errorf("NodeInfo: -smpquery +ours\n%s", diff)
	}
}

func checkPort(t *testing.T, c *engine.Call, out string) mad.LID {
	t.Helper()
	var p mad.PortInfo
	p.Decode(c.Data())
	theirs := fields(out)
	got := map[string]string{
		"Lid":       fmt.Sprint(p.LID),
		"SMLid":     fmt.Sprint(p.MasterSMLID),
		"CapMask":   fmt.Sprintf("%#x", uint32(p.CapabilityMask)),
		"LocalPort": fmt.Sprint(p.LocalPortNum),
		"GidPrefix": fmt.Sprintf("%#016x", p.GIDPrefix),
	}
	for name, ours := range got {
		if theirs[name] != ours {
			t.Errorf("PortInfo: %s is %s, smpquery says %s", name, ours, theirs[name])
		}
	}
	return p.LID
}

// counted notes how many requests were on their way at most.
type counted struct {
	engine.Transport
	out, most atomic.Int32
}

func (c *counted) Send(d *engine.Datagram) error {
	if out := c.out.Add(1); out > c.most.Load() {
		c.most.Store(out) // there is one sender
	}
	return c.Transport.Send(d)
}

func (c *counted) TrySend(d *engine.Datagram) (bool, error) {
	out := c.out.Add(1)
	sent, err := c.Transport.TrySend(d)
	if !sent {
		c.out.Add(-1)
	} else if out > c.most.Load() {
		c.most.Store(out)
	}
	return sent, err
}

func (c *counted) Recv(d *engine.Datagram) error {
	err := c.Transport.Recv(d)
	c.out.Add(-1)
	return err
}

// Thousands of MADs with as many outstanding as we may; nothing gets lost.
func TestMany(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{})
	tr := &counted{Transport: attach(t, ibsim.Options{Socket: f.Name})}
	// Each is sent once, however busy the machine: what was lost stays lost.
	e := engine.New(tr, engine.Options{Window: 1000, Timeout: time.Minute, Retries: -1})
	defer e.Close()
	calls := make([]*engine.Call, 20000)
	for i := range calls { // host, leaf, spine, leaf, host
		calls[i] = nodeInfo(mad.DirectedRoute{0, 1, 5 + uint8(i/16)%2, 1 + uint8(i/4)%4, 1 + uint8(i)%4})
	}
	do(t, e, calls...)
	for i, c := range calls {
		var n mad.NodeInfo
		n.Decode(c.Data())
		leaf, host := i/4%4, i%4
		if want := mad.GUID(0x0002c90300000010 + 0x10*(5*leaf+host)); n.NodeGUID != want {
			t.Fatalf("call %d brought %v, want %v", i, n.NodeGUID, want)
		}
	}
	s := e.Stats()
	if want := (engine.Counts{Sent: 20000, Answered: 20000}); s.Counts != want {
		t.Errorf("stats %+v, want %+v", s.Counts, want)
	}
	if most := tr.most.Load(); most > 128 {
		t.Errorf("%d requests were on their way at once: more than 128 can wedge ibsim", most)
	}
}

// Many clients at once, each of whom sends while ibsim has answers for it.
func TestManyClients(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{})
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			e := connect(t, ibsim.Options{Socket: f.Name, Node: fmt.Sprintf("host-%d-%d", i/4, i%4)}, engine.Options{Window: 128})
			calls := make([]*engine.Call, 2000)
			for i := range calls {
				calls[i] = nodeInfo(mad.DirectedRoute{0, 1, 5 + uint8(i/4)%2, 1 + uint8(i)%4})
			}
			do(t, e, calls...)
		})
	}
}

// What cannot be delivered comes back at once.
func TestUndelivered(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	tr := attach(t, ibsim.Options{Socket: f.Name})
	byLID := nodeInfo(nil)
	byLID.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
	byLID.SetLID(99)
	perf := &engine.Call{}
	perf.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
	perf.SetLID(98)
	for i, c := range []*engine.Call{nodeInfo(mad.DirectedRoute{0, 1, 4}), byLID, perf} {
		binary.BigEndian.PutUint64(c.MAD[8:], uint64(1000+i))
		if err := send(tr, c); err != nil {
			t.Fatal(err)
		}
		var d engine.Datagram
		if err := tr.Recv(&d); err != nil {
			t.Fatal(err)
		}
		want := engine.Datagram{Address: c.To, Undelivered: true, MAD: c.MAD[:]}
		if diff := cmp.Diff(want, d); diff != "" {
			t.Errorf("-sent +came back\n%s", diff)
		}
	}
	// The fourth that comes back is the last; where ibsim takes more than 100 ms, one
	// more may have been sent meanwhile. It does not wait for the timeout.
	e := engine.New(tr, engine.Options{Timeout: time.Minute, Retries: 1})
	defer e.Close()
	c := nodeInfo(mad.DirectedRoute{0, 1, 4})
	e.Do(t.Context(), c)
	most := 4 + int(c.Elapsed/(100*time.Millisecond)) // the pauses are 70 ms
	if !errors.Is(c.Err, engine.ErrTimeout) || c.Attempts < 4 || c.Attempts > most || c.Elapsed > time.Minute {
		t.Errorf("%v after %d attempts and %v, want a timeout after 4", c.Err, c.Attempts, c.Elapsed)
	}
	// One link that comes back is reached again.
	f.Console(t, `Unlink "s0"[1]`)
	c = nodeInfo(mad.DirectedRoute{0, 1, 1})
	if e.Do(t.Context(), c); !errors.Is(c.Err, engine.ErrTimeout) {
		t.Errorf("over a dead link: %v", c.Err)
	}
	f.Console(t, `ReLink "s0"[1]`)
	do(t, e, nodeInfo(mad.DirectedRoute{0, 1, 1}))
}

// Harm is refused by the transport, which goes on working.
func TestRefused(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{})
	e := connect(t, ibsim.Options{Socket: f.Name}, engine.Options{})
	c := &engine.Call{}
	c.PutSMP(mad.MethodGet, mad.AttrPKeyTable.ID, 0xffff<<16, nil)
	c.SetRoute(mad.DirectedRoute{0, 1})
	e.Do(t.Context(), c)
	want := "port 65535: the highest valid number is 254"
	var refusal *engine.SendError
	if !errors.As(c.Err, &refusal) || refusal.Error() != want {
		t.Errorf("got  %v\nwant %s", c.Err, want)
	}
	do(t, e, nodeInfo(mad.DirectedRoute{0, 1}))
}

// A client with ISSM, or with the queue pair that they name, gets the requests
// to its node, and its responses find back to who asked.
func TestServe(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.Net(t, "ring"), ibsimtest.FixtureOptions{SM: "h0"})
	for _, c := range []struct {
		name           string
		server, client ibsim.Options
		to, from       uint32 // queue pairs; from 0: any above 1
	}{
		{"subnet manager's", ibsim.Options{ISSM: true}, ibsim.Options{}, 1, 0},
		{"queue pair", ibsim.Options{QP: 7}, ibsim.Options{}, 7, 0},
		{"own queue pair", ibsim.Options{ISSM: true}, ibsim.Options{QP: 9}, 1, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.server.Socket, c.server.Node = f.Name, "h3"
			c.client.Socket, c.client.Node = f.Name, "h1"
			serve(t, c.server, c.client, c.to, c.from)
		})
	}
}

// serve has a client ask a server on queue pair to, who answers to the one
// that the request is from.
func serve(t *testing.T, so, co ibsim.Options, to, from uint32) {
	server := attach(t, so)
	served := make(chan engine.Datagram, 1)
	go func() {
		defer close(served)
		var d engine.Datagram
		if server.Recv(&d) != nil {
			return
		}
		served <- engine.Datagram{Address: d.Address}
		d.MAD[3] |= byte(mad.Response)
		d.MAD[100] = 42
		server.Send(&d)
	}()
	e := connect(t, co, engine.Options{})
	theirs, err := server.Port()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := e.Port()
	if err != nil {
		t.Fatal(err)
	}
	c := &engine.Call{}
	c.PutSA(mad.MethodGet, mad.AttrNodeRecord.ID, 0, 0, nil)
	c.SetLID(theirs.LID)
	c.To.QP = to
	do(t, e, c)
	if c.MAD[100] != 42 {
		t.Errorf("the answer is not the server's:\n%x", c.MAD)
	}
	d := <-served
	if from == 0 {
		if from = e.Traits().QP; from < 2 {
			t.Errorf("the client has queue pair %d", from)
		}
	}
	if want := (engine.Address{LID: ours.LID, QP: from}); d.Address != want {
		t.Errorf("the server saw %+v, want %+v", d.Address, want)
	}
}

// nodeRecords asks OpenSM for the NodeRecords that fit want, or all.
func nodeRecords(e *engine.Engine, m mad.Method, mask uint64, want *mad.NodeRecord) (*engine.Call, error) {
	p, err := e.Port()
	if err != nil {
		return nil, err
	}
	record := make([]byte, mad.AttrNodeRecord.Size)
	if want != nil {
		want.Encode(record)
	}
	c := &engine.Call{Timeout: time.Minute} // what is sent again is counted
	c.PutSA(m, mad.AttrNodeRecord.ID, 0, mask, record)
	c.SetLID(p.SMLID)
	return c, nil
}

const nodeRecordLID = 1 << 0 // component mask

// names are the descriptions in NodeRecords, by LID.
func names(t *testing.T, c *engine.Call) map[mad.LID]string {
	t.Helper()
	records, err := c.Records(mad.AttrNodeRecord.Size)
	if err != nil {
		t.Fatal(err)
	}
	m := map[mad.LID]string{}
	for b := range records {
		var r mad.NodeRecord
		r.Decode(b)
		m[r.LID] = r.NodeDescription.String()
	}
	return m
}

func TestSA(t *testing.T) {
	t.Parallel()
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{SM: "host-1-1"})
	e := connect(t, ibsim.Options{Socket: f.Name, Node: "host-2-2"}, engine.Options{})
	p, err := e.Port()
	if err != nil {
		t.Fatal(err)
	}
	us := map[mad.LID]string{p.LID: "host-2-2 HCA-1"}
	for _, m := range []mad.Method{mad.MethodGet, mad.MethodGetTable} {
		c, err := nodeRecords(e, m, nodeRecordLID, &mad.NodeRecord{LID: p.LID})
		if err != nil {
			t.Fatal(err)
		}
		do(t, e, c)
		if diff := cmp.Diff(us, names(t, c)); diff != "" {
			t.Errorf("%v: -want +got\n%s", m, diff)
		}
	}
	none, err := nodeRecords(e, mad.MethodGetTable, nodeRecordLID, &mad.NodeRecord{LID: 0xbff0})
	if err != nil {
		t.Fatal(err)
	}
	do(t, e, none)
	if got := names(t, none); len(got) != 0 || none.Table == nil {
		t.Errorf("records of a LID that nobody has: %v", got)
	}
	// More than ibsim's library for C programs lets through: an error, never
	// a part of it.
	all, err := nodeRecords(e, mad.MethodGetTable, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Do(t.Context(), all)
	if !errors.Is(all.Err, engine.ErrCut) {
		t.Errorf("a table of 22 records: %v, want %v", all.Err, engine.ErrCut)
	}
}

// A table of thousands of records comes whole where OpenSM makes segments.
func TestWholeTable(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const leaves, spines, hosts = 32, 4, 64
	f := ibsimtest.Start(t, ibsimtest.FatTree(leaves, spines, hosts), ibsimtest.FixtureOptions{SM: "host-7-7", RMPP: true})
	e := connect(t, ibsim.Options{Socket: f.Name}, engine.Options{})
	c, err := nodeRecords(e, mad.MethodGetTable, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	do(t, e, c)
	got := map[string]int{}
	for _, name := range names(t, c) {
		kind, _, _ := strings.Cut(name, "-")
		got[kind]++
	}
	if diff := cmp.Diff(map[string]int{"leaf": leaves, "spine": spines, "host": leaves * hosts}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// Those that fit in one segment.
	p, err := e.Port()
	if err != nil {
		t.Fatal(err)
	}
	one, err := nodeRecords(e, mad.MethodGetTable, nodeRecordLID, &mad.NodeRecord{LID: p.LID})
	if err != nil {
		t.Fatal(err)
	}
	do(t, e, one)
	if diff := cmp.Diff(map[mad.LID]string{p.LID: "host-0-0 HCA-1"}, names(t, one)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s := e.Stats(); s.Sent != 2 || s.Answered != 2 {
		t.Errorf("stats %+v, want two requests and their answers, and no ACK", s)
	}
	t.Logf("%d records in %v", len(names(t, c)), c.Elapsed)
}
