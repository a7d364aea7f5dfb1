package fabric

import "fabsh/mad"

// Dest is how SMPs reach a node: along Route, by LID where that is nil.
type Dest struct {
	Route mad.DirectedRoute
	LID   mad.LID
}

// Address sends c's SMP to d.
func (d Dest) Address(c *mad.Call) {
	if d.Route != nil {
		c.SetRoute(d.Route)
	} else {
		c.SetLID(d.LID)
	}
}

// smp is one SMP to a Dest.
func smp(c *mad.Call, d Dest, m mad.Method, a *mad.Attribute, modifier uint32, data []byte) *mad.Call {
	c.PutSMP(m, a.ID, modifier, data)
	d.Address(c)
	return c
}
