//go:build linux

package run

// Sizes of struct ib_user_mad_hdr: with the P_Key index, and as old programs know it.
const (
	headerSize    = 64
	oldHeaderSize = 56
)

// Offsets in struct ib_user_mad_hdr. Fields are in the host's byte order, but for those
// marked as big endian.
const (
	offID         = 0
	offStatus     = 4
	offTimeout    = 8 // in ms
	offRetries    = 12
	offLength     = 16
	offQP         = 20 // big endian
	offLID        = 28 // big endian
	offSL         = 30
	offHasGRH     = 32
	offGIDIndex   = 33
	offHopLimit   = 34
	offGID        = 36
	offPKeyIndex  = 56
	statusTimeout = 110 // ETIMEDOUT
)

// umadIoctlType is the type of the requests (_IOC_TYPE), their second byte.
const umadIoctlType = 0x1b

// Requests of ioctl.
const (
	registerAgent   = 0xc01c1b01
	unregisterAgent = 0x40041b02
	enablePKey      = 0x1b03
	registerAgent2  = 0xc0281b04
)

// userRMPP is the one flag of registerAgent2.
const userRMPP = 1

// ioctlArgumentSize is the size of the argument of a request, in bytes.
func ioctlArgumentSize(request uint32) int {
	switch request {
	case registerAgent:
		return 28
	case registerAgent2:
		return 40
	case unregisterAgent:
		return 4
	}
	return 0
}
