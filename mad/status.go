package mad

import (
	"fmt"
	"strings"
)

// Status is the status field of a MAD (IBA 13.4.7). The lower byte is common
// to all classes: two flags, and in bits 2 to 4 a code for an invalid request.
// The upper byte is class-specific.
type Status uint16

const (
	StatusOK                 Status = 0
	StatusBusy               Status = 0x0001
	StatusRedirect           Status = 0x0002
	StatusBadVersion         Status = 0x0004
	StatusBadMethod          Status = 0x0008
	StatusBadMethodAttribute Status = 0x000c
	StatusBadValue           Status = 0x001c
	statusInvalidMask        Status = 0x001c
	statusClassMask          Status = 0xff00
	statusClassShift                = 8
	StatusNoResources        Status = 0x0100 // of SubnAdm from here on (IBA 15.2.2)
	StatusRequestInvalid     Status = 0x0200
	StatusNoRecords          Status = 0x0300
	StatusTooManyRecords     Status = 0x0400
	StatusInvalidGID         Status = 0x0500
	StatusInsufficient       Status = 0x0600
	StatusDenied             Status = 0x0700
	StatusPrioritySuggested  Status = 0x0800
)

var statusInvalid = [8]string{
	1: "class version not supported",
	2: "method not supported",
	3: "method/attribute combination not supported",
	7: "invalid attribute value",
}

var statusSubnAdm = [...]string{
	1: "no resources",
	2: "request invalid",
	3: "no records",
	4: "too many records",
	5: "invalid gid",
	6: "insufficient components",
	7: "request denied",
	8: "priority suggested",
}

// IsBadVersion reports whether the request had a base or class version that the agent
// does not support.
func (s Status) IsBadVersion() bool { return s&statusInvalidMask == StatusBadVersion }

// String is s in words, with class-specific codes as those of SubnAdm: no other
// class that is known here has any.
func (s Status) String() string { return s.Text(ClassSubnAdm) }

// Text is s in words, in a response of class c: "busy", "no records".
func (s Status) Text(c Class) string {
	if s == StatusOK {
		return "ok"
	}
	var words []string
	if s&StatusBusy != 0 {
		words = append(words, "busy")
	}
	if s&StatusRedirect != 0 {
		words = append(words, "redirection required")
	}
	if code := s & statusInvalidMask >> 2; code != 0 {
		if w := statusInvalid[code]; w != "" {
			words = append(words, w)
		} else {
			words = append(words, fmt.Sprintf("reserved code %d", code))
		}
	}
	if rest := s & 0x00e0; rest != 0 {
		words = append(words, fmt.Sprintf("reserved bits %#04x", uint16(rest)))
	}
	if code := s & statusClassMask >> statusClassShift; code != 0 {
		if c == ClassSubnAdm && int(code) < len(statusSubnAdm) {
			words = append(words, statusSubnAdm[code])
		} else {
			words = append(words, fmt.Sprintf("class-specific code %d", code))
		}
	}
	return strings.Join(words, ", ")
}
