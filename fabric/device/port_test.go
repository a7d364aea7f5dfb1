package device_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// beyond is switch-2 of the ring; its port 1 is node-0002's.
var beyond = fabric.Dest{Route: mad.DirectedRoute{0, 1, 3}}

func portChange(d fabric.Dest, num int, action device.Action) *device.PortState {
	return &device.PortState{PortTarget: device.PortTarget{Dest: d, Num: num}, Action: action, Wait: 2 * time.Second}
}

func changePort(t *testing.T, e *engine.Engine, c *device.PortState) error {
	t.Helper()
	if err := device.SetPortStates(t.Context(), e, c); err != nil {
		t.Fatal(err)
	}
	return c.Err
}

// TestPortStateGoesAlone: a Set changes nothing but the physical state.
func TestPortStateGoesAlone(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
		for _, step := range []struct {
			action device.Action
			phys   mad.PortPhysicalState
		}{{device.Disable, mad.PortPhysicalStateDisabled}, {device.Enable, mad.PortPhysicalStatePolling}, {device.Reset, mad.PortPhysicalStatePolling}} {
			tap.sets = nil
			c := portChange(beyond, 1, step.action)
			if err := changePort(t, e, c); err != nil {
				t.Fatal(err)
			}
			var want mad.PortInfo
			want.Decode(c.Before)
			want.PortState, want.PortPhysicalState, want.LinkDownDefaultState = 0, step.phys, 0
			want.LinkWidthEnabled, want.LinkSpeedEnabled, want.LinkSpeedExtEnabled, want.LinkSpeedExtEnabled2 = 0, 0, 0, 0
			data := make([]byte, 64)
			want.Encode(data)
			if diff := cmp.Diff([]set{{mad.AttrPortInfo.ID, 1<<31 | 1, data}}, tap.sets); diff != "" {
				t.Errorf("action %d (-want +got):\n%s", step.action, diff)
			}
		}
	})
}

// TestPortSetOnce: a Set without an answer is not sent again; the port is asked
// for its state.
func TestPortSetOnce(t *testing.T) {
	isSet := func(d *engine.Datagram) bool { return mad.ParseHeader(d.MAD).Method == mad.MethodSet }
	for _, test := range []struct {
		name string
		deaf bool // the answer is lost, not the request
		want string
	}{
		{"request lost", false, "SubnSet(PortInfo port 1 extended_speeds) to route 0,1,3: timed out after 1 attempt in 1s; it was not sent again; the port is active and link_up"},
		{"answer lost", true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			onTap(t, func(tp *tap) {
				if tp.Transport = (lossy{tp.Transport, isSet, nil}); test.deaf {
					tp.Transport = &mute{Transport: tp.Transport.(lossy).Transport, of: isSet}
				}
			}, func(t *testing.T, e *engine.Engine, tap *tap) {
				err := changePort(t, e, portChange(beyond, 1, device.Disable))
				if len(tap.sets) != 1 {
					t.Errorf("%d Sets", len(tap.sets))
				}
				if got := text(err); got != test.want {
					t.Errorf("%q, want %q", got, test.want)
				}
			})
		})
	}
}

// mute is a transport that loses the answers to some requests.
type mute struct {
	engine.Transport
	of   func(*engine.Datagram) bool
	lost int
}

func (m *mute) Send(d *engine.Datagram) error {
	if m.of(d) {
		m.lost++
	}
	return m.Transport.Send(d)
}

func (m *mute) TrySend(d *engine.Datagram) (bool, error) { return true, m.Send(d) }

