package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"fabsh/fabric/sim"
	"fabsh/mad/ibsim"
)

// readControl answers some control requests. Malformed ones are not answered, as by
// ibsim.
func (s *Server) readControl() {
	for range batchSize {
		var m [ibsim.CtlSize + 1]byte
		var from address
		n, user, err := s.control.readFrom(m[:], &from)
		if errors.Is(err, errAgain) {
			return
		}
		if err != nil || n != ibsim.CtlSize || binary.NativeEndian.Uint32(m[:]) != ibsim.CtlMagic {
			continue
		}
		if !s.serves(user) {
			err = fmt.Errorf("a client of user %d is refused: only the user who started the server is served; --any-user admits others", user)
			m[ibsim.OffInfo+ibsim.OffReason] = ibsim.ReasonUser
		} else {
			err = s.execute(m[:ibsim.CtlSize], &from)
		}
		if err != nil {
			binary.NativeEndian.PutUint32(m[ibsim.OffType:], ibsim.CtlError)
			s.log("%v", err)
		}
		if kind := binary.NativeEndian.Uint32(m[ibsim.OffType:]); kind == ibsim.CtlError || kind == ibsim.CtlConnect {
			copy(m[ibsim.OffInfo+ibsim.OffServer:], ibsim.Fabsh)
		}
		s.control.writeTo(m[:ibsim.CtlSize], &from)
	}
}

// execute turns a control request into its answer. An error refuses it.
func (s *Server) execute(m []byte, from *address) error {
	kind, info := binary.NativeEndian.Uint32(m[ibsim.OffType:]), m[ibsim.OffInfo:]
	if kind == ibsim.CtlConnect {
		return s.connect(info, from)
	}
	if kind > ibsim.CtlGetPKeys {
		return nil // ibsim echoes it
	}
	slot := binary.NativeEndian.Uint32(m[ibsim.OffSlot:])
	if int64(slot) >= int64(len(s.clients)) || s.clients[slot] == nil {
		if kind == ibsim.CtlDisconnect {
			return nil
		}
		return fmt.Errorf("control request %d for client %d, which is not attached", kind, slot)
	}
	c := s.clients[slot]
	if c.control != *from {
		return fmt.Errorf("control request %d for client %d from a socket that is not its own", kind, slot)
	}
	c.Starting()
	switch kind {
	case ibsim.CtlDisconnect:
		s.drop(c, "")
	case ibsim.CtlGetPort:
		lid, state := c.Port()
		binary.NativeEndian.PutUint16(info, uint16(lid))
		info[2] = byte(state)
	case ibsim.CtlGetVendor:
		i := c.NodeInfo()
		clear(info)
		binary.NativeEndian.PutUint32(info, i.VendorID)
		binary.NativeEndian.PutUint32(info[4:], uint32(i.DeviceID))
		binary.NativeEndian.PutUint32(info[8:], i.Revision)
		binary.NativeEndian.PutUint64(info[16:], 1) // version of the firmware
	case ibsim.CtlGetGID:
		i := c.PortInfo(0)
		binary.BigEndian.PutUint64(info, i.GIDPrefix)
		binary.NativeEndian.PutUint64(info[8:], uint64(c.NodeInfo().NodeGUID))
	case ibsim.CtlGetGUID:
		binary.NativeEndian.PutUint64(info, uint64(c.NodeInfo().NodeGUID))
	case ibsim.CtlGetNodeInfo:
		i := c.NodeInfo()
		clear(info)
		i.Encode(info)
	case ibsim.CtlGetPortInfo:
		i := c.PortInfo(int(info[0]))
		clear(info)
		i.Encode(info)
	case ibsim.CtlSetISSM:
		is := binary.NativeEndian.Uint32(info) != 0
		if c.SetSM(is); is && c.index == s.subnet.SM.Node() {
			s.log("client %d is a subnet manager on the node of the subnet's own, which it does not see: attach it to another node (SIM_HOST), or serve the subnet with --bare", c.Slot())
		}
	case ibsim.CtlGetPKeys:
		c.ReadPKeys(info)
	}
	return nil
}

// connect attaches a client.
func (s *Server) connect(info []byte, from *address) error {
	id := int32(binary.NativeEndian.Uint32(info[ibsim.OffClientID:]))
	name, _, _ := bytes.Cut(info[ibsim.OffNode:][:ibsim.NodeSize], []byte{0})
	node, err := s.names.Find(string(name))
	if err != nil {
		return fmt.Errorf("a client is refused: %w", err)
	}
	c := &client{id: id, control: *from, node: string(name), index: node}
	options := sim.ClientOptions{
		Node: node, QP: binary.NativeEndian.Uint32(info[ibsim.OffClientQP:]), General: binary.NativeEndian.Uint32(info[ibsim.OffISSM:]) != 0,
		Receive: func(m *sim.Message) { s.receive(c, m) },
	}
	if c.Client, err = s.subnet.Programs.AttachClient(options); err != nil {
		s.dropDead() // dead clients may occupy the slot
		if c.Client, err = s.subnet.Programs.AttachClient(options); err != nil {
			return fmt.Errorf("a client is refused: %w", err)
		}
	}
	slot := c.Slot()
	if c.socket, err = bind(fmt.Sprintf("%s:out%d", s.Name, slot)); err == nil {
		if err = c.socket.connect(s.clientSocket(id)); err == nil {
			err = s.poll.add(c.socket, int32(slot))
		}
		if err != nil {
			c.socket.close()
		}
	}
	if err != nil {
		c.Detach()
		return fmt.Errorf("the sockets of client %d: %w", id, err)
	}
	c.reads = true
	for len(s.clients) <= slot {
		s.clients = append(s.clients, nil)
	}
	s.clients[slot] = c
	binary.NativeEndian.PutUint32(info[ibsim.OffClientID:], uint32(slot))
	if c.node == "" {
		c.node = c.Name()
		clear(info[ibsim.OffNode:][:ibsim.NodeSize])
		copy(info[ibsim.OffNode:][:ibsim.NodeSize-1], c.node)
	}
	s.log("client %d is attached to %q", slot, c.node)
	return nil
}

// clientSocket is the name of the data socket of a client.
func (s *Server) clientSocket(id int32) string { return fmt.Sprintf("%s:in%d", s.Name, id) }
