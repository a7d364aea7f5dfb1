package topology

import (
	"bytes"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// LFTEntry returns an entry of a linear forwarding table: the output port, or None.
func LFTEntry(port byte) starlark.Value {
	if port == mad.NoPort {
		return starlark.None
	}
	return starlark.MakeInt(int(port))
}

// LFTPorts returns the output ports of a linear forwarding table by LID, without the
// entries that have none.
func LFTPorts(entries []byte) *starlark.Dict {
	ports := starlark.NewDict(len(entries))
	for lid, p := range entries {
		if p != mad.NoPort {
			ports.SetKey(starlark.MakeInt(lid), starlark.MakeInt(int(p)))
		}
	}
	return ports
}

// LFTUsed returns the output ports, in order.
func LFTUsed(entries []byte) *starlark.List {
	var used [mad.NoPort + 1]bool
	for _, p := range entries {
		used[p] = true
	}
	var ports []starlark.Value
	for p, yes := range used[:mad.NoPort] {
		if yes {
			ports = append(ports, starlark.MakeInt(p))
		}
	}
	return starlark.NewList(ports)
}

// LFTLIDs returns the LIDs by output port.
func LFTLIDs(entries []byte) *starlark.Dict {
	var counts [mad.NoPort + 1]int
	for _, p := range entries {
		counts[p]++
	}
	var lists [mad.NoPort][]starlark.Value
	ports := new(starlark.Dict)
	for lid, p := range entries {
		if p == mad.NoPort {
			continue
		}
		if lists[p] == nil {
			lists[p] = make([]starlark.Value, 0, counts[p])
			ports.SetKey(starlark.MakeInt(int(p)), starlark.None) // fixes the order of the keys
		}
		lists[p] = append(lists[p], starlark.MakeInt(lid))
	}
	for p, lids := range lists {
		if lids != nil {
			ports.SetKey(starlark.MakeInt(p), starlark.NewList(lids))
		}
	}
	return ports
}

// LFTText returns a linear forwarding table as text, 16 entries in each line, without
// lines that have no output port.
func LFTText(entries []byte) string {
	const perLine = 16
	var b strings.Builder
	fmt.Fprintf(&b, "%5s ", "lid")
	for i := range perLine {
		fmt.Fprintf(&b, " %3s", fmt.Sprintf("+%d", i))
	}
	b.WriteByte('\n')
	for first := 0; first < len(entries); first += perLine {
		line := entries[first:min(first+perLine, len(entries))]
		if bytes.Count(line, []byte{mad.NoPort}) == len(line) {
			continue
		}
		fmt.Fprintf(&b, "%5d ", first)
		for _, p := range line {
			if p == mad.NoPort {
				b.WriteString("   -")
			} else {
				fmt.Fprintf(&b, " %3d", p)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