func (m *mute) Recv(d *engine.Datagram) error {
	for {
		err := m.Transport.Recv(d)
		if err != nil || m.lost == 0 {
			return err
		}
		m.lost--
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestPortSettles: the state is asked for until it is the one set, at most for
// Wait.
func TestPortSettles(t *testing.T) {
	const num = 1
	for _, test := range []struct {
		name   string
		action device.Action
		before mad.PortPhysicalState // what the port is shown as first
		slow   time.Duration         // how long after the Set the port shows what it did
		shows  mad.PortPhysicalState // meanwhile
		want   string
	}{
		{"slowly disabled", device.Disable, 0, time.Second, mad.PortPhysicalStateLinkUp, ""},
		{"never disabled", device.Disable, 0, time.Hour, mad.PortPhysicalStateLinkUp, "the Set was answered, but after 2s the port is active and link_up"},
		{"slowly up", device.Reset, 0, time.Second, mad.PortPhysicalStatePolling, ""},
		{"never up", device.Reset, 0, time.Hour, mad.PortPhysicalStatePolling, "the link is not up after 2s: the port is active and polling"},
		{"enabled without a neighbour", device.Enable, mad.PortPhysicalStateDisabled, time.Hour, mad.PortPhysicalStatePolling, ""},
		{"never enabled", device.Enable, mad.PortPhysicalStateDisabled, time.Hour, mad.PortPhysicalStateDisabled, "the link is not up after 2s: the port is active and disabled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
				var since time.Time
				tap.answer = func(h mad.Header, data []byte) {
					if h.Attribute != mad.AttrPortInfo.ID || h.Modifier&0xff != num {
						return
					}
					shown := test.shows
					switch {
					case len(tap.sets) == 0:
						shown = test.before
					case since.IsZero():
						since = time.Now()
					case time.Since(since) > test.slow:
						return
					}
					if shown != 0 {
						mad.AttrPortInfo.Field("port_physical_state").SetUint(data, uint64(shown))
						mad.AttrPortInfo.Field("port_state").SetUint(data, uint64(mad.PortStateActive))
					}
				}
				asked := e.Stats().Sent
				c := portChange(beyond, num, test.action)
				c.Force = true
				start := time.Now()
				if got := text(changePort(t, e, c)); got != test.want {
					t.Errorf("%q, want %q", got, test.want)
				}
				if took := time.Since(start); took > 4*time.Second || test.slow > time.Minute && took < c.Wait {
					t.Errorf("took %v", took)
				}
				if asked = e.Stats().Sent - asked; asked > 16 {
					t.Errorf("%d requests: the agent is flooded", asked)
				}
			})
		})
	}
}

// TestPortRefused: an agent's refusal is the error at once.
func TestPortRefused(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
		c := portChange(beyond, 1, device.Disable)
		c.GUID = 0x42
		if got := text(changePort(t, e, c)); !strings.HasSuffix(got, "run discover() again") {
			t.Errorf("another node: %q", got)
		}
		if len(tap.sets) > 0 {
			t.Errorf("%d Sets", len(tap.sets))
		}
	})
}

