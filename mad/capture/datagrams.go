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
	MAD      []byte   // valid until the next one is read; nil: the packet is not a MAD
	Other    string   // the kind of a packet that is not a MAD
	Problems []string // errors in the headers before the MAD
}

// Datagrams calls each with the sent and received packets of a recording, or of another
// ERF capture of InfiniBand, in order. name is the name of the file in messages. It ends
// at the first error of each; incomplete, if not nil, means that the recording breaks off
// after these packets.
func Datagrams(r io.Reader, name string, each func(d Datagram) error) (incomplete, err error) {
	file, err := erf.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	own := false // recorded by fabsh: the facts of the local port are packets of separate interfaces
	for n := 0; ; n++ {
		var p erf.Packet
		var cut *erf.CutError
		var other *erf.OtherError
		d := Datagram{}
		switch err := file.Read(&p); {
		case err == io.EOF:
			return nil, nil
		case n > 0 && errors.As(err, &cut): // complete packets are used
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

// isMAD reports whether a datagram is a MAD: it has queue pair 0 or 1 at either end, or,
// for a queue pair of a redirection, it begins like a MAD.
func isMAD(p *erf.Packet) bool {
	m := p.Payload
	if len(m) < mad.HeaderSize {
		return false
	}
	_, known := mad.Class(m[mad.ClassOffset]).Info()
	return p.DestQP <= 1 || p.SrcQP <= 1 || len(m) == mad.Size && m[mad.BaseVersionOffset] == 1 && known
}

// wrongHeaders lists the values in the headers of link and transport that are invalid for
// a MAD (IBA 9.2.3, 10.9.1, 13.5.3, 14.2.1; Shanley, InfiniBand Network Architecture, "SMP
// Validation").
func wrongHeaders(p *erf.Packet) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	smp := mad.Class(p.Payload[mad.ClassOffset]).Family() == mad.ClassSubn
	switch {
	case smp && p.VL != managementVL:
		add("LRH:VL is %d, want %d in an SMP", p.VL, managementVL)
	case !smp && p.VL == managementVL:
		add("LRH:VL is %d, valid only in SMPs", p.VL)
	}
	switch {
	case smp && p.DestQP != 0:
		add("BTH:DestQP is %#x, want 0 in an SMP", p.DestQP)
	case !smp && p.DestQP == 0:
		add("BTH:DestQP is 0, valid only in SMPs")
	case !smp && p.DestQP != 1 && p.SrcQP != 1:
		add("BTH:DestQP is %#x, want 1 in a MAD other than an SMP without redirection", p.DestQP)
	}
	if !smp && p.PKey&0x7fff == 0 {
		add("BTH:P_Key is %#04x, invalid", p.PKey)
	}
	if p.DestQP == 1 && !smp && p.QKey != mad.GeneralQKey {
		add("DETH:Q_Key is 0x%08x, want 0x%08x for queue pair 1", p.QKey, uint32(mad.GeneralQKey))
	}
	return list
}
