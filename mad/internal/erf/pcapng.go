package erf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"time"
)

// Types of blocks of a pcapng file; others are skipped.
const (
	sectionBlock   = 0x0a0d0d0a // the same in both byte orders
	interfaceBlock = 1
	oldPacketBlock = 2
	simpleBlock    = 3
	packetBlock    = 6

	byteOrderMagic = 0x1a2b3c4d
	blockHead      = 8       // type and length
	maxBlock       = 1 << 20 // bytes of a block that is read
	maxInterfaces  = 1 << 12 // of a section
)

// Options of blocks.
const (
	optionFlags      = 2  // of a packet
	optionResolution = 9  // of an interface
	optionOffset     = 14 // of an interface
)

// pcapng is a pcapng file: sections of blocks.
type pcapng struct {
	in         io.Reader
	order      binary.ByteOrder // nil: no section has begun
	interfaces []captureInterface
	body       []byte // of the block
}

// captureInterface is what an interface block states.
type captureInterface struct {
	link    LinkType
	snapLen uint32
	// seconds is how many units of a time stamp a second has; 0: it does not fit.
	seconds uint64
	offset  int64 // of time stamps, in seconds
}

// next reads blocks up to the next packet.
func (f *pcapng) next(x *frame) error {
	for {
		kind, err := f.block()
		if err != nil {
			return err
		}
		packet := false
		switch kind {
		case interfaceBlock:
			err = f.addInterface()
		case packetBlock, oldPacketBlock:
			packet, err = true, f.packet(kind, x)
		case simpleBlock:
			packet, err = true, f.simplePacket(x)
		}
		if packet || err != nil {
			return err
		}
	}
}

// block reads a block, into body unless it is skipped.
func (f *pcapng) block() (kind uint32, err error) {
	var head [blockHead + 4]byte
	if _, err := io.ReadFull(f.in, head[:blockHead]); err != nil {
		return 0, err
	}
	at := blockHead
	if binary.BigEndian.Uint32(head[:]) == sectionBlock {
		if err := readPart(f.in, head[at:]); err != nil {
			return 0, err
		}
		at += 4
		switch uint32(byteOrderMagic) {
		case binary.LittleEndian.Uint32(head[blockHead:]):
			f.order = binary.LittleEndian
		case binary.BigEndian.Uint32(head[blockHead:]):
			f.order = binary.BigEndian
		default:
			return 0, fmt.Errorf("the file is damaged: a section of pcapng with the byte-order magic % x", head[blockHead:])
		}
		f.interfaces = nil
	}
	kind = f.order.Uint32(head[:])
	size := int64(f.order.Uint32(head[4:]))
	if size < int64(at)+4 || size%4 != 0 {
		return 0, fmt.Errorf("the file is damaged: a block of pcapng of %d bytes", size)
	}
	rest := size - int64(at)
	switch kind {
	case interfaceBlock, packetBlock, oldPacketBlock, simpleBlock:
		if size > maxBlock {
			return 0, fmt.Errorf("a block of pcapng of %d bytes, longer than %d", size, maxBlock)
		}
		f.body = append(f.body[:0], make([]byte, rest)...)
		err = readPart(f.in, f.body)
	default:
		f.body = append(f.body[:0], make([]byte, 4)...)
		if _, err = io.CopyN(io.Discard, f.in, rest-4); err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = readPart(f.in, f.body)
		}
	}
	if err != nil {
		return 0, err
	}
	body, again := f.body[:len(f.body)-4], f.body[len(f.body)-4:]
	if f.body = body; int64(f.order.Uint32(again)) != size {
		return 0, fmt.Errorf("the file is damaged: the two lengths of a block of pcapng, %d and %d, differ", size, f.order.Uint32(again))
	}
	return kind, nil
}

// tooShort is the error of a block that is too short for its kind.
func (f *pcapng) tooShort() error {
	return fmt.Errorf("the file is damaged: a block of pcapng of %d bytes, too short for its kind", len(f.body)+blockHead+4)
}

