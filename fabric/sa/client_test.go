package sa_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/discover"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// logged is a transport whose port says what is asked for here, and that logs
// how packets are addressed.
type logged struct {
	engine.Transport
	port func(*engine.Port)

	mu   sync.Mutex
	sent []string
}

func (l *logged) Port() (engine.Port, error) {
	p, err := l.Transport.Port()
	l.port(&p)
	return p, err
}

func (l *logged) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	l.mu.Lock()
	l.sent = append(l.sent, fmt.Sprintf("%s to %v, QP %d, SL %d, P_Key index %d", mad.Lookup(h.Class, h.Attribute).Name, d.Address, d.QP, d.SL, d.PKeyIndex))
	l.mu.Unlock()
	return l.Transport.Send(d)
}

func (l *logged) TrySend(d *engine.Datagram) (bool, error) { return true, l.Send(d) }

// take is what was sent since the last time, once each, sorted.
func (l *logged) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := l.sent
	l.sent = nil
	slices.Sort(sent)
	return slices.Compact(sent)
}

// TestClientAddress: requests of all kinds go where the port says, or where the
// Client's fields say, if they are set.
func TestClientAddress(t *testing.T) {
	const (
		byPort   = " to LID 3, QP 1, SL 5, P_Key index 2"
		byClient = " to LID 3, QP 1, SL 7, P_Key index 1"
		smp      = " to LID 3, QP 0, SL 0, P_Key index 0"
	)
	sl := uint8(7)
	for _, use := range []struct {
		name string
		do   func(t *testing.T, c *sa.Client) error
		want []string // what goes to the subnet administrator
		also []string
	}{
		{"query", func(t *testing.T, c *sa.Client) error {
			_, err := c.Query(t.Context(), sa.NewRequest(mad.MethodGet, mad.AttrNodeRecord, &mad.NodeRecord{LID: 1}, "lid"))
			return err
		}, []string{"NodeRecord"}, nil},
		{"table", func(t *testing.T, c *sa.Client) error {
			records, err := c.Table(t.Context(), sa.NewRequest(mad.MethodGetTable, mad.AttrNodeRecord, nil))
			if n := len(slices.Collect(records)); n != 4 {
				t.Errorf("%d records", n)
			}
			return err
		}, []string{"NodeRecord"}, nil},
		{"path", func(t *testing.T, c *sa.Client) error {
			path, err := c.Path(t.Context(), mad.MakeGID(0xfe80000000000000, 0x0002c90310000001))
			if path.DLID != 3 {
				t.Errorf("the path leads to LID %d", path.DLID)
			}
			return err
		}, []string{"PathRecord"}, nil},
		{"via the SA", func(t *testing.T, c *sa.Client) error {
			f, err := discover.ViaSA(t.Context(), c, discover.Options{})
			if err == nil && len(f.Nodes()) != 4 {
				t.Error(f)
			}
			return err
		}, []string{"LinkRecord", "NodeRecord", "PortInfoRecord", "SwitchInfoRecord"}, nil},
		{"guard", func(t *testing.T, c *sa.Client) error {
			sm, err := c.FindSM(t.Context(), nil)
			if sm == nil || sm.LID != 3 || sm.Info == nil {
				t.Errorf("found %v", sm)
			}
			return err
		}, []string{"ClassPortInfo"}, []string{"SMInfo" + smp}},
		{"subscription", func(t *testing.T, c *sa.Client) error {
			s := sa.NewSubscriber(c)
			defer s.Close()
			_, err := s.Subscribe(t.Context(), trap(64))
			return err
		}, []string{"InformInfo"}, []string{"SMInfo" + smp}},
	} {
		for _, given := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, given %v", use.name, given), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := byPort
					l := &logged{Transport: attachRing(t), port: func(p *engine.Port) {
						p.SMSL, p.PKeys = 5, []uint16{0x8001, 0x7fff, 0xffff}
						if given {
							p.SMLID = 0
						}
					}}
					c := &sa.Client{Engine: engine.New(l, engine.Options{Write: true})}
					defer c.Engine.Close()
					setPKeys(t, c.Engine, 0x8001, 0x7fff, 0xffff)
					l.take()
					if given {
						c.SMLID, c.SL, c.PKey, to = 3, &sl, 0x7fff, byClient
					}
					if err := use.do(t, c); err != nil {
						t.Error(err)
					}
					want := slices.Clone(use.also)
					for _, attr := range use.want {
						want = append(want, attr+to)
					}
					slices.Sort(want)
					if diff := cmp.Diff(want, l.take()); diff != "" {
						t.Errorf("sent (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// TestClientRefuses: without a subnet administrator, or with a P_Key that the
// port does not have, nothing is sent.
func TestClientRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		port func(*engine.Port)
		pkey uint16
		want string
		sm   string // the error of FindSM
	}{
		{"no subnet manager", func(p *engine.Port) { p.SMLID = 0 }, 0,
			"the local port has no subnet manager (its SM LID is 0); start one (systemctl start opensm on one host, or in a managed switch) or give its LID with --sm-lid; discover() works without one", "<nil>"},
		{"no P_Key", func(p *engine.Port) { p.PKeys = []uint16{0xffff, 0x8001} }, 0x8002,
			"the local port is not in the partition of --pkey 0x8002: it has 0xffff, 0x8001; the subnet manager sets them (OpenSM: partitions.conf)", "the local port is not in the partition of --pkey 0x8002: it has 0xffff, 0x8001; the subnet manager sets them (OpenSM: partitions.conf)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &logged{Transport: attachRing(t), port: test.port}
				c := &sa.Client{Engine: engine.New(l, engine.Options{Write: true}), PKey: test.pkey}
				defer c.Engine.Close()
				s := sa.NewSubscriber(c)
				defer s.Close()
				_, query := c.Query(t.Context(), sa.NewRequest(mad.MethodGet, mad.AttrNodeRecord, nil))
				_, table := c.Table(t.Context(), sa.NewRequest(mad.MethodGetTable, mad.AttrNodeRecord, nil))
				_, path := c.Path(t.Context(), mad.GID{})
				_, sweep := discover.ViaSA(t.Context(), c, discover.Options{})
				_, subscribed := s.Subscribe(t.Context(), trap(64))
				for what, err := range map[string]error{"query": query, "table": table, "path": path, "sweep": sweep, "subscription": subscribed} {
					if fmt.Sprint(err) != test.want {
						t.Errorf("%s: %v, want %s", what, err, test.want)
					}
				}
				if _, err := c.FindSM(t.Context(), nil); fmt.Sprint(err) != test.sm {
					t.Errorf("FindSM: %v, want %s", err, test.sm)
				}
				if sent := l.take(); len(sent) > 0 {
					t.Errorf("sent %v", sent)
				}
			})
		})
	}
}

