package trial

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	"fabsh/mad/capture"
	"fabsh/mad/engine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// buffer is a recording in memory.
type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

// subject is a trial of a simulated subnet.
type subject struct {
	spec   string
	budget int // 0: enough
	events time.Duration
	// wrap is between engine and subnet; nil: nothing is.
	wrap func(engine.Transport) engine.Transport
	// during runs while events are received; nil: nothing does.
	during func(*sim.Subnet, *fabric.Fabric)
	// names are names for all nodes; nil: the names in spec.
	names func(*fabric.Node) string

	fabric *fabric.Fabric

	before, after []byte // all that can be read of the subnet
	sent          []engine.Datagram
}

// run returns the report and the recording.
func (s *subject) run(t *testing.T) (report *Report, recording []byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, o, err := sim.Parse(s.spec)
		if err != nil {
			t.Fatal(err)
		}
		if s.names != nil {
			names := map[mad.GUID]string{}
			for i := range f.Nodes() {
				names[f.Nodes()[i].GUID()] = s.names(&f.Nodes()[i])
			}
			f = f.Renamed(names)
		}
		s.fabric = f
		subnet := sim.New(f, o)
		attach := func() engine.Transport {
			conn, err := subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		s.before = everything(t, attach())
		if s.budget == 0 {
			s.budget = 1 << 20
		}
		conn := engine.Transport(&tap{Transport: attach(), s: s})
		if s.wrap != nil {
			conn = s.wrap(conn)
		}
		var file buffer
		tr, err := capture.Record(NewBudget(conn, s.budget), &file)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(tr, engine.Options{})
		sleep := func(ctx context.Context, d time.Duration) error {
			if s.during != nil {
				s.during(subnet, f)
			}
			time.Sleep(d)
			return nil
		}
		report, err = Run(t.Context(), RunOptions{Client: &sa.Client{Engine: e}, Events: s.events, Sleep: sleep})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		recording = file.Bytes()
		s.after = everything(t, attach())
	})
	return report, recording
}

// tap notes what is sent.
type tap struct {
	engine.Transport
	s *subject
}

func (p *tap) Send(d *engine.Datagram) error {
	p.s.note(d)
	return p.Transport.Send(d)
}

func (p *tap) TrySend(d *engine.Datagram) (bool, error) {
	sent, err := p.Transport.TrySend(d)
	if sent {
		p.s.note(d)
	}
	return sent, err
}

func (s *subject) note(d *engine.Datagram) {
	s.sent = append(s.sent, engine.Datagram{Address: d.Address, MAD: bytes.Clone(d.MAD)})
}

// everything is a snapshot of all that can be read over a transport.
func everything(t *testing.T, conn engine.Transport) []byte {
	t.Helper()
	e := engine.New(conn, engine.Options{})
	defer e.Close()
	f, err := discover.Sweep(t.Context(), e, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := device.ReadAnswers(t.Context(), &sa.Client{Engine: e}, f, func() time.Time { return time.Unix(0, 0) })
	if err != nil {
		t.Fatal(err)
	}
	more, err := device.ReadExtended(t.Context(), e, f.With(r))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := format.WriteSnapshot(&file, f.With(r).With(more)); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// replayed is the report of the trial of a recording.
func replayed(t *testing.T, recording []byte, events time.Duration) (report *Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := capture.Load(bytes.NewReader(recording), "trial.pcap")
		if err != nil {
			t.Fatal(err)
		}
		tr := capture.NewReplay(r)
		e := engine.New(tr, engine.Options{})
		defer e.Close()
		notices := func() (list []mad.Notice) {
			for _, m := range tr.Reports() {
				var n mad.Notice
				n.Decode(m[mad.SADataOffset:])
				list = append(list, n)
			}
			return list
		}
		report, err = Run(t.Context(), RunOptions{Client: &sa.Client{Engine: e}, Events: events, Sleep: tr.Sleep, Recorded: notices})
		if err != nil {
			t.Fatal(err)
		}
	})
	return report
}

