//go:build linux

package umadtest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

// Numbers of RDMA netlink (linux/rdma_netlink.h).
const (
	nldevNewLink  = 5<<10 | 3
	nldevName     = 2
	nldevNetdev   = 51
	nldevLinkType = 65
)

// netdev begins the names of the interfaces below Soft-RoCE devices.
const netdev = "eth-"

// AddRoCE makes a Soft-RoCE device on a network interface of its own; what it
// sends to itself comes back.
func AddRoCE(name string) error {
	info := attribute(unix.IFLA_LINKINFO, attribute(unix.IFLA_INFO_KIND, []byte("dummy")))
	body := append(make([]byte, unix.SizeofIfInfomsg), attribute(unix.IFLA_IFNAME, text(netdev+name))...)
	err := netlink(unix.NETLINK_ROUTE, unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, append(body, info...))
	if err != nil {
		return fmt.Errorf("network interface %s%s: %w", netdev, name, err)
	}
	if err := up(netdev+name, net.IPv4(192, 0, 2, 1)); err != nil {
		return err
	}
	body = append(attribute(nldevName, text(name)), attribute(nldevLinkType, text("rxe"))...)
	body = append(body, attribute(nldevNetdev, text(netdev+name))...)
	for range 100 {
		// ENFILE: the removal of a device of that name has not ended yet.
		if err = netlink(unix.NETLINK_RDMA, nldevNewLink, 0, body); err != unix.ENFILE {
			break
		}
		time.Sleep(20 * time.Millisecond) // polls: nothing signals the end of the removal
	}
	if err != nil {
		RemoveRoCE(name)
		return fmt.Errorf("Soft-RoCE device %s: %w", name, err)
	}
	return nil
}

// RemoveRoCE removes a Soft-RoCE device with its interface, as if the adapter
// were pulled out; it may take a moment.
func RemoveRoCE(name string) error {
	body := append(make([]byte, unix.SizeofIfInfomsg), attribute(unix.IFLA_IFNAME, text(netdev+name))...)
	return netlink(unix.NETLINK_ROUTE, unix.RTM_DELLINK, 0, body)
}

// up sets a network interface up, with an address unless that is nil.
func up(name string, ip net.IP) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if ip != nil {
		if err := request.SetInet4Addr(ip.To4()); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(s, unix.SIOCSIFADDR, request); err != nil {
			return fmt.Errorf("address of %s: %w", name, err)
		}
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func text(s string) []byte { return append([]byte(s), 0) }

// attribute returns an attribute of a netlink message, padded.
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// netlink sends a request and returns the error in the kernel's reply.
func netlink(family int, kind, flags uint16, body []byte) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ne := binary.NativeEndian
	m := ne.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	m = ne.AppendUint16(m, kind)
	m = ne.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	m = append(m, make([]byte, 8)...) // sequence, port
	if err := unix.Sendto(s, append(m, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	reply := make([]byte, 4096)
	n, _, err := unix.Recvfrom(s, reply, 0)
	if err != nil {
		return err
	}
	const end = unix.SizeofNlMsghdr + 4
	if n < end || ne.Uint16(reply[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("odd reply of netlink, %d bytes", n)
	}
	if code := int32(ne.Uint32(reply[end-4:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
