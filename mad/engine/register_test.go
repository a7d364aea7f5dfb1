package engine

import (
	"errors"
	"testing"

	"fabsh/mad"
)

// TestRegisterWrites: what writes a register is refused, and nothing is sent, with
// permission to write too; a query goes out without it.
func TestRegisterWrites(t *testing.T) {
	query := func(c *Call, change func(op *mad.RegisterOperation)) {
		c.PutSMP(mad.MethodGet, mad.AttrMlnxAccessRegister.ID, 0, nil)
		c.SetLID(3)
		mad.PutRegister(c.MAD[:], mad.LayoutMTMP, nil)
		at := mad.AttrMlnxAccessRegister.Offset()
		var op mad.RegisterOperation
		op.Decode(c.MAD[at:])
		change(&op)
		op.Encode(c.MAD[at:])
	}
	clearing := func(c *Call) {
		c.PutMAD(mad.Header{Class: mad.ClassVendor0A, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrAccessRegister.ID, Modifier: uint32(mad.LayoutPPCNT.Register)}, nil)
		data := make([]byte, mad.LayoutPPCNT.Size)
		(&mad.PPCNT{Clr: true}).Encode(data)
		mad.PutRegister(c.MAD[:], mad.LayoutPPCNT, data)
	}
	for _, write := range []bool{false, true} {
		e := &Engine{options: Options{Write: write}}
		var c Call
		query(&c, func(*mad.RegisterOperation) {})
		c.announced = true
		if effect, err := e.check(&c); err != nil || effect != mad.EffectRead {
			t.Errorf("write %v: a query: %v, %v", write, effect, err)
		}
		query(&c, func(op *mad.RegisterOperation) { op.RegisterMethod = mad.RegisterMethodWrite })
		if _, err := e.check(&c); !errors.Is(err, ErrRegister) {
			t.Errorf("write %v: a write in a Get: %v", write, err)
		}
		c.MAD[mad.MethodOffset] = byte(mad.MethodSet)
		if _, err := e.check(&c); !errors.Is(err, ErrRegister) {
			t.Errorf("write %v: a write in a Set: %v", write, err)
		}
		clearing(&c)
		if _, err := e.check(&c); !errors.Is(err, ErrRegister) {
			t.Errorf("write %v: a Get that clears: %v", write, err)
		}
	}
}
