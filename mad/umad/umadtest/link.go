//go:build linux

package umadtest

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

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
		// ENFILE: one of that name was removed, but has not gone quite.
		if err = netlink(unix.NETLINK_RDMA, nldevNewLink, 0, body); err != unix.ENFILE {
			break
		}
		time.Sleep(20 * time.Millisecond)
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

// attribute is one of a netlink message, padded.
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// netlink sends a request and returns what the kernel says to it.
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
