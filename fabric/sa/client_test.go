package sa_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
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
