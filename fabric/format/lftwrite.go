package format

import (
	"bufio"
	"io"
	"strconv"

	"fabsh/fabric"
	"fabsh/mad"
)

// WriteLFTs writes forwarding tables as OpenSM writes opensm-lfts.dump, byte for
// byte. row gives the ports of a switch by LID; nil: no table. OpenSM's
// engine file reads the file (-R file,no_fallback -U FILE).
func WriteLFTs(w io.Writer, f *fabric.Fabric, row func(sw *fabric.Node) []byte) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var tails []string // of lines, after the port, by LID
	var line []byte
	for _, n := range openSMOrder(f.OfType(mad.NodeTypeSwitch)) {
		entries := row(n)
		if len(entries) == 0 {
			continue
		}
		for lid := len(tails); lid < len(entries); lid++ {
			tails = append(tails, owner(f.PortByLID(mad.LID(lid))))
		}
		line = append(line[:0], "Unicast lids [0-"...)
		line = strconv.AppendInt(line, int64(len(entries)-1), 10)
		line = append(line, "] of switch Lid "...)
		line = strconv.AppendInt(line, int64(n.LID()), 10)
		line = append(line, " guid "...)
		line = append(line, n.GUID().String()...)
		line = append(line, " ('"...)
		line = append(line, description(n)...)
		line = append(line, "'):\n"...)
		out.Write(line)
		for lid, port := range entries {
			if int(port) > n.NumPorts() {
				continue
			}
			line = append(line[:0], "0x"...)
			line = appendHex(line, uint64(lid), 4, lowerDigits)
			line = append(line, ' ', '0'+port/100, '0'+port/10%10, '0'+port%10)
			line = append(line, tails[lid]...)
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
		line = strconv.AppendInt(line[:0], int64(len(entries)-1), 10)
		out.Write(append(line, " lids dumped\n"...))
	}
	return out.Flush()
}

// owner is the comment that names p, which has the LID.
func owner(p *fabric.Port) string {
	if p == nil {
		return " # unknown node and type\n"
	}
	return " # " + typeName(p.Node().Type()) + " portguid " + p.GUID().String() + ": '" + description(p.Node()) + "'\n"
}
