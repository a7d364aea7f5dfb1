package topology

import (
	"bytes"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/mad"
)

// LFTEntry is an entry of a linear forwarding table: the output port, or None.
func LFTEntry(port byte) starlark.Value {
	if port == mad.NoPort {
		return starlark.None
	}
	return starlark.MakeInt(int(port))
}

// LFTPorts are, by LID, the output ports of the entries of a linear forwarding
// table that have one.
func LFTPorts(entries []byte) *starlark.Dict {
	ports := starlark.NewDict(len(entries))
	for lid, p := range entries {
		if p != mad.NoPort {
			ports.SetKey(starlark.MakeInt(lid), starlark.MakeInt(int(p)))
		}
	}
	return ports
}

// LFTUsed are the output ports, in order.
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

// LFTLIDs are, by output port, the LIDs that go to it.
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
			ports.SetKey(starlark.MakeInt(int(p)), starlark.None) // here it has its place
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

// LFTText is a linear forwarding table for people, 16 entries a line. Lines
// without an output port are left out.
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