// TestTableEmpty: that there are no records is no error, whether the subnet
// administrator says so by an empty table or by a status.
func TestTableEmpty(t *testing.T) {
	for _, status := range []mad.Status{0, mad.StatusNoRecords, mad.StatusRequestInvalid} {
		synctest.Test(t, func(t *testing.T) {
			c := &sa.Client{Engine: engine.New(&faulty{Transport: attachRing(t), status: status}, engine.Options{})}
			defer c.Engine.Close()
			records, err := c.Table(t.Context(), sa.NewRequest(mad.MethodGetTable, mad.AttrNodeRecord, &mad.NodeRecord{LID: 99}, "lid"))
			var e *engine.Error
			switch {
			case status == mad.StatusRequestInvalid:
				if !errors.As(err, &e) || e.Status != status {
					t.Error(err)
				}
			case err != nil || len(slices.Collect(records)) > 0:
				t.Errorf("status %v: %v", status, err)
			}
		})
	}
}

// setPKeys sets the first entries of the P_Key table of the local port.
func setPKeys(t *testing.T, e *engine.Engine, keys ...uint16) {
	t.Helper()
	var block []byte
	for _, key := range keys {
		block = binary.BigEndian.AppendUint16(block, key)
	}
	c := new(engine.Call)
	c.PutSMP(mad.MethodSet, mad.AttrPKeyTable.ID, 0, block)
	c.SetRoute(mad.DirectedRoute{0})
	if err := e.Do(t.Context(), c); err != nil || c.Err != nil {
		t.Fatal(err, c.Err)
	}
}

