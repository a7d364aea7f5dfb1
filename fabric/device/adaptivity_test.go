package device_test

import (
	"testing"
	"testing/synctest"

	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestReadAdaptivity: it is read where it is on; where a device does not answer what it
// announces, it is undetermined, and not off.
func TestReadAdaptivity(t *testing.T) {
	for _, x := range []struct {
		spec             string
		silent           bool // leaf-2 does not answer GeneralInfo
		on, undetermined int
	}{
		{"fattree:k=4", false, 0, 0},
		{"fattree:k=4,ar=updn", false, 6, 0},
		{"fattree:k=4,ar=updn,ar_with=hbf", false, 6, 0},
		{"fattree:k=4,ar=updn", true, 5, 1},
		{"fattree:k=4", true, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			topology, o, err := sim.Parse(x.spec)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := sim.New(topology, o).Attach(topology.OfType(mad.NodeTypeCA)[0].ID(), 1)
			if err != nil {
				t.Fatal(err)
			}
			var silent mad.DirectedRoute
			e := engine.New(lossy{Transport: conn, lost: func(d *engine.Datagram) bool {
				h := mad.ParseHeader(d.MAD)
				return silent != nil && h.Attribute == mad.AttrGeneralInfo.ID && mad.RouteOf(d.MAD).String() == silent.String()
			}}, engine.Options{})
			defer e.Close()
			f, err := discover.Sweep(t.Context(), e, discover.Options{PlainSpeeds: true})
			if err != nil {
				t.Fatal(err)
			}
			leaf := f.OfType(mad.NodeTypeSwitch)[1]
			if x.silent {
				silent = leaf.Route()
			}
			a, err := device.ReadAdaptivity(t.Context(), e, f)
			if err != nil || len(a.On) != x.on || len(a.Undetermined) != x.undetermined {
				t.Fatalf("%s: %+v, %v", x.spec, a, err)
			}
			if x.silent && a.Undetermined[0].Switch.GUID() != leaf.GUID() {
				t.Errorf("%s: undetermined at %s", x.spec, a.Undetermined[0].Switch.Label())
			}
			live, _, err := device.ReadRoutes(t.Context(), e, f)
			if err != nil {
				t.Fatal(err)
			}
			choices, err := device.ReadChoices(t.Context(), e, live, a.On)
			if err != nil || len(choices) != 6 {
				t.Fatal(choices, err)
			}
			for s, c := range choices {
				on := x.on == 6 || x.on == 5 && live.Graph().Switches()[s] != &leaf
				if c.Active() != (on && live.Graph().Switches()[s].GUID() != silentGUID(x.silent, leaf.GUID())) || c != nil && c.Unknown != "" {
					t.Errorf("%s: switch %d: %+v", x.spec, s, c)
				}
			}
		})
	}
}

func silentGUID(silent bool, guid mad.GUID) mad.GUID {
	if silent {
		return guid
	}
	return 0
}
