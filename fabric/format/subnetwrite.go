package format

import (
	"bufio"
	"fmt"
	"io"

	"fabsh/fabric"
	"fabsh/mad"
)

// writeSubnet writes what OpenSM writes as opensm-subnet.lst, byte for byte, its
// old errors included (opensm/osm_dump.c, dump_topology_node): VenID and DevID
// of the second end have 8 digits, and a speed above QDR is written only where the
// other end is capable of such. A connected port whose state is unknown is
// written as ACT, because ibdm skips ports that are neither ACT, ARM nor INI.
func writeSubnet(w io.Writer, f *fabric.Fabric) error {
	out := bufio.NewWriterSize(w, 1<<16)
	for _, n := range openSMOrder(f.Nodes()) {
		for p := range n.Ports() {
			q := p.Peer()
			if q == nil {
				continue
			}
			i, j := n.Info(), q.Node().Info()
			fmt.Fprintf(out, "{ %s VenID:%06X DevID:%04X %s } ", subnetHead(p), i.VendorID, i.DeviceID, subnetTail(p))
			fmt.Fprintf(out, "{ %s VenID:%08X DevID:%04X %s } ", subnetHead(q), j.VendorID, uint32(j.DeviceID)<<16, subnetTail(q))
			if _, err := fmt.Fprintf(out, "PHY=%s LOG=%s SPD=%s\n", subnetWidth(p), subnetState(p), subnetSpeed(p, q)); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

func subnetHead(p *fabric.Port) string {
	n := p.Node()
	kind := "**"
	for word, t := range subnetTypes {
		if t == n.Type() {
			kind = word
		}
	}
	if i := addressInfo(p); i != nil && i.LID != 0 && i.LID == i.MasterSMLID {
		kind += "-SM"
	}
	return fmt.Sprintf("%s Ports:%02X SystemGUID:%016x NodeGUID:%016x PortGUID:%016x", kind, n.NumPorts(), uint64(n.Info().SystemImageGUID), uint64(n.GUID()), uint64(p.GUID()))
}

func subnetTail(p *fabric.Port) string {
	return fmt.Sprintf("Rev:%08X {%s} LID:%04X PN:%02X", p.Node().Info().Revision, description(p.Node()), uint16(p.LID()), p.Num())
}

// addressInfo is the PortInfo that has the LID of p: of a switch that of port 0.
func addressInfo(p *fabric.Port) *mad.PortInfo {
	if p.Node().IsSwitch() {
		return p.Node().Port(0).Info()
	}
	return p.Info()
}

func subnetWidth(p *fabric.Port) string {
	if w := p.Width(); w != "" {
		return w
	}
	return "??"
}

func subnetState(p *fabric.Port) string {
	for word, s := range subnetStates {
		if s == p.State() {
			return word
		}
	}
	return "ACT"
}

// subnetSpeed is the speed of p, in Gb/s a lane; q is the other end.
func subnetSpeed(p, q *fabric.Port) string {
	i, caps := p.Info(), addressInfo(q)
	if i == nil {
		return "??"
	}
	s := "??"
	switch i.LinkSpeedActive {
	case mad.LinkSpeedSDR:
		s = "2.5"
	case mad.LinkSpeedDDR:
		s = "5"
	case mad.LinkSpeedQDR:
		s = "10"
	}
	if p.Speed() == "fdr10" {
		s = "FDR10"
	}
	if caps == nil || caps.CapabilityMask&mad.CapabilityMaskIsExtendedSpeedsSupported == 0 {
		return s
	}
	switch i.LinkSpeedExtActive {
	case 0:
		return s
	case mad.LinkSpeedExtFDR:
		return "14"
	case mad.LinkSpeedExtEDR:
		return "25"
	case mad.LinkSpeedExtHDR:
		return "50"
	}
	return "??"
}
