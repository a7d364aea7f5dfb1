package device_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/device"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestSetOnWire: fields that are not named are sent as they were read, but fields that request an
// action are sent as 0.
func TestSetOnWire(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
		c := device.Set{Dest: leaf, Attr: mad.AttrPortInfo, Modifier: 1, Named: []string{"hoq_life"}, Edit: func(data []byte) {
			mad.AttrPortInfo.Field("hoq_life").SetUint(data, 3)
		}}
		if err := device.SetAttributes(t.Context(), e, &c); err != nil || c.Err != nil {
			t.Fatal(err, c.Err)
		}
		var want mad.PortInfo
		want.Decode(c.Before)
		if want.CapabilityMask&mad.CapabilityMaskIsExtendedSpeedsSupported == 0 {
			t.Fatal("the port has no extended speeds: nothing is tested")
		}
		want.HOQLife = 3
		want.LinkWidthEnabled, want.LinkSpeedEnabled, want.LinkSpeedExtEnabled, want.LinkSpeedExtEnabled2 = 0, 0, 0, 0
		want.PortState, want.PortPhysicalState, want.LinkDownDefaultState = 0, 0, 0
		want.ClientReregister = false
		data := make([]byte, 64)
		want.Encode(data)
		if diff := cmp.Diff([]set{{mad.AttrPortInfo.ID, 1<<31 | 1, data}}, tap.sets); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		var after mad.PortInfo
		after.Decode(c.After)
		if after.HOQLife != 3 || after.PortState != mad.PortStateActive {
			t.Errorf("after: %+v", after)
		}
	})
}

// TestSetKnown: where what is there is known, one datagram is sent, the Set, which has
// the other fields as they are known.
func TestSetKnown(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
		known := make([]byte, mad.AttrSwitchInfo.Size)
		(&mad.SwitchInfo{LinearFDBTop: 77, LifeTimeValue: 3}).Encode(known)
		c := device.Set{Dest: leaf, GUID: 0x42, Attr: mad.AttrSwitchInfo, Named: []string{"life_time_value"}, Before: known, Edit: func(data []byte) {
			mad.AttrSwitchInfo.Field("life_time_value").SetUint(data, 9)
		}}
		if err := device.SetAttributes(t.Context(), e, &c); err != nil || c.Err != nil {
			t.Fatal(err, c.Err)
		}
		var sent mad.SwitchInfo
		sent.Decode(tap.sets[0].Data)
		if n := e.Stats().Sent; n != 1 || sent.LinearFDBTop != 77 || sent.LifeTimeValue != 9 {
			t.Errorf("%d sent, %+v", n, sent)
		}
	})
}

// TestSetSwitchInfo: the bit that 1 clears goes out as 0 unless it is named.
func TestSetSwitchInfo(t *testing.T) {
	answer := func(h mad.Header, data []byte) {
		if h.Attribute == mad.AttrSwitchInfo.ID {
			mad.AttrSwitchInfo.Field("port_state_change").SetUint(data, 1)
		}
	}
	onTap(t, func(tap *tap) { tap.answer = answer }, func(t *testing.T, e *engine.Engine, tap *tap) {
		for _, test := range []struct {
			field string
			value uint64
			bit   uint64
		}{{"life_time_value", 9, 0}, {"port_state_change", 1, 1}} {
			tap.sets = nil
			c := device.Set{Dest: leaf, Attr: mad.AttrSwitchInfo, Named: []string{test.field}, Edit: func(data []byte) {
				mad.AttrSwitchInfo.Field(test.field).SetUint(data, test.value)
			}}
			if err := device.SetAttributes(t.Context(), e, &c); err != nil || c.Err != nil {
				t.Fatal(err, c.Err)
			}
			if got := mad.AttrSwitchInfo.Field("port_state_change").Uint(tap.sets[0].Data); got != test.bit {
				t.Errorf("setting %s: PortStateChange goes out as %d", test.field, got)
			}
		}
	})
}

// TestSetCompares: a response with something else than was asked for is an error.
func TestSetCompares(t *testing.T) {
	answer := func(h mad.Header, data []byte) {
		if h.Method == mad.MethodGetResp && h.Attribute == mad.AttrSwitchInfo.ID {
			mad.AttrSwitchInfo.Field("life_time_value").SetUint(data, 5)
		}
	}
	onTap(t, func(tap *tap) { tap.answer = answer }, func(t *testing.T, e *engine.Engine, tap *tap) {
		c := device.Set{Dest: leaf, Attr: mad.AttrSwitchInfo, Named: []string{"life_time_value"}, Edit: func(data []byte) {
			mad.AttrSwitchInfo.Field("life_time_value").SetUint(data, 9)
		}}
		if err := device.SetAttributes(t.Context(), e, &c); err != nil {
			t.Fatal(err)
		}
		if want := "the Set of SwitchInfo was answered, but life_time_value is 5, not 9"; c.Err == nil || c.Err.Error() != want {
			t.Errorf("%v, want %s", c.Err, want)
		}
	})
}