// TestFindSM: any answer but NOT-ACTIVE means that there is a subnet manager.
func TestFindSM(t *testing.T) {
	const there = "a subnet manager with GUID 0x0002c90310000001 at LID 3, priority 14, state master"
	none := func(h mad.Header, data []byte) {
		switch {
		case h.Attribute == mad.AttrSMInfo.ID && h.Class.Family() == mad.ClassSubn:
			mad.AttrSMInfo.Field("sm_state").SetUint(data, uint64(mad.SMStateNotActive))
		}
	}
	for _, test := range []struct {
		name   string
		answer func(mad.Header, []byte)
		lost   func(*engine.Datagram) bool
		port   func(*engine.Port)
		want   string
	}{
		{"master", nil, nil, nil, there},
		{"the port knows of none", nil, nil, func(p *engine.Port) { p.SMLID = 0 }, "none"},
		{"all silent", nil, func(*engine.Datagram) bool { return true }, nil, "none"},
		{"not active, but the administrator answers", none, nil, nil, "a subnet manager at LID 3"},
		{"not active, and the administrator is silent", none, func(d *engine.Datagram) bool { return d.QP == 1 }, nil, "none"},
		{"only the administrator", nil, func(d *engine.Datagram) bool { return d.QP == 0 }, nil, "a subnet manager at LID 3"},
		{"only by directed route", nil, func(d *engine.Datagram) bool { return d.LID != mad.PermissiveLID }, nil, there},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole := engine.New(attachRing(t), engine.Options{})
				defer whole.Close()
				f, err := discover.Sweep(t.Context(), whole, discover.Options{})
				if err != nil {
					t.Fatal(err)
				}
				e := engine.New(&faulty{Transport: attachRing(t), answer: test.answer, lost: test.lost, port: test.port}, engine.Options{})
				defer e.Close()
				sm, err := (&sa.Client{Engine: e}).FindSM(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				got := "none"
				if sm != nil {
					got = sm.String()
				}
				if got != test.want {
					t.Errorf("found %s, want %s", got, test.want)
				}
			})
		})
	}
}

// TestFindSMRefused: a refusal is an answer, unless it is of an agent that knows no
// subnet manager, and a request that was not sent is
// an error, not silence.
func TestFindSMRefused(t *testing.T) {
	for _, test := range []struct {
		name    string
		class   mad.Class // of what is heard
		status  mad.Status
		broken  error
		sm, err string
	}{
		{name: "refusal", class: mad.ClassSubn, status: mad.StatusBadValue, sm: "a subnet manager at LID 3"},
		{name: "no such attribute", class: mad.ClassSubn, status: mad.StatusBadMethodAttribute},
		{name: "redirection", class: mad.ClassSubnAdm, status: mad.StatusRedirect, sm: "a subnet manager at LID 3"},
		{name: "transport gone", broken: errors.New("unplugged"), err: "SubnGet(SMInfo) to LID 3: unplugged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine.New(&faulty{
					Transport: attachRing(t),
					lost:      func(d *engine.Datagram) bool { return mad.ParseHeader(d.MAD).Class != test.class },
					status:    test.status,
					broken:    test.broken,
				}, engine.Options{})
				defer e.Close()
				sm, err := (&sa.Client{Engine: e}).FindSM(t.Context(), nil)
				got := ""
				if sm != nil {
					got = sm.String()
				}
				if got != test.sm {
					t.Errorf("found %q, want %q", got, test.sm)
				}
				if (err != nil || test.err != "") && (err == nil || err.Error() != test.err) {
					t.Errorf("got %v, want %s", err, test.err)
				}
			})
		})
	}
}

