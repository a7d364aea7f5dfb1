package routing

import "fabsh/mad"

// Row is the table of one switch: a port by LID. LIDs beyond its end are
// ignored by what writes.
type Row []uint8

// Port is the port of lid; NoPort where there is none.
func (r Row) Port(lid mad.LID) uint8 {
	if int(lid) >= len(r) {
		return NoPort
	}
	return r[lid]
}

// Fill gives all of lids one port.
func (r Row) Fill(lids []mad.LID, port uint8) {
	for _, lid := range lids {
		if int(lid) < len(r) {
			r[lid] = port
		}
	}
}

// FillMod deals ports to lids by their places: the i-th gets port number
// i/div mod the number of ports. That is d-mod-k: the digit of weight div.
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

// Copy takes over the entries that from has for lids, or all where lids is nil.
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

// Map puts ports[p] in place of port p, in the entries of lids, or in all
// where lids is nil. Ports that are not in it stay.
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
