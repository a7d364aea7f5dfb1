package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// leaks finds the identities of a recording in data of any layout.
type leaks struct {
	numbers map[uint64]bool // GUIDs, prefixes, the lower halves of multicast GIDs
	high    [1 << 16]bool   // the first two bytes of numbers
	texts   map[string]bool // names and serial numbers in lower case
	begin   [1 << 16]bool   // their first two bytes
	lengths []int           // of texts, each once
}

// Texts of fewer bytes than minText, and numbers without a manufacturer, are in any data by chance.
const minText = 4

// newLeaks returns the search for the identities that x replaces.
func newLeaks(x *identities) *leaks {
	l := &leaks{numbers: map[uint64]bool{}, texts: map[string]bool{}}
	for _, m := range []map[uint64]uint64{x.guids, x.prefixes, x.groups} {
		for from, to := range m {
			if from != to && from>>40 != 0 {
				l.numbers[from], l.high[from>>48] = true, true
			}
		}
	}
	for _, m := range []map[string]string{x.nodes, x.texts} {
		for text := range m {
			if text = string(lowerASCII([]byte(text))); len(text) >= minText && !isCommon(text) {
				l.texts[text], l.begin[firstTwo([]byte(text))] = true, true
				l.lengths = append(l.lengths, len(text))
			}
		}
	}
	slices.Sort(l.lengths)
	l.lengths = slices.Compact(l.lengths)
	return l
}

// isCommon reports whether a text also names devices in descriptions of models, or is a part of
// a replacement.
func isCommon(text string) bool {
	return text == nodeWord || text == textWord || len(text) <= 5 && strings.Trim(text, "0123456789") == "" ||
		genericName().MatchString(text) || deviceName().MatchString(text) || adapterName().MatchString(strings.ToUpper(text)) || adapterName().MatchString(text)
}

func firstTwo(b []byte) uint16 { return binary.BigEndian.Uint16(b) }

// view is data in another order: byte i of it is byte of(i) of the data.
type view struct {
	name string
	size func(n int) int
	of   func(i, n int) int
}

// views are the orders in which devices and programs write texts and numbers.
func views() []view {
	same := func(n int) int { return n }
	return []view{
		{"", same, func(i, _ int) int { return i }},
		{", in the other order of bytes", same, func(i, n int) int { return n - 1 - i }},
		{", in swapped words of 16 bits", func(n int) int { return n &^ 1 }, func(i, _ int) int { return i ^ 1 }},
		{", in swapped words of 32 bits", func(n int) int { return n &^ 3 }, func(i, _ int) int { return i ^ 3 }},
		{", in UTF-16", func(n int) int { return (n + 1) / 2 }, func(i, _ int) int { return 2 * i }},
		{", in UTF-16", func(n int) int { return n / 2 }, func(i, _ int) int { return 2*i + 1 }},
	}
}

// each calls found with the places of each identity in data, in each view.
func (l *leaks) each(data []byte, found func(what string, places []int)) {
	for _, v := range views() {
		seen := make([]byte, v.size(len(data)))
		for i := range seen {
			seen[i] = data[v.of(i, len(data))]
		}
		l.in(seen, func(what string, start, end int) {
			places := make([]int, 0, end-start)
			for i := start; i < end; i++ {
				places = append(places, v.of(i, len(data)))
			}
			found(what+v.name, places)
		})
	}
}

// in calls found with each identity in b.
func (l *leaks) in(b []byte, found func(what string, start, end int)) {
	lower := lowerASCII(b)
	for i := 0; i+2 <= len(b); i++ {
		if i+8 <= len(b) && l.high[firstTwo(b[i:])] && l.numbers[binary.BigEndian.Uint64(b[i:])] {
			found("a GUID or a part of a GID", i, i+8)
		}
		if l.begin[firstTwo(lower[i:])] && (i == 0 || !isAlphanumeric(lower[i-1])) {
			for _, n := range l.lengths {
				end := i + n
				if end <= len(lower) && (end == len(lower) || !isAlphanumeric(lower[end])) && l.texts[string(lower[i:end])] {
					found("a name or a serial number", i, end)
				}
			}
		}
		if isHex(lower[i]) && (i == 0 || !isHex(lower[i-1]) && lower[i-1] != ':') {
			if end := i + hexRun(lower[i:]); l.numbers[hexNumber(lower[i:end])] {
				found("a GUID as text", i, end)
			}
		}
	}
}

// lowerASCII returns b with its letters in lower case.
func lowerASCII(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

func isAlphanumeric(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// hexRun returns the length of the digits and colons at the beginning of b, at most that of a GID.
func hexRun(b []byte) (n int) {
	for n < len(b) && n < len("fe80:0000:0000:0000:0002:c903:0010:0001") && (isHex(b[n]) || b[n] == ':') {
		n++
	}
	return n
}

// hexNumber returns the number in digits, which may be in groups of two or four: a GUID, or the
// lower half of a GID; 0 without a number.
func hexNumber(text []byte) (number uint64) {
	groups := bytes.Split(text, []byte(":"))
	width := 4
	switch {
	case len(groups) == 1:
		groups, width = [][]byte{text}, 16
	case len(groups) == 8 && len(text) == len("00:02:c9:03:00:10:00:01"):
		width = 2
	case len(groups) >= 4:
		groups = groups[len(groups)-4:]
	default:
		return 0
	}
	for _, g := range groups {
		if len(g) > width {
			return 0
		}
		value := uint64(0)
		for _, c := range g {
			digit := uint64(c - '0')
			if c >= 'a' {
				digit = uint64(c-'a') + 10
			}
			value = value<<4 | digit
		}
		number = number<<(4*width) | value
	}
	return number
}

// blank clears the identities in data.
func (l *leaks) blank(data []byte) {
	l.each(data, func(_ string, places []int) {
		for _, at := range places {
			data[at] = 0
		}
	})
}

// check returns an error if data has an identity.
func (l *leaks) check(what string, data []byte) (err error) {
	l.each(data, func(leak string, places []int) {
		if err == nil {
			err = fmt.Errorf("%s: %s at byte %d is not replaced; nothing is saved", what, leak, slices.Min(places))
		}
	})
	return err
}

// checkRecording returns an error if a recording has an identity, in the file or in the data of
// transfers without the headers of segments.
func (l *leaks) checkRecording(recording []byte) error {
	if err := l.check("recording", recording); err != nil {
		return err
	}
	packets, err := readPackets(bytes.NewReader(recording))
	if err != nil {
		return err
	}
	for _, u := range unitsOf(packets) {
		if err := l.check("datagram of the recording", u.data); err != nil {
			return err
		}
	}
	return nil
}