// attachRing opens the port of the first CA of a ring of two switches.
func attachRing(t *testing.T) engine.Transport {
	t.Helper()
	f, o, err := sim.Parse("ring:n=2")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// faulty is a transport that loses what lost says, changes answers and the facts
// of the port, or is broken.
type faulty struct {
	engine.Transport
	answer func(mad.Header, []byte)
	lost   func(*engine.Datagram) bool
	port   func(*engine.Port)
	status mad.Status
	broken error
}

func (f *faulty) Send(d *engine.Datagram) error {
	switch {
	case f.broken != nil:
		return f.broken
	case f.lost != nil && f.lost(d):
		return nil
	}
	return f.Transport.Send(d)
}

func (f *faulty) TrySend(d *engine.Datagram) (bool, error) { return true, f.Send(d) }

func (f *faulty) Recv(d *engine.Datagram) error {
	if err := f.Transport.Recv(d); err != nil {
		return err
	}
	h := mad.ParseHeader(d.MAD)
	if f.status != 0 {
		h.Status = f.status
		h.Put(d.MAD)
	}
	if f.answer != nil {
		f.answer(h, d.MAD[h.Class.DataOffset():])
	}
	return nil
}

func (f *faulty) Port() (engine.Port, error) {
	p, err := f.Transport.Port()
	if f.port != nil {
		f.port(&p)
	}
	return p, err
}

// TestFindSMElsewhere: a subnet manager is looked for where the port has it and
// where Client.SMLID has it, so that neither hides the other.
func TestFindSMElsewhere(t *testing.T) {
	const (
		there = "a subnet manager with GUID 0x0002c90310000001 at LID 3, priority 14, state master"
		dead  = 99
	)
	for _, test := range []struct {
		client, port, silent mad.LID
		smps                 bool // come through
		want                 string
	}{
		{3, 0, 0, true, there},
		{0, 3, 0, true, there},
		{3, dead, dead, true, there},
		{dead, 3, dead, true, there},
		{4, 3, 4, true, there},
		{3, dead, 0, false, "a subnet manager at LID 3"},
		{dead, 3, 0, false, "a subnet manager at LID 3"},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := engine.New(&faulty{
				Transport: attachRing(t),
				port:      func(p *engine.Port) { p.SMLID = test.port },
				lost:      func(d *engine.Datagram) bool { return d.LID == test.silent || d.QP == 0 && !test.smps },
			}, engine.Options{})
			defer e.Close()
			sm, err := (&sa.Client{Engine: e, SMLID: test.client}).FindSM(t.Context(), nil)
			if err != nil || sm == nil || sm.String() != test.want {
				t.Errorf("%+v: found %v, %v", test, sm, err)
			}
		})
	}
}

// paths is a transport on which paths have service level 4, which counts the
// requests for paths.
type paths struct {
	engine.Transport
	gets, tables int
	answer       func(h mad.Header) bool // nil: all
	records      int                     // in a table, if that is one datagram
}

func (p *paths) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	if h.Attribute == mad.AttrPathRecord.ID {
		switch h.Method {
		case mad.MethodGet:
			p.gets++
		case mad.MethodGetTable:
			if d.MAD[mad.RMPPOffset+2] == 0 { // no ACK
				p.tables++
			}
		}
		if p.answer != nil && !p.answer(h) {
			return nil
		}
	}
	return p.Transport.Send(d)
}

func (p *paths) TrySend(d *engine.Datagram) (bool, error) { return true, p.Send(d) }

func (p *paths) Recv(d *engine.Datagram) error {
	err := p.Transport.Recv(d)
	if h := mad.ParseHeader(d.MAD); err == nil && h.Attribute == mad.AttrPathRecord.ID {
		records := 1
		if h.Method == mad.MethodGetTableResp {
			records = p.records
		}
		for i := range records {
			mad.AttrPathRecord.Field("sl").SetUint(d.MAD[mad.SADataOffset+i*mad.AttrPathRecord.Size:], 4)
		}
	}
	return err
}

