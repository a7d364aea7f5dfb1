package server

import (
	"encoding/binary"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/ibsim/wire"
)

// message is a message on the socket.
type message [wire.MessageSize]byte

// decode reads a message of a client.
func (m *message) decode(to *sim.Message) {
	to.DLID, to.SLID = wire.GetLID(m[wire.OffDLID:]), wire.GetLID(m[wire.OffSLID:])
	to.DQP, to.SQP = binary.BigEndian.Uint32(m[wire.OffDQP:]), binary.BigEndian.Uint32(m[wire.OffSQP:])
	to.Undelivered = false
	to.Length = mad.Size
	if n := binary.BigEndian.Uint64(m[wire.OffLength:]); n < mad.Size {
		to.Length = int(n)
	}
	copy(to.MAD[:], m[wire.OffMAD:])
}

// encode writes m as a message to a client.
func (m *message) encode(from *sim.Message) {
	clear(m[:wire.OffMAD])
	wire.PutLID(m[wire.OffDLID:], from.DLID)
	wire.PutLID(m[wire.OffSLID:], from.SLID)
	binary.BigEndian.PutUint32(m[wire.OffDQP:], from.DQP)
	binary.BigEndian.PutUint32(m[wire.OffSQP:], from.SQP)
	if from.Undelivered {
		binary.BigEndian.PutUint32(m[wire.OffStatus:], wire.StatusUndelivered)
	}
	binary.BigEndian.PutUint64(m[wire.OffLength:], uint64(from.Length))
	copy(m[wire.OffMAD:], from.MAD[:])
}
