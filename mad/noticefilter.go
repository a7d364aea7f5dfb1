package mad

// Values of an InformInfo that select all, as InformTypeAll and ProducerTypeAll
// do (IBA 13.4.8.3; rdma-core, srp_handle_traps.c, register_to_trap).
const (
	AllTraps uint16 = 0xffff
	AllLIDs  LID    = 0xffff
)

// Matches reports whether subscription i selects notice n. The GID, or without
// one the range of LIDs, is that of the port that issued the notice; traps 64
// to 67 are issued by the subnet manager (IBA 13.4.8.3; opensm, osm_inform.c,
// match_notice_to_inf_rec).
func (i *InformInfo) Matches(n *Notice) bool {
	switch {
	case i.GID != GID{}:
		if i.GID != n.IssuerGID {
			return false
		}
	case i.LIDRangeBegin == AllLIDs:
	case n.IssuerLID < i.LIDRangeBegin || n.IssuerLID > max(i.LIDRangeBegin, i.LIDRangeEnd):
		return false
	}
	return (i.IsGeneric != 0) == n.IsGeneric &&
		(i.Type == InformTypeAll || uint16(i.Type) == uint16(n.Type)) &&
		(i.TrapNumber == AllTraps || i.TrapNumber == n.TrapNumber) &&
		(i.ProducerType == ProducerTypeAll || i.ProducerType == n.ProducerType)
}