// TestLearnPaths: one Get for each target, one GetTable for many; what is known
// is not asked for again, and where the administrator does not tell nothing is.
func TestLearnPaths(t *testing.T) {
	lids := func(from, to mad.LID) (list []mad.LID) {
		for lid := from; lid <= to; lid++ {
			list = append(list, lid, lid)
		}
		return list
	}
	silent := func(mad.Header) bool { return false }
	for _, test := range []struct {
		name         string
		spec         string
		answer       func(mad.Header) bool
		port         func(*engine.Port)
		steps        [][]mad.LID
		gets, tables int
		errs         []string
		to           mad.LID // of a packet
		sl           uint8   // that it takes
	}{
		{"few", "ring:n=40", nil, nil, [][]mad.LID{lids(1, 63), lids(1, 63), lids(60, 65)}, 65, 0, []string{"", "", ""}, 5, 4},
		{"many", "ring:n=40", nil, nil, [][]mad.LID{lids(1, 64), lids(1, 64), lids(1, 80)}, 0, 1, []string{"", "", ""}, 5, 0},
		{"many, of which two are there", "ring:n=1", nil, nil, [][]mad.LID{lids(1, 66), lids(1, 66)}, 64, 1,
			[]string{"SubnAdmGet(PathRecord) to LID 2: no records (status 0x0300)", ""}, 1, 4},
		{"no LID", "ring:n=40", nil, nil, [][]mad.LID{{0}}, 0, 0, []string{""}, 5, 0},
		{"few, silent", "ring:n=40", silent, nil, [][]mad.LID{lids(4, 5), lids(6, 7)}, 2, 0,
			[]string{"SubnAdmGet(PathRecord) to LID 41: timed out after 1 attempt in 1s", ""}, 5, 0},
		{"many, silent", "ring:n=40", silent, nil, [][]mad.LID{lids(1, 64), lids(1, 64)}, 0, 1,
			[]string{"SubnAdmGetTable(PathRecord) to LID 41: timed out after 1 attempt in 1s", ""}, 5, 0},
		{"unknown targets", "ring:n=40", nil, nil, [][]mad.LID{{5, 99}, {99}}, 2, 0, []string{"SubnAdmGet(PathRecord) to LID 41: no records (status 0x0300)", ""}, 5, 4},
		{"nobody to ask", "ring:n=40", nil, func(p *engine.Port) { p.SMLID = 0 }, [][]mad.LID{{5}, {6}}, 0, 0, []string{sa.ErrNoSM.Error(), ""}, 5, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, o, err := sim.Parse(test.spec)
				if err != nil {
					t.Fatal(err)
				}
				conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
				if err != nil {
					t.Fatal(err)
				}
				p := &paths{Transport: conn, answer: test.answer}
				if test.spec == "ring:n=1" {
					p.records = 2
				}
				c := &sa.Client{Engine: engine.New(p, engine.Options{Retries: -1})}
				defer c.Engine.Close()
				port, err := c.Engine.Port()
				if err != nil {
					t.Fatal(err)
				}
				if test.port != nil {
					test.port(&port)
				}
				var errs []string
				for _, lids := range test.steps {
					var unknown *sa.PathError
					err := c.LearnPaths(t.Context(), &port, lids)
					switch {
					case err == nil:
						errs = append(errs, "")
					case errors.As(err, &unknown):
						errs = append(errs, err.Error())
					default:
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(test.errs, errs); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				if p.gets != test.gets || p.tables != test.tables {
					t.Errorf("%d Gets and %d GetTables, want %d and %d", p.gets, p.tables, test.gets, test.tables)
				}
				var call engine.Call
				call.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
				if err := c.PutGMP(&call, &port, test.to); err != nil {
					t.Error(err)
				}
				if want := (engine.Address{LID: test.to, QP: 1, SL: test.sl}); call.To != want {
					t.Errorf("to %+v, want %+v", call.To, want)
				}
			})
		})
	}
}

// TestLearnPathsGiven: with a service level of its own the Client sends no request,
// and a P_Key that the port does not have is an error.
func TestLearnPathsGiven(t *testing.T) {
	sl := uint8(7)
	c := &sa.Client{SL: &sl, PKey: 0x7fff} // no Engine: asking would panic
	port := engine.Port{LID: 1, SMLID: 3, PKeys: []uint16{0x8001, 0xffff}}
	if err := c.LearnPaths(t.Context(), &port, []mad.LID{5}); err != nil {
		t.Error(err)
	}
	var call engine.Call
	call.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, nil)
	if err := c.PutGMP(&call, &port, 5); err != nil {
		t.Error(err)
	}
	if want := (engine.Address{LID: 5, QP: 1, SL: 7, PKeyIndex: 1}); call.To != want {
		t.Errorf("to %+v, want %+v", call.To, want)
	}
	c.PKey = 0x8002
	const want = "the local port is not in the partition of --pkey 0x8002: it has 0x8001, 0xffff; the subnet manager sets them (OpenSM: partitions.conf)"
	for _, err := range []error{c.LearnPaths(t.Context(), &port, []mad.LID{5}), c.PutGMP(&call, &port, 5)} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLearnPathsEnded: the end of the context is the error, and nothing is
// taken for known.
func TestLearnPathsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paths{Transport: attachRing(t)}
		c := &sa.Client{Engine: engine.New(p, engine.Options{})}
		defer c.Engine.Close()
		port, _ := c.Engine.Port()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		many := slices.Repeat([]mad.LID{1}, 1)
		if err := c.LearnPaths(ctx, &port, many); err != cause {
			t.Error(err)
		}
		if err := c.LearnPaths(t.Context(), &port, many); err != nil || p.gets != 1 {
			t.Errorf("%v, %d Gets", err, p.gets)
		}
	})
}

