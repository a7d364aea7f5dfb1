package sa_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"fabsh/fabric/discover"
	"fabsh/fabric/sa"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

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
