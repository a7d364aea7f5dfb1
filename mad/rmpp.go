package mad

// Offsets of the RMPP header's fields, in bytes (IBA 13.6.2).
const (
	RMPPVersionOffset   = RMPPOffset
	RMPPTypeOffset      = RMPPOffset + 1
	RMPPFlagsOffset     = RMPPOffset + 2 // the lower 3 bits; the upper 5 are RRespTime
	RMPPStatusOffset    = RMPPOffset + 3
	SegmentNumberOffset = RMPPOffset + 4
	PayloadLengthOffset = RMPPOffset + 8
	NewWindowLastOffset = RMPPOffset + 8
)

// Sizes of a segment of subnet administration, in bytes.
const (
	// SegmentData is the largest part of the table in one segment.
	SegmentData = Size - SADataOffset
	// SegmentHeader is the part of each segment's header that PayloadLength
	// counts: SM_Key, AttributeOffset, ComponentMask (IBA 13.6.2.1, 15.2.1.1).
	SegmentHeader = SADataOffset - SAKeyOffset
)

// NoRespTime is the RRespTime of a sender without a response time.
const NoRespTime = 31

// IsSegment reports whether m is part of an RMPP transfer, which version 1 of the
// class does not have. OpenSM on ibsim's client library sets the active flag with
// version 0, in MADs that are not segments.
func IsSegment(m []byte) bool {
	return len(m) >= SADataOffset && Class(m[ClassOffset]) == ClassSubnAdm && m[ClassVersionOffset] != 1 &&
		RMPPFlags(m[RMPPFlagsOffset])&RMPPFlagsActive != 0 && m[RMPPVersionOffset] != 0
}

// rmppStatusTexts are the texts of messages; scripts have the words of the
// enumeration.
var rmppStatusTexts = map[RMPPStatus]string{
	RMPPStatusResourcesExhausted:                "resources exhausted",
	RMPPStatusTotalTimeTooLong:                  "total time too long",
	RMPPStatusInconsistentLastAndPayloadLength:  "inconsistent last segment and payload length",
	RMPPStatusInconsistentFirstAndSegmentNumber: "inconsistent first segment and segment number",
	RMPPStatusBadRMPPType:                       "bad RMPP type",
	RMPPStatusNewWindowLastTooSmall:             "new window too small",
	RMPPStatusSegmentNumberTooBig:               "segment number too big",
	RMPPStatusIllegalStatus:                     "illegal status",
	RMPPStatusUnsupportedVersion:                "unsupported RMPP version",
	RMPPStatusTooManyRetries:                    "too many retries",
	RMPPStatusUnspecified:                       "unspecified",
}

// Text returns why a transfer ended early, by the status of its STOP or ABORT:
// "too many retries". From 128 on the reasons are class-specific, from 192 on
// vendor-specific (IBA 13.6.2.1, table 180).
func (s RMPPStatus) Text() string {
	switch text := rmppStatusTexts[s]; {
	case s >= 192:
		return "vendor-specific reason"
	case s >= 128:
		return "class-specific reason"
	case text == "":
		return "unknown"
	default:
		return text
	}
}
