package hosttest

import (
	"errors"
	"fmt"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/umad"
)

// Leaves returns a function that opens transports: the neighbour of mlx5_N is the switch leaf-M, of the number M
// that at returns, at its port N+1; a negative number does not answer.
func Leaves(at func(device string) int) func(umad.HostPort) (engine.Transport, error) {
	return func(p umad.HostPort) (engine.Transport, error) {
		return &leaf{n: at(p.Device), port: uint8(Number(p.Device)%64 + 1), answers: make(chan engine.Datagram, 8), closed: make(chan struct{})}, nil
	}
}

type leaf struct {
	n       int
	port    uint8
	answers chan engine.Datagram
	closed  chan struct{}
}

func (l *leaf) Traits() engine.Traits                        { return engine.Traits{Name: "test"} }
func (l *leaf) Port() (engine.Port, error)                   { return engine.Port{}, errors.New("unused") }
func (l *leaf) String() string                               { return "test" }
func (l *leaf) GaveUp(*engine.Datagram)                      {}
func (l *leaf) BeforeWait(func() bool) bool                  { return false }
func (l *leaf) Close() error                                 { close(l.closed); return nil }
func (l *leaf) TrySend(d *engine.Datagram) (bool, error)     { return true, l.Send(d) }
func (l *leaf) Accept(mad.Class, mad.Method) (func(), error) { return nil, errors.New("unused") }

func (l *leaf) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	if h.Method != mad.MethodGet || h.Class != mad.ClassSubnDirected || mad.RouteOf(d.MAD).Compare(mad.DirectedRoute{0, 1}) != 0 {
		return fmt.Errorf("sent %v %v on %v", h.Method, h.Attribute, mad.RouteOf(d.MAD))
	}
	if l.n < 0 {
		return nil
	}
	answer := engine.Datagram{Address: d.Address, MAD: append([]byte{}, d.MAD...)}
	answer.MAD[mad.MethodOffset] = byte(mad.MethodGetResp)
	data := answer.MAD[mad.SMPDataOffset:]
	switch h.Attribute {
	case mad.AttrNodeInfo.ID:
		(&mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 64, NodeGUID: mad.GUID(0xb000 + l.n), LocalPortNum: l.port}).Encode(data)
	case mad.AttrNodeDescription.ID:
		copy(data, fmt.Sprintf("leaf-%d", l.n))
	}
	l.answers <- answer
	return nil
}

func (l *leaf) Recv(d *engine.Datagram) error {
	select {
	case a := <-l.answers:
		d.Address, d.MAD = a.Address, append(d.MAD[:0], a.MAD...)
		return nil
	case <-l.closed:
		return engine.ErrClosed
	}
}

// Number returns the number in the name of a device.
func Number(device string) (n int) {
	fmt.Sscanf(device, "mlx5_%d", &n)
	return n
}
