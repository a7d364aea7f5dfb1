package mad

import (
	"fmt"
	"slices"
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

// StatusInfo describes a status.
type StatusInfo struct {
	Status Status
	Class  Class // 0: of all classes
	Name   string
	Doc    string
}

// Statuses lists the statuses of all classes, then the statuses of SubnAdm (IBA 13.4.7, 15.2.2).
func Statuses() []StatusInfo { return slices.Clone(statuses) }

var statuses = []StatusInfo{
	{StatusBusy, 0, "busy", "the agent cannot answer now; the request is repeated with a growing delay"},
	{StatusRedirect, 0, "redirection required", "another port answers for the class; the request is sent there"},
	{StatusBadVersion, 0, "class version not supported", "the agent does not support the class, or this version of it"},
	{StatusBadMethod, 0, "method not supported", "the agent does not support the method"},
	{StatusBadMethodAttribute, 0, "method/attribute combination not supported", "the agent does not support the attribute, or not with this method"},
	{StatusBadValue, 0, "invalid attribute value", "a field or the attribute modifier has a value that the agent rejects"},
	{StatusNoResources, ClassSubnAdm, "no resources", "the subnet administrator lacks memory or entries for the request"},
	{StatusRequestInvalid, ClassSubnAdm, "request invalid", "the subnet administrator rejects the request"},
	{StatusNoRecords, ClassSubnAdm, "no records", "no record matches the components; a table is then empty"},
	{StatusTooManyRecords, ClassSubnAdm, "too many records", "several records match a Get; GetTable returns all of them"},
	{StatusInvalidGID, ClassSubnAdm, "invalid gid", "a GID of the request is unknown to the subnet administrator"},
	{StatusInsufficient, ClassSubnAdm, "insufficient components", "the request lacks a component that it must have"},
	{StatusDenied, ClassSubnAdm, "request denied", "the subnet administrator refuses the request to this port"},
	{StatusPrioritySuggested, ClassSubnAdm, "priority suggested", "the subnet administrator suggests another priority"},
}

// nameOf returns the name of a code of one of the two parts of a status, or "".
func nameOf(s Status, c Class) string {
	i := slices.IndexFunc(statuses, func(i StatusInfo) bool { return i.Status == s && i.Class == c })
	if i < 0 {
		return ""
	}
	return statuses[i].Name
}

// IsBadVersion reports whether the request had a base or class version that the agent
// does not support.
func (s Status) IsBadVersion() bool { return s&statusInvalidMask == StatusBadVersion }

// String returns s in words, with class-specific codes read as SubnAdm's: no
// other known class has any.
func (s Status) String() string { return s.Text(ClassSubnAdm) }

// Text returns s in words, in a response of class c: "busy", "no records".
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
		if w := nameOf(s&statusInvalidMask, 0); w != "" {
			words = append(words, w)
		} else {
			words = append(words, fmt.Sprintf("reserved code %d", code))
		}
	}
	if rest := s & 0x00e0; rest != 0 {
		words = append(words, fmt.Sprintf("reserved bits %#04x", uint16(rest)))
	}
	if code := s & statusClassMask >> statusClassShift; code != 0 {
		if w := nameOf(s&statusClassMask, ClassSubnAdm); c == ClassSubnAdm && w != "" {
			words = append(words, w)
		} else {
			words = append(words, fmt.Sprintf("class-specific code %d", code))
		}
	}
	return strings.Join(words, ", ")
}