// TestLinkSettings: the fields that a choice of speeds sets.
func TestLinkSettings(t *testing.T) {
	field := func(data []byte, name string, v uint64) { mad.AttrPortInfo.Field(name).SetUint(data, v) }
	xdr := func(data []byte) {
		field(data, "capability_mask2", 1<<11|1<<12)
		field(data, "link_speed_ext_supported", 15)
		field(data, "link_speed_ext_supported2", 1)
		field(data, "link_speed_ext_enabled2", 1)
	}
	type fields struct{ speed, ext, ext2, width uint64 }
	for _, test := range []struct {
		name         string
		speed, width device.LinkModes
		port         func(data []byte) // what the ports say
		far          func(data []byte) // and the neighbour
		want         fields
		err          string
	}{
		{"up to EDR", device.LinkModes{Words: []string{"edr"}, UpTo: true}, device.LinkModes{}, nil, nil, fields{7, 3, 0, 0}, ""},
		{"SDR alone", device.LinkModes{Words: []string{"sdr"}, UpTo: true}, device.LinkModes{}, nil, nil, fields{1, 30, 0, 0}, ""},
		{"a list", device.LinkModes{Words: []string{"sdr", "qdr", "hdr"}}, device.LinkModes{}, nil, nil, fields{5, 4, 0, 0}, ""},
		{"without SDR", device.LinkModes{Words: []string{"qdr", "hdr"}}, device.LinkModes{}, nil, nil, fields{}, "the speeds must include sdr: links begin with it, and sets without it are reserved"},
		{"not supported", device.LinkModes{Words: []string{"ndr"}, UpTo: true}, device.LinkModes{}, nil, nil, fields{}, "ndr: not supported by the port; supported: sdr, ddr, qdr, fdr, edr, hdr"},
		{"rubbish where there are no extended speeds", device.LinkModes{Words: []string{"fdr"}, UpTo: true}, device.LinkModes{}, func(data []byte) { field(data, "capability_mask", 0) }, nil, fields{}, "fdr: not supported by the port; supported: sdr, ddr, qdr"},
		{"no extended speeds", device.LinkModes{Words: []string{"ddr"}, UpTo: true}, device.LinkModes{}, func(data []byte) { field(data, "capability_mask", 0) }, nil, fields{3, 0, 0, 0}, ""},
		{"xdr", device.LinkModes{Words: []string{"xdr"}, UpTo: true}, device.LinkModes{}, xdr, nil, fields{7, 15, 1, 0}, ""},
		{"less than XDR", device.LinkModes{Words: []string{"ndr"}, UpTo: true}, device.LinkModes{}, xdr, nil, fields{}, "xdr is enabled and no public source documents how to disable it; the speeds must include it"},
		{"a width", device.LinkModes{}, device.LinkModes{Words: []string{"4x"}, UpTo: true}, func(data []byte) { field(data, "link_width_supported", 0x1f) }, nil, fields{0, 0, 0, 0x13}, ""},
		{"just that width", device.LinkModes{}, device.LinkModes{Words: []string{"4x"}}, nil, nil, fields{0, 0, 0, 2}, ""},
		{"a width that the neighbour lacks", device.LinkModes{}, device.LinkModes{Words: []string{"4x"}}, nil, func(data []byte) { field(data, "link_width_enabled", 1) }, fields{},
			"not set: of these widths (4x) the neighbour has enabled none, only 1x; the link would not come up again"},
		{"a speed that the neighbour lacks", device.LinkModes{Words: []string{"sdr"}}, device.LinkModes{}, nil, func(data []byte) { field(data, "link_speed_enabled", 4) }, fields{},
			"not set: of these speeds (sdr) the neighbour has enabled none, only qdr, fdr, edr, hdr; the link would not come up again"},
		{"a speed that the neighbour has off", device.LinkModes{Words: []string{"sdr", "hdr"}}, device.LinkModes{}, nil, func(data []byte) {
			field(data, "link_speed_enabled", 4)
			field(data, "link_speed_ext_enabled", 30)
		}, fields{}, "not set: of these speeds (sdr, hdr) the neighbour has enabled none, only qdr; the link would not come up again"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
				var at int // hops
				tap.hops = func(n int) { at = n }
				tap.answer = func(h mad.Header, data []byte) {
					if h.Attribute != mad.AttrPortInfo.ID || len(tap.sets) > 0 {
						return
					}
					change := test.port
					if at > beyond.Route.Hops() {
						change = test.far
					}
					if change != nil {
						change(data)
					}
				}
				c := &device.LinkSettings{PortTarget: device.PortTarget{Dest: beyond, Num: 1}, Speed: test.speed, Width: test.width}
				if err := device.SetLinks(t.Context(), e, c); err != nil {
					t.Fatal(err)
				}
				// The agent refuses what it does not support.
				if got := text(c.Err); got != test.err && !(test.err == "" && len(tap.sets) == 1) {
					t.Errorf("%q, want %q", got, test.err)
				}
				if test.err != "" {
					if len(tap.sets) > 0 {
						t.Errorf("%d Sets", len(tap.sets))
					}
					return
				}
				var sent mad.PortInfo
				if len(tap.sets) != 1 {
					t.Fatalf("%d Sets", len(tap.sets))
				}
				sent.Decode(tap.sets[0].Data)
				got := fields{uint64(sent.LinkSpeedEnabled), uint64(sent.LinkSpeedExtEnabled), uint64(sent.LinkSpeedExtEnabled2), uint64(sent.LinkWidthEnabled)}
				if got != test.want || sent.PortState != 0 || sent.PortPhysicalState != 0 {
					t.Errorf("sent %+v, want %+v", got, test.want)
				}
			})
		})
	}
}
