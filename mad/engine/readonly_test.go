package engine

import (
	"bytes"
	"testing"

	"fabsh/mad"
)

// asWritten is the base header of m as this program writes it, by the parts that
// say what is asked; with the route of an SMP that has one.
func asWritten(m []byte) []byte {
	again := bytes.Clone(m)
	h := mad.ParseHeader(m)
	h.Put(again)
	again[mad.StatusOffset], again[mad.StatusOffset+1] = 0, 0
	again[mad.HopPointerOffset], again[mad.HopCountOffset] = 0, 0
	if h.Class == mad.ClassSubnDirected {
		mad.SetRoute(again, mad.RouteOf(m))
	}
	return again[:mad.SMPDrDLIDOffset+2]
}

// FuzzReadOnly: whatever a script makes of a MAD, without permission to write
// only a well-formed request is let through that is known to read.
func FuzzReadOnly(f *testing.F) {
	seed := func(change func(c *Call)) {
		var c Call
		c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
		c.SetRoute(mad.DirectedRoute{0, 1})
		change(&c)
		f.Add(c.MAD[:])
	}
	for at := range mad.HeaderSize {
		seed(func(c *Call) { c.MAD[at] ^= 0x81 })
	}
	seed(func(c *Call) {})
	seed(func(c *Call) { c.MAD[mad.SMPDrSLIDOffset] = 0 })
	seed(func(c *Call) { c.MAD[mad.SMPDrDLIDOffset+1] = 0 })
	seed(func(c *Call) { c.MAD[mad.HopCountOffset] = 64 })
	seed(func(c *Call) { c.SetLID(3) })
	f.Fuzz(func(t *testing.T, m []byte) {
		var c Call
		copy(c.MAD[:], m)
		var e Engine
		effect, err := e.check(&c)
		keyOf(&c) // counts it to a destination, whatever the route
		h := c.Header()
		switch {
		case err != nil:
			return
		case effect == mad.EffectFabric, mad.EffectOf(h.Class, h.ClassVersion, h.Method, h.Attribute) == mad.EffectFabric:
			t.Fatalf("%x may change the fabric", c.MAD[:64])
		case !bytes.HasPrefix(c.MAD[:], asWritten(c.MAD[:])):
			t.Fatalf("%x is malformed, and passes for a read", c.MAD[:64])
		}
	})
}

// TestOnlyReads: with OnlyReads, only requests that read pass, and no Reports are received.
func TestOnlyReads(t *testing.T) {
	e := &Engine{options: Options{OnlyReads: true, Write: true}}
	for name, x := range map[string]struct {
		put  func(c *Call)
		want error
	}{
		"a Get": {func(c *Call) {
			c.PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			c.SetRoute(mad.DirectedRoute{0, 1})
		}, nil},
		"a Set": {func(c *Call) {
			c.PutSMP(mad.MethodSet, mad.AttrPortInfo.ID, 1, nil)
			c.SetRoute(mad.DirectedRoute{0, 1})
		}, ErrOnlyReads},
		"a subscription": {func(c *Call) {
			c.PutSA(mad.MethodSet, mad.AttrInformInfo.ID, 0, 0, nil)
			c.SetLID(3)
			c.Subscribes = true
		}, ErrOnlyReads},
	} {
		var c Call
		x.put(&c)
		if _, err := e.check(&c); err != x.want {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	if _, err := e.Listen(mad.ClassSubnAdm, mad.MethodReport, nil); err != ErrOnlyReads {
		t.Errorf("Listen: %v", err)
	}
}