func (f *pcapng) addInterface() error {
	if len(f.body) < 8 {
		return f.tooShort()
	}
	if len(f.interfaces) == maxInterfaces {
		return fmt.Errorf("a section of pcapng with more than %d interfaces", maxInterfaces)
	}
	i := captureInterface{link: LinkType(f.order.Uint16(f.body)), snapLen: f.order.Uint32(f.body[4:]), seconds: 1e6}
	f.options(f.body[8:], func(code uint16, value []byte) {
		switch {
		case code == optionResolution && len(value) == 1:
			i.seconds = resolution(value[0])
		case code == optionOffset && len(value) == 8:
			i.offset = int64(f.order.Uint64(value))
		}
	})
	f.interfaces = append(f.interfaces, i)
	return nil
}

// resolution returns how many units a second has: a power of 10, or of 2 if the highest bit is
// set; 0: more than 64 bits have.
func resolution(v byte) uint64 {
	if v&0x80 != 0 {
		if v &= 0x7f; v > 63 {
			return 0
		}
		return 1 << v
	}
	units := uint64(1)
	for range v {
		if units > 1e18 {
			return 0
		}
		units *= 10
	}
	return units
}

// options calls each with the options of a block; damaged ones end them.
func (f *pcapng) options(b []byte, each func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, size := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		if b = b[4:]; code == 0 || size > len(b) {
			return
		}
		each(code, b[:size])
		b = b[min(len(b), (size+3)&^3):]
	}
}

// packet reads a packet block: interface (in the old kind 16 bits, and a count of drops), time,
// lengths, packet, options.
func (f *pcapng) packet(kind uint32, x *frame) error {
	const fixed = 20
	if len(f.body) < fixed {
		return f.tooShort()
	}
	number := f.order.Uint32(f.body)
	if kind == oldPacketBlock {
		number = uint32(f.order.Uint16(f.body))
	}
	if number >= uint32(len(f.interfaces)) {
		return fmt.Errorf("the file is damaged: a packet of interface %d of %d", number, len(f.interfaces))
	}
	length := int64(f.order.Uint32(f.body[12:]))
	rest := f.body[fixed:]
	if length > int64(len(rest)) {
		return fmt.Errorf("the file is damaged: a packet of %d bytes in a block of pcapng of %d", length, len(f.body)+blockHead+4)
	}
	i := f.interfaces[number]
	*x = frame{link: i.link, data: rest[:length], length: int(f.order.Uint32(f.body[16:])), time: i.time(uint64(f.order.Uint32(f.body[4:]))<<32 | uint64(f.order.Uint32(f.body[8:])))}
	f.options(rest[min(int64(len(rest)), (length+3)&^3):], func(code uint16, value []byte) {
		if code == optionFlags && len(value) == 4 {
			switch f.order.Uint32(value) & 3 {
			case 1:
				x.direction = DirectionReceived
			case 2:
				x.direction = DirectionSent
			}
		}
	})
	return nil
}

// simplePacket reads a simple packet block: the length of the packet, and the packet.
func (f *pcapng) simplePacket(x *frame) error {
	if len(f.body) < 4 {
		return f.tooShort()
	}
	if len(f.interfaces) == 0 {
		return fmt.Errorf("the file is damaged: a packet of interface 0 of 0")
	}
	i := f.interfaces[0]
	length := f.order.Uint32(f.body)
	data := f.body[4:]
	have := min(int64(length), int64(len(data)))
	if i.snapLen > 0 {
		have = min(have, int64(i.snapLen))
	}
	*x = frame{link: i.link, data: data[:have], length: int(length)}
	return nil
}

// time returns the time that a time stamp is; zero if it is out of range.
func (i *captureInterface) time(stamp uint64) time.Time {
	if i.seconds == 0 {
		return time.Time{}
	}
	seconds, fraction := stamp/i.seconds, stamp%i.seconds
	high, low := bits.Mul64(fraction, uint64(time.Second))
	nanoseconds, _ := bits.Div64(high, low, i.seconds)
	const most = 1 << 40 // seconds; the formats of times have no more than 9,999 years
	if seconds > most || i.offset > most || i.offset < -most {
		return time.Time{}
	}
	return time.Unix(int64(seconds)+i.offset, int64(nanoseconds)).UTC()
}