// TestManySets: more Sets than calls are made at a time have each its own answer.
func TestManySets(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, _ *tap) {
		life := mad.AttrSwitchInfo.Field("life_time_value")
		sets := make([]*device.Set, 9000)
		for i := range sets {
			sets[i] = &device.Set{Dest: leaf, Attr: mad.AttrSwitchInfo, Named: []string{"life_time_value"}, Edit: func(data []byte) { life.SetUint(data, uint64(i%20)) }}
		}
		if err := device.SetAttributes(t.Context(), e, sets...); err != nil {
			t.Fatal(err)
		}
		if sent := e.Stats().Sent; sent < 2*9000 { // each is read, and set
			t.Errorf("%d datagrams are sent", sent)
		}
		for i, c := range sets {
			if c.Err != nil || life.Uint(c.After) != uint64(i%20) {
				t.Fatalf("%d: %d, %v, want %d", i, life.Uint(c.After), c.Err, i%20)
			}
		}
	})
}

// TestSetExtendedSpeeds: the modifier's bit 31 is set where the port has extended
// speeds. External ports of switches may have no CapabilityMask to say so.
func TestSetExtendedSpeeds(t *testing.T) {
	for _, test := range []struct {
		name     string
		cleared  []string
		modifier uint32
	}{
		{"by CapabilityMask", []string{"link_speed_ext_supported"}, 1<<31 | 1},
		{"by LinkSpeedExtSupported", []string{"capability_mask"}, 1<<31 | 1},
		{"none", []string{"capability_mask", "link_speed_ext_supported"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := func(h mad.Header, data []byte) {
				for _, name := range test.cleared {
					if h.Attribute == mad.AttrPortInfo.ID {
						mad.AttrPortInfo.Field(name).SetUint(data, 0)
					}
				}
			}
			onTap(t, func(tap *tap) { tap.answer = answer }, func(t *testing.T, e *engine.Engine, tap *tap) {
				c := device.Set{Dest: leaf, Attr: mad.AttrPortInfo, Modifier: 1, Named: []string{"hoq_life"}, Edit: func(data []byte) {
					mad.AttrPortInfo.Field("hoq_life").SetUint(data, 3)
				}}
				if err := device.SetAttributes(t.Context(), e, &c); err != nil || c.Err != nil {
					t.Fatal(err, c.Err)
				}
				if tap.sets[0].Modifier != test.modifier {
					t.Errorf("modifier %#x, want %#x", tap.sets[0].Modifier, test.modifier)
				}
			})
		})
	}
}

// TestSetMayAnswerOtherwise: an M_Key that the agent does not show, and a state
// that has moved on, are no errors.
func TestSetMayAnswerOtherwise(t *testing.T) {
	for _, test := range []struct {
		field        string
		sent, answer uint64
	}{{"m_key", 77, 0}, {"port_state", 1, 2}, {"link_width_enabled", 255, 3}} {
		answer := func(h mad.Header, data []byte) {
			if h.Attribute == mad.AttrPortInfo.ID {
				mad.AttrPortInfo.Field(test.field).SetUint(data, test.answer)
			}
		}
		onTap(t, func(tap *tap) { tap.answer = answer }, func(t *testing.T, e *engine.Engine, tap *tap) {
			c := device.Set{Dest: leaf, Attr: mad.AttrPortInfo, Modifier: 2, Named: []string{test.field}, Edit: func(data []byte) {
				mad.AttrPortInfo.Field(test.field).SetUint(data, test.sent)
			}}
			if err := device.SetAttributes(t.Context(), e, &c); err != nil || c.Err != nil {
				t.Error(test.field, err, c.Err)
			}
			if got := mad.AttrPortInfo.Field(test.field).Uint(tap.sets[0].Data); got != test.sent {
				t.Errorf("%s goes out as %d, want %d", test.field, got, test.sent)
			}
		})
	}
}

// TestWrongNode: nothing is set where another node answers.
func TestWrongNode(t *testing.T) {
	onTap(t, nil, func(t *testing.T, e *engine.Engine, tap *tap) {
		c := device.Set{Dest: leaf, GUID: 0x42, Attr: mad.AttrSwitchInfo, Edit: func([]byte) {}}
		written := linear(leaf, map[mad.LID]uint8{1: 1}, false)
		written.GUID = 0x42
		if err := device.SetAttributes(t.Context(), e, &c); err != nil {
			t.Fatal(err)
		}
		if err := device.WriteTables(t.Context(), e, written); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{c.Err, written.Err} {
			if err == nil || !strings.HasSuffix(err.Error(), ", not 0x0000000000000042; run discover() again") {
				t.Errorf("got %v", err)
			}
		}
		if len(tap.sets) > 0 {
			t.Errorf("%d Sets went out", len(tap.sets))
		}
	})
}
