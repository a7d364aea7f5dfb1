package capture

import (
	"errors"
	"fmt"
	"io"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/internal/erf"
)

// Datagram is a packet of a capture.
type Datagram struct {
	Packet   int      // its number, from 1, as in Wireshark
	MAD      []byte   // valid until the next one is read; nil: the packet is no MAD
	Other    string   // what the packet is then
	Problems []string // what is wrong with the headers before the MAD
}

// Datagrams calls each with the packets of a recording, or of another capture of
// InfiniBand by ERF, that were sent and received, in their order. name is what messages
// call the file. It ends at the first error of each; incomplete, if not nil, says that the
// recording breaks off after those that were given.
func Datagrams(r io.Reader, name string, each func(d Datagram) error) (incomplete, err error) {
	file, err := erf.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	own := false // recorded here: the facts of the local port are packets of interfaces of their own
	for n := 0; ; n++ {
		var p erf.Packet
		var cut *erf.CutError
		var other *erf.OtherError
		d := Datagram{}
		switch err := file.Read(&p); {
		case err == io.EOF:
			return nil, nil
		case n > 0 && errors.As(err, &cut): // what is whole is of use
			return fmt.Errorf("%s: %w", name, cut), nil
		case errors.As(err, &other):
			d.Other = other.Err.Error()
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case !isMAD(&p):
			d.Other = fmt.Sprintf("not a management datagram: %d bytes from LID %d to LID %d, queue pair %#x", len(p.Payload), p.SLID, p.DLID, p.DestQP)
		default:
			d.MAD, d.Problems = p.Payload, wrongHeaders(&p)
		}
		d.Packet = file.Number()
		isLocal := p.Interface == local || p.Interface == simulated
		if n == 0 && isLocal && d.MAD != nil {
			_, own = addPortMAD(new(engine.Port), p.Payload)
		}
		if own && isLocal && d.MAD != nil {
			continue
		}
		if err := each(d); err != nil {
			return nil, err
		}
	}
}

// isMAD reports whether a datagram is of management: one of queue pair 0 or 1 at either
// end, or, of those that a redirection named, one that begins as MADs do.
func isMAD(p *erf.Packet) bool {
	m := p.Payload
	if len(m) < mad.HeaderSize {
		return false
	}
	_, known := mad.Class(m[mad.ClassOffset]).Info()
	return p.DestQP <= 1 || p.SrcQP <= 1 || len(m) == mad.Size && m[mad.BaseVersionOffset] == 1 && known
}

// wrongHeaders lists what the headers of the link and of the transport have that a MAD's
// may not (IBA 9.2.3, 10.9.1, 13.5.3, 14.2.1; Shanley, InfiniBand Network Architecture, "SMP
// Validation").
func wrongHeaders(p *erf.Packet) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	smp := mad.Class(p.Payload[mad.ClassOffset]).Family() == mad.ClassSubn
	switch {
	case smp && p.VL != managementVL:
		add("LRH:VL is %d, and SMPs have %d", p.VL, managementVL)
	case !smp && p.VL == managementVL:
		add("LRH:VL is %d, which only SMPs have", p.VL)
	}
	switch {
	case smp && p.DestQP != 0:
		add("BTH:DestQP is %#x, and SMPs have 0", p.DestQP)
	case !smp && p.DestQP == 0:
		add("BTH:DestQP is 0, which only SMPs have")
	case !smp && p.DestQP != 1 && p.SrcQP != 1:
		add("BTH:DestQP is %#x, and MADs other than SMPs go to 1 where no redirection names another", p.DestQP)
	}
	if !smp && p.PKey&0x7fff == 0 {
		add("BTH:P_Key is %#04x, which is invalid", p.PKey)
	}
	if p.DestQP == 1 && !smp && p.QKey != mad.GeneralQKey {
		add("DETH:Q_Key is 0x%08x, and queue pair 1 has 0x%08x", p.QKey, uint32(mad.GeneralQKey))
	}
	return list
}
