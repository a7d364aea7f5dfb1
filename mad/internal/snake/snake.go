// Package snake turns the specification's component names into the names that
// scripts use.
package snake

import (
	"strings"
	"unicode"
)

// Name puts a component name into snake case: "M_Key" becomes "m_key",
// "MasterSMLID" "master_sm_lid", "LIDsPerPort" "lids_per_port".
//
// A name is cut at underscores, before a capital that follows a small letter
// or a digit, and inside a run of capitals before the last one when a small
// letter follows ("FDBTop"). Acronyms that follow each other ("SMLID"), or that
// a small letter follows ("LIDs", "SLto"), are cut by a list of acronyms.
func Name(spec string) string {
	var words []string
	for rest := spec; rest != ""; {
		n := wordLen(rest)
		if w := strings.Trim(rest[:n], "_"); w != "" {
			words = append(words, strings.ToLower(w))
		}
		rest = rest[n:]
	}
	return strings.Join(words, "_")
}

// acronyms are the words that runs of capitals are cut into. One that begins
// with another stands before it.
var acronyms = []string{
	"TClass", "QoS", "VClient", "VPort", "VNode", "SHARP", "PCIe", "CNP", "PLFT", "pFRN", "N2N", "OOO", "SNMP", "GUID", "NVRAM", "IETF", "RSFEC", "FECN", "BECN", "RDMA",
	"DGID", "SGID", "DLID", "SLID", "FDB", "FEC", "GID", "HOQ", "HDR", "LED", "LID", "LMC", "MAD", "MTU", "NDR", "QDR", "EDR", "FDR", "XDR", "QOS", "OUI", "QPN", "VPD",
	"DR", "FL", "HL", "IPD", "PM", "QP", "SL", "SM", "TC", "VL",
}

// wordLen is the length of the first word of s, with the underscore after it.
func wordLen(s string) int {
	n := 0
	for _, a := range acronyms {
		if strings.HasPrefix(s, a) && endsAcronym(s[len(a):]) {
			n = len(a)
			break
		}
	}
	switch {
	case n > 0: // an acronym, with its plural
		if strings.HasPrefix(s[n:], "s") && (len(s) == n+1 || !unicode.IsLower(rune(s[n+1]))) {
			n++
		}
	default:
		for n < len(s) && isUpper(s[n]) {
			n++
		}
		if n > 1 && n < len(s) && isLower(s[n]) {
			n-- // the last capital begins the next word
			return n
		}
		for n < len(s) && isLower(s[n]) {
			n++
		}
	}
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	// Small letters right after digits belong to them: "4x", "12x", "1to9".
	if n > 0 && isDigit(s[n-1]) {
		for n < len(s) && (isLower(s[n]) || isDigit(s[n])) {
			n++
		}
	}
	for n < len(s) && !isUpper(s[n]) && !isLower(s[n]) && !isDigit(s[n]) {
		n++
	}
	return max(n, 1)
}

// endsAcronym reports whether an acronym may end before rest. It does not if rest
// continues the word in small letters ("SMart").
func endsAcronym(rest string) bool {
	if rest == "" || !isLower(rest[0]) {
		return true
	}
	for _, joint := range []string{"s", "to", "disabled", "supported"} {
		if after, ok := strings.CutPrefix(rest, joint); ok && (after == "" || !isLower(after[0])) {
			return true
		}
	}
	return false
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
