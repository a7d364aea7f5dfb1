package umad

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"fabsh/mad"
)

// PortCounters are the counters of a port, as the attributes from which the kernel reads
// them.
type PortCounters struct {
	Base     []byte // PortCounters; nil: the kernel shows none of it
	Wait     bool   // Base has PortXmitWait
	Extended []byte // PortCountersExtended; nil: not all of it is shown
}

// ReadCounters reads the counters of a port, and opens no device. sys is the root of the
// files, as in Options. The kernel shows all error counters or none.
func ReadCounters(sys fs.FS, device string, num int) (c PortCounters, err error) {
	s := newSysfs(sys)
	folder := path.Join(port{device: device, num: num}.folder(), "counters")
	base, extended := make([]byte, mad.AttrPortCounters.Size), make([]byte, mad.AttrPortCountersExtended.Size)
	errorsRead, extendedRead, wanted := 0, 0, 0
	for _, x := range mad.CounterFiles {
		name := path.Join(folder, x.Name)
		text, err := s.text(name)
		isWait, isExtended := x.Name == "port_xmit_wait", x.Attr == mad.AttrPortCountersExtended
		if !isWait && !isExtended {
			wanted++
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && strings.HasPrefix(text, "N/A") { // no agent
			continue
		}
		if err != nil {
			return PortCounters{}, err
		}
		f := x.Attr.Field(x.Field)
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil || v > f.Max() {
			return PortCounters{}, fmt.Errorf("%s: invalid counter %.64q", name, text)
		}
		switch {
		case isExtended:
			extendedRead++
			f.SetUint(extended, v)
		case isWait:
			c.Wait = true
			f.SetUint(base, v)
		default:
			errorsRead++
			f.SetUint(base, v)
		}
	}
	switch {
	case errorsRead == 0:
		return PortCounters{}, fmt.Errorf("%s: the kernel shows no counters of the port", folder)
	case errorsRead < wanted:
		return PortCounters{}, fmt.Errorf("%s: %d of %d error counters are missing", folder, wanted-errorsRead, wanted)
	}
	c.Base = base
	// Without those of unicast the others may have 32 bits, which end at their largest value.
	if extendedRead == len(mad.CounterFiles)-wanted-1 {
		c.Extended = extended
	}
	return c, nil
}