// TestReports: on devices with and without registers and adaptive routing, with loss, dead and
// protected, the report is correct about what each lacks, the recording replays to an equal
// report, with other names and GUIDs too, and nothing of the subnet has changed.
func TestReports(t *testing.T) {
	for _, tt := range []struct{ name, spec string }{
		{"adaptive", "fattree:k=4,levels=2,registers=yes,ar=updn,ar_with=hbf+pfrn,vports=2"},
		{"plain", "ring:n=3"},
		{"lossy", "fattree:k=4,levels=2,registers=yes,loss=0.05,seed=3"},
		{"dead", "fattree:k=4,levels=2,dead=leaf-2"},
		{"level0", "ring:n=3,mkey=0x1234,mkey_level=0"},
		{"protected", "ring:n=3,mkey=0x1234,mkey_level=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &subject{spec: tt.spec, events: time.Minute, during: func(subnet *sim.Subnet, f *fabric.Fabric) {
				for _, trap := range []int{128, 131} {
					if err := subnet.Notices.SendTrap(trap, f.OfType(mad.NodeTypeSwitch)[0].GUID(), 1, nil); err != nil {
						t.Error(err)
					}
				}
			}}
			report, recording := s.run(t)
			golden(t, filepath.Join("testdata", tt.name+".txt"), report.String())
			if tt.name != "lossy" && !bytes.Equal(s.before, s.after) {
				t.Error("the subnet has changed")
			}
			anonymous, err := capture.Anonymize(recording)
			if err != nil {
				t.Fatal(err)
			}
			for what, file := range map[string][]byte{"replayed": recording, "replayed anonymously": anonymous.Recording} {
				if d := cmp.Diff(report.String(), replayed(t, file, time.Minute).String()); d != "" {
					t.Errorf("%s (-want +got):\n%s", what, d)
				}
			}
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// TestNeverWrites: each datagram of a trial only reads, except for the subscription.
func TestNeverWrites(t *testing.T) {
	s := &subject{spec: "fattree:k=4,levels=2,registers=yes,ar=updn", events: time.Minute}
	s.run(t)
	session := 0
	for _, d := range s.sent {
		h := mad.ParseHeader(d.MAD)
		switch {
		case h.Class == mad.ClassSubnAdm && h.Attribute == mad.AttrInformInfo.ID && h.Method == mad.MethodSet:
			session++
		case h.Method == mad.MethodReportResp:
		case mad.EffectOfMAD(d.MAD) != mad.EffectRead && !mad.IsSegment(d.MAD):
			t.Errorf("sent %v", h)
		}
	}
	if session != 4 {
		t.Errorf("%d requests for subscriptions, want 4", session)
	}
	if _, err := Run(t.Context(), RunOptions{Client: &sa.Client{Engine: engine.New(nowhere{}, engine.Options{Write: true})}}); !errors.Is(err, ErrWrites) {
		t.Errorf("with an engine that may write: %v", err)
	}
}

// nowhere is a transport without a fabric.
type nowhere struct{ engine.Basic }

func (nowhere) Send(*engine.Datagram) error { return io.EOF }
func (nowhere) Recv(*engine.Datagram) error { return engine.ErrClosed }
func (nowhere) Port() (engine.Port, error)  { return engine.Port{}, io.EOF }
func (nowhere) Traits() engine.Traits       { return engine.Traits{} }
func (nowhere) Close() error                { return nil }

// TestEverything: each attribute and register that fabsh can read is in the report.
func TestEverything(t *testing.T) {
	r, _ := (&subject{spec: "ring:n=3,registers=yes"}).run(t)
	for _, a := range allAttributes() {
		if !slices.ContainsFunc(r.results(), func(x *Result) bool { return x.Attribute == a.Name }) {
			t.Errorf("%v %s is not in the report", a.Class, a.Name)
		}
	}
	if n := len(allAttributes()); n < 130 {
		t.Errorf("only %d attributes", n)
	}
}

// deaf loses the requests to nodes that are not the local one, after some.
type deaf struct {
	engine.Transport
	after int
	lost  map[string]int // by route or LID
}

func (d *deaf) Send(m *engine.Datagram) error {
	to := "LID " + m.Address.String()
	if mad.Class(m.MAD[mad.ClassOffset]) == mad.ClassSubnDirected {
		to = mad.RouteOf(m.MAD).String()
	}
	if d.after--; d.after < 0 && strings.HasPrefix(to, "0,") {
		d.lost[to]++
		return nil
	}
	return d.Transport.Send(m)
}

func (d *deaf) BeforeWait(func() bool) bool { return false }

// TestSilent: a device that timed out three times is not queried again.
func TestSilent(t *testing.T) {
	lost := map[string]int{}
	s := &subject{spec: "ring:n=3", wrap: func(tr engine.Transport) engine.Transport { return &deaf{tr, 150, lost} }}
	r, _ := s.run(t)
	if len(lost) == 0 {
		t.Fatal("nothing was lost")
	}
	for to, n := range lost {
		if n > 3*6 { // 3 requests, each sent 6 times
			t.Errorf("%d datagrams to %s, want at most 18", n, to)
		}
	}
	timeouts := map[string]int{}
	for _, d := range r.devices() {
		for _, x := range d.Results {
			if x.Outcome == TimedOut {
				timeouts[d.Name]++
			}
		}
	}
	for name, n := range timeouts {
		if n > 3 {
			t.Errorf("%s: %d requests timed out", name, n)
		}
	}
	if len(timeouts) == 0 || r.Clean() {
		t.Errorf("timeouts %v, clean %v", timeouts, r.Clean())
	}
}

// discarding loses the SMPs of vendors, as agents do that do not have them.
type discarding struct{ engine.Transport }

func (d *discarding) Send(m *engine.Datagram) error {
	if h := mad.ParseHeader(m.MAD); h.Class.Family() == mad.ClassSubn && h.Attribute >= 0xff00 {
		return nil
	}
	return d.Transport.Send(m)
}

func (*discarding) BeforeWait(func() bool) bool { return false }

// TestUnannounced: a device that discards the question what it announces is asked for nothing
// that it has to announce, and the recording, which has that question, replays to an equal report.
func TestUnannounced(t *testing.T) {
	s := &subject{spec: "ring:n=3,registers=yes", wrap: func(tr engine.Transport) engine.Transport { return &discarding{tr} }}
	r, recording := s.run(t)
	golden(t, "testdata/discarding.txt", r.String())
	if d := cmp.Diff(r.String(), replayed(t, recording, 0).String()); d != "" {
		t.Errorf("replayed (-want +got):\n%s", d)
	}
}

// TestProtected: a device with an M_Key is sent nothing after the sweep.
func TestProtected(t *testing.T) {
	s := &subject{spec: "ring:n=3,mkey=0x1234,mkey_level=0"}
	swept := -1
	synctest.Test(t, func(t *testing.T) {
		f, o, err := sim.Parse(s.spec)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(&tap{Transport: conn, s: s}, engine.Options{})
		defer e.Close()
		_, err = Run(t.Context(), RunOptions{Client: &sa.Client{Engine: e}, Chosen: func(*fabric.Fabric, []*Device) { swept = len(s.sent) }})
		if err != nil {
			t.Fatal(err)
		}
	})
	for _, d := range s.sent[swept:] {
		if h := mad.ParseHeader(d.MAD); h.Class != mad.ClassSubnAdm {
			t.Errorf("sent after the sweep: %v", h)
		}
	}
}

// TestBudget: no more datagrams are sent than announced, and the report shows that some
// requests are missing.
func TestBudget(t *testing.T) {
	for _, budget := range []int{50, 100, 300, 500} {
		s := &subject{spec: "fattree:k=4,levels=2,loss=0.05", budget: budget, events: time.Minute}
		r, _ := s.run(t)
		if len(s.sent) > budget {
			t.Errorf("budget %d: %d datagrams", budget, len(s.sent))
		}
		if !strings.Contains(r.String(), "the budget of datagrams is used up") {
			t.Errorf("budget %d is not in the report:\n%s", budget, r)
		}
	}
}

// allAttributes returns all attributes and registers that a trial reads or names: each that fabsh
// can read.
func allAttributes() []*mad.Attribute {
	return slices.Concat(attributes(), recordAttributes(), mad.Registers())
}
