package server

import (
	"encoding/binary"

	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/ibsim"
)

// message is a message on the socket.
type message [ibsim.MessageSize]byte

// decode reads a message of a client.
func (m *message) decode(to *sim.Message) {
	to.DLID, to.SLID = ibsim.GetLID(m[ibsim.OffDLID:]), ibsim.GetLID(m[ibsim.OffSLID:])
	to.DQP, to.SQP = binary.BigEndian.Uint32(m[ibsim.OffDQP:]), binary.BigEndian.Uint32(m[ibsim.OffSQP:])
	to.Undelivered = false
	to.Length = mad.Size
	if n := binary.BigEndian.Uint64(m[ibsim.OffLength:]); n < mad.Size {
		to.Length = int(n)
	}
	copy(to.MAD[:], m[ibsim.OffMAD:])
}

// encode writes m as a message to a client.
func (m *message) encode(from *sim.Message) {
	clear(m[:ibsim.OffMAD])
	ibsim.PutLID(m[ibsim.OffDLID:], from.DLID)
	ibsim.PutLID(m[ibsim.OffSLID:], from.SLID)
	binary.BigEndian.PutUint32(m[ibsim.OffDQP:], from.DQP)
	binary.BigEndian.PutUint32(m[ibsim.OffSQP:], from.SQP)
	if from.Undelivered {
		binary.BigEndian.PutUint32(m[ibsim.OffStatus:], ibsim.StatusUndelivered)
	}
	binary.BigEndian.PutUint64(m[ibsim.OffLength:], uint64(from.Length))
	copy(m[ibsim.OffMAD:], from.MAD[:])
}
