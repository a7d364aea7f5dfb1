// Package wire has the layout of the messages on ibsim's sockets, for clients of ibsim
// and for servers in its place.
//
// Source: linux-rdma/ibsim, include/ibsim.h.

package ibsim

import (
	"encoding/binary"

	"fabsh/mad"
)

// A message carries one MAD (struct sim_request). LIDs are big endian in the
// first two bytes of their word on little-endian hosts, in the last two on
// big-endian ones. The length is 64 bits: this is the layout of all 64-bit hosts,
// and of ARM's 32-bit ones.
const (
	MessageSize = 32 + mad.Size
	OffDLID     = 0
	OffSLID     = 4
	OffDQP      = 8
	OffSQP      = 12
	OffStatus   = 16 // 0, or StatusUndelivered
	OffLength   = 24 // of the MAD; after it is uninitialized memory of the sender
	OffMAD      = 32

	StatusUndelivered = 110 // Linux's ETIMEDOUT
)

// Control requests (enum SIM_CTL_TYPES).
const (
	CtlError = iota // in a reply: refused
	CtlConnect
	CtlDisconnect
	CtlGetPort
	CtlGetVendor
	CtlGetGID
	CtlGetGUID
	CtlGetNodeInfo
	CtlGetPortInfo
	CtlSetISSM
	CtlGetPKeys
)

// A control message (struct sim_ctl), in host byte order.
const (
	CtlSize   = 80
	CtlMagic  = 0xdeadbeef
	OffSlot   = 4
	OffType   = 8
	offSerial = 12 // ibsim returns it unread: it identifies a late reply
	OffInfo   = 16 // 64 bytes
)

// The content of CONNECT (struct sim_client_info).
const (
	OffClientID = 0 // in the reply: the slot
	OffClientQP = 4
	OffISSM     = 8
	OffNode     = 12 // NUL-terminated
	NodeSize    = 32
)

// What fabsh's own server adds to replies to CONNECT, and to refusals, after struct
// sim_client_info, where ibsim returns what the client has sent: zeros.
const (
	OffServer  = OffNode + NodeSize // Fabsh
	OffReason  = OffServer + 8      // of a refusal
	Fabsh      = "fabsh\x00"
	ReasonUser = 1 // the client is of another user
)

// MaxName leaves room in an address of 108 bytes for ":ctl", ten digits, and the
// NUL before and after.
const MaxName = 108 - 4 - 10 - 2

// PutLID writes a LID into its word.
func PutLID(b []byte, lid mad.LID) {
	var be [2]byte
	binary.BigEndian.PutUint16(be[:], uint16(lid))
	binary.NativeEndian.PutUint32(b, uint32(binary.NativeEndian.Uint16(be[:])))
}

// GetLID reads it.
func GetLID(b []byte) mad.LID {
	var be [2]byte
	binary.NativeEndian.PutUint16(be[:], uint16(binary.NativeEndian.Uint32(b)))
	return mad.LID(binary.BigEndian.Uint16(be[:]))
}
