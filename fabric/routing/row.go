package routing

import "fabsh/mad"

// Row is the forwarding table of one switch: ports by LID. Methods that write ignore
// LIDs beyond its end.
type Row []uint8

// Port is the entry of lid; NoPort beyond the end.
func (r Row) Port(lid mad.LID) uint8 {
	if int(lid) >= len(r) {
		return NoPort
	}
	return r[lid]
}

// Fill sets the entries of lids to port.
func (r Row) Fill(lids []mad.LID, port uint8) {
	for _, lid := range lids {
		if int(lid) < len(r) {
			r[lid] = port
		}
	}
}

// FillMod sets the entry of the i-th of lids to ports[i/div mod len(ports)]: d-mod-k,
// by the digit of weight div.
func (r Row) FillMod(lids []mad.LID, ports []uint8, div int) {
	if len(ports) == 0 {
		return
	}
	div = max(div, 1)
	digit, left := 0, div
	for _, lid := range lids {
		if int(lid) < len(r) {
			r[lid] = ports[digit]
		}
		if left--; left == 0 {
			left = div
			if digit++; digit == len(ports) {
				digit = 0
			}
		}
	}
}

// Copy copies the entries of lids, or all if lids is nil, from another row.
func (r Row) Copy(from Row, lids []mad.LID) {
	if lids == nil {
		copy(r, from)
		return
	}
	for _, lid := range lids {
		if int(lid) < len(r) && int(lid) < len(from) {
			r[lid] = from[lid]
		}
	}
}

// Map replaces port p by ports[p] in the entries of lids, or in all if lids is nil.
// Ports that are not in ports stay.
func (r Row) Map(ports map[uint8]uint8, lids []mad.LID) {
	var to [256]uint8
	for p := range to {
		to[p] = uint8(p)
	}
	for p, q := range ports {
		to[p] = q
	}
	if lids == nil {
		for lid := range r {
			r[lid] = to[r[lid]]
		}
		return
	}
	for _, lid := range lids {
		if int(lid) < len(r) {
			r[lid] = to[r[lid]]
		}
	}
}