// redirecting is a transport over which all answers of one class that come from
// a LID redirect to a GID.
type redirecting struct {
	engine.Transport
	class  mad.Class
	from   mad.LID
	to     mad.GID
	silent mad.Class // requests of it are lost
	noSM   bool
	asked  []string
}

func (r *redirecting) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	words := fmt.Sprintf("%v to LID %d SL %d", h.Class, d.LID, d.SL)
	if h.Class == mad.ClassSubnAdm {
		var path mad.PathRecord
		path.Decode(d.MAD[mad.SADataOffset:])
		words += strings.ReplaceAll(fmt.Sprintf(" from %v to %v", path.SGID, path.DGID), r.to.String(), "us")
	}
	r.asked = append(r.asked, words)
	if h.Class == r.silent {
		return nil
	}
	return r.Transport.Send(d)
}

func (r *redirecting) TrySend(d *engine.Datagram) (bool, error) { return true, r.Send(d) }

func (r *redirecting) Recv(d *engine.Datagram) error {
	err := r.Transport.Recv(d)
	if h := mad.ParseHeader(d.MAD); err == nil && h.Class == r.class && d.LID == r.from {
		h.Status = mad.StatusRedirect
		h.Put(d.MAD)
		data := d.MAD[h.Class.DataOffset():]
		clear(data)
		info := mad.ClassPortInfo{RedirectQP: 1, RedirectGID: r.to}
		info.Encode(data)
	}
	return err
}

func (r *redirecting) Port() (engine.Port, error) {
	p, err := r.Transport.Port()
	if r.noSM {
		p.SMLID = 0
	}
	return p, err
}

// TestResolve: where an agent redirects to a GID alone, the subnet administrator
// is asked for the LID, once, as the client says; if it does not tell, the error
// says why.
func TestResolve(t *testing.T) {
	const asked, redirected = 1, "PerfGet(PortCounters) to LID 1: redirection required (status 0x0002): the agent redirects to GID %v without a LID, and "
	sl := uint8(7)
	for name, test := range map[string]*struct {
		r      redirecting
		client sa.Client
		asked  []string
		err    string
	}{
		"resolved": {redirecting{class: mad.ClassPerf}, sa.Client{},
			[]string{"Perf to LID 1 SL 0", "SubnAdm to LID 3 SL 0 from us to us", "Perf to LID 3 SL 0"}, ""},
		"no subnet manager but the client's": {redirecting{class: mad.ClassPerf, noSM: true}, sa.Client{SMLID: 3, SL: &sl},
			[]string{"Perf to LID 1 SL 0", "SubnAdm to LID 3 SL 7 from us to us", "Perf to LID 3 SL 0"}, ""},
		"no P_Key": {redirecting{class: mad.ClassPerf}, sa.Client{PKey: 0x8002},
			[]string{"Perf to LID 1 SL 0"}, redirected + "the query of the LID failed: the local port is not in the partition of --pkey 0x8002: it has 0xffff; the subnet manager sets them (OpenSM: partitions.conf)"},
		"no subnet manager": {redirecting{class: mad.ClassPerf, noSM: true}, sa.Client{},
			[]string{"Perf to LID 1 SL 0"}, redirected + "no subnet administrator can resolve it"},
		"silent": {redirecting{class: mad.ClassPerf, silent: mad.ClassSubnAdm}, sa.Client{},
			[]string{"Perf to LID 1 SL 0", "SubnAdm to LID 3 SL 0 from us to us"},
			redirected + "the query of the LID failed: SubnAdmGet(PathRecord) to LID 3: timed out after 1 attempt in 1s after 1 attempt"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := test.r
				r.Transport = attachRing(t)
				p, err := r.Transport.Port()
				if err != nil {
					t.Fatal(err)
				}
				r.from, r.to = asked, mad.MakeGID(p.GIDPrefix, p.PortGUID)
				e := engine.New(&r, engine.Options{Retries: -1, Resolve: test.client.Resolve})
				defer e.Close()
				c := new(engine.Call)
				c.PutPerf(mad.MethodGet, mad.AttrPortCounters.ID, 0, []byte{0, 1})
				c.SetLID(asked)
				if err := e.Do(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				got, want := fmt.Sprint(c.Err), "<nil>"
				if test.err != "" {
					want = fmt.Sprintf(test.err, r.to)
				}
				if got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if diff := cmp.Diff(test.asked, r.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}
