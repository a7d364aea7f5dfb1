package device_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/device"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// writable is an engine at the first CA of a simulated subnet.
func writable(t testing.TB, spec string, keys *engine.Keys) *engine.Engine {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return engine.New(conn, engine.Options{Keys: keys, Write: true})
}

// TestSilentTable: a table that is not written for want of an M_Key: the error says so.
func TestSilentTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := writable(t, "mkey=0x1234", nil)
		defer e.Close()
		c := linear(fabric.Dest{LID: 2}, map[mad.LID]uint8{9: 1}, false)
		want := "SubnSet(LinearForwardingTable) to LID 2: timed out after 3 attempts in 3s: the port has an M_Key and requires it for a Set"
		var k *device.KeyError
		if err := edit(t, e, c); err == nil || err.Error() != want || !errors.As(err, &k) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// TestSilentSet: a Set without an answer is explained by an M_Key, as a table is.
func TestSilentSet(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		keys       *engine.Keys
		want       string
	}{
		{"none given", "mkey=0x1234", nil, "SubnSet(NodeDescription) to LID 2: timed out after 3 attempts in 3s: the port has an M_Key and requires it for a Set"},
		{"none given, level 0", "mkey=0x1234,mkey_level=0", nil, "SubnSet(NodeDescription) to LID 2: timed out after 3 attempts in 3s: the port has an M_Key and requires it for a Set"},
		{"wrong", "mkey=0x1234", &engine.Keys{M: 0x99}, "SubnSet(NodeDescription) to LID 2: timed out after 3 attempts in 3s: the port has another M_Key than the one that was sent and requires it for a Set"},
		{"right", "mkey=0x1234", &engine.Keys{M: 0x1234}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := writable(t, test.spec, test.keys)
				defer e.Close()
				c := &device.Set{Dest: fabric.Dest{LID: 2}, Attr: mad.AttrNodeDescription, Edit: func(data []byte) { copy(data, "new") }}
				if err := device.SetAttributes(t.Context(), e, c); err != nil {
					t.Fatal(err)
				}
				got := ""
				if c.Err != nil {
					got = c.Err.Error()
				}
				if d := cmp.Diff(test.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				var k *device.KeyError
				if errors.As(c.Err, &k) != (test.want != "") || c.Err != nil && !errors.Is(c.Err, engine.ErrTimeout) {
					t.Errorf("%T", c.Err)
				}
			})
		})
	}
}
