package engine

import (
	"encoding/binary"

	"fabsh/mad"
)

// PutSMP makes c's MAD a subnet management request for attribute a; SetRoute or
// SetLID set its destination. data, at most 64 bytes, is the content of a Set.
func (c *Call) PutSMP(m mad.Method, a mad.AttributeID, modifier uint32, data []byte) {
	c.put(mad.ClassSubn, m, a, modifier, data)
}

// PutPerf makes c's MAD a performance management request; SetLID sets its
// destination.
func (c *Call) PutPerf(m mad.Method, a mad.AttributeID, modifier uint32, data []byte) {
	c.put(mad.ClassPerf, m, a, modifier, data)
}

// PutSA makes c's MAD a subnet administration request; SetLID, with the LID of the
// subnet manager's port, sets its destination. mask is the component mask: the
// components of record that count.
func (c *Call) PutSA(m mad.Method, a mad.AttributeID, modifier uint32, mask uint64, record []byte) {
	c.put(mad.ClassSubnAdm, m, a, modifier, record)
	mad.PutSA(c.MAD[:], mask, len(record))
}

// PutMAD makes c's MAD a request of any class; SetRoute or SetLID set its
// destination. data is put at the position of h's class, and truncated to its size.
func (c *Call) PutMAD(h mad.Header, data []byte) {
	clear(c.MAD[:]) // so that nothing of an earlier answer is sent
	h.Put(c.MAD[:])
	copy(c.MAD[h.DataOffset():][:h.DataSize()], data)
}

func (c *Call) put(class mad.Class, m mad.Method, a mad.AttributeID, modifier uint32, data []byte) {
	c.PutMAD(mad.Header{Class: class, ClassVersion: class.Version(), Method: m, Attribute: a, Modifier: modifier}, data)
}

// PutOUI sets the vendor of the MAD, in the vendor classes from 0x30 on.
func (c *Call) PutOUI(oui uint32) {
	binary.BigEndian.PutUint32(c.MAD[mad.VendorOUIOffset-1:], oui&0xffffff)
}

// SetRoute sends c's SMP along a directed route.
func (c *Call) SetRoute(r mad.DirectedRoute) {
	mad.SetRoute(c.MAD[:], r)
	c.To.LID, c.To.QP = mad.PermissiveLID, 0
}

// SetLID sends c's MAD to a LID: SMPs to queue pair 0, all others to queue
// pair 1. The rest of c.To stays: SL, P_Key index, global route.
func (c *Call) SetLID(lid mad.LID) {
	c.To.LID, c.To.QP = lid, 1
	if mad.Class(c.MAD[mad.ClassOffset]).Family() == mad.ClassSubn {
		c.MAD[mad.ClassOffset] = byte(mad.ClassSubn)
		c.To.QP = 0
	}
}
