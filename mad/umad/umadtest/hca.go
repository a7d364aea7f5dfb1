//go:build linux

package umadtest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/nowait"
)

// HCA is a virtual adapter with one port, "vib0" for the first: the side of
// the fabric. Close takes it out of the machine.
type HCA struct{ c *nowait.Conn }

// Records of /dev/vib (testdata/vib/vib.c), in host byte order.
const (
	kindMAD  = 0
	kindPort = 1

	madHeaderSize  = 16
	madRecordSize  = madHeaderSize + mad.Size
	portRecordSize = 40
)

// NewHCA puts an adapter with port p into the machine.
func NewHCA(p engine.Port) (*HCA, error) {
	f, err := os.OpenFile("/dev/vib", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	h := &HCA{}
	if h.c, err = nowait.New(f); err != nil {
		return nil, fmt.Errorf("virtual adapter: %w", err)
	}
	if err := h.Set(p); err != nil {
		h.Close()
		return nil, fmt.Errorf("virtual adapter: %w", err)
	}
	return h, nil
}

// Set changes the port; its GUIDs stay.
func (h *HCA) Set(p engine.Port) error {
	var b [portRecordSize]byte
	ne := binary.NativeEndian
	ne.PutUint32(b[0:], kindPort)
	ne.PutUint64(b[8:], p.GIDPrefix)
	ne.PutUint64(b[16:], uint64(p.NodeGUID))
	ne.PutUint64(b[24:], uint64(p.PortGUID))
	ne.PutUint16(b[32:], uint16(p.LID))
	ne.PutUint16(b[34:], uint16(p.SMLID))
	b[36], b[37] = p.LMC, p.SMSL
	b[38], b[39] = uint8(p.State), uint8(mad.PortPhysicalStateLinkUp)
	if p.State == mad.PortStateDown {
		b[39] = uint8(mad.PortPhysicalStatePolling)
	}
	var err error
	cerr := h.c.Control(func(fd uintptr) { _, err = syscall.Write(int(fd), b[:]) })
	return cmp.Or(err, cerr)
}

// Recv waits for what the kernel sends, to d.LID and d.QP.
func (h *HCA) Recv(d *engine.Datagram) error {
	var b [madRecordSize]byte
	if _, err := h.c.Read(b[:]); err != nil {
		return err
	}
	ne := binary.NativeEndian
	*d = engine.Datagram{MAD: append(d.MAD[:0], b[madHeaderSize:]...), Address: engine.Address{
		QP: ne.Uint32(b[4:]), LID: mad.LID(ne.Uint16(b[8:])), SL: b[12], PKeyIndex: ne.Uint16(b[14:]),
	}}
	return nil
}

// Send has the kernel receive d from d.LID and d.QP.
func (h *HCA) Send(d *engine.Datagram) error {
	var b [madRecordSize]byte
	ne := binary.NativeEndian
	ne.PutUint32(b[0:], kindMAD)
	ne.PutUint32(b[4:], d.QP)
	ne.PutUint16(b[10:], uint16(d.LID))
	b[12] = d.SL
	ne.PutUint16(b[14:], d.PKeyIndex)
	copy(b[madHeaderSize:], d.MAD)
	_, err := h.c.Write(b[:])
	return err
}

// Close takes the adapter out.
func (h *HCA) Close() error { return h.c.Close() }
