package change

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Speeds and Widths are those that links may have, the slowest first.
var (
	Speeds = []string{"sdr", "ddr", "qdr", "fdr", "edr", "hdr", "ndr", "xdr"}
	Widths = []string{"1x", "2x", "4x", "8x", "12x"}
)

// Choice says which speeds or widths a link may use.
type Choice struct {
	Words []string // none: leave them as they are
	// UpTo: Words is one word, which stands for itself and for all slower or
	// narrower ones that the port supports.
	UpTo bool
}

// LinkSettings changes the speeds and widths that are enabled at a port. They
// count from the link's next training on.
type LinkSettings struct {
	Port
	Speed, Width Choice
	// Force makes the change where it would be refused by a CautionError.
	Force bool
}

// SetLinks makes all changes at once; what became of each is in its Err.
// The Sets are sent once. The error is the end of ctx.
func SetLinks(ctx context.Context, e *engine.Engine, changes ...*LinkSettings) error {
	var targets, peers []*Port
	for _, c := range changes {
		targets = append(targets, &c.Port)
	}
	if err := readPorts(ctx, e, targets); err != nil {
		return err
	}
	peerOf := map[*LinkSettings]*Port{}
	for _, c := range changes {
		if peer := c.peer(); peer != nil && c.Err == nil && !c.Force {
			peerOf[c] = peer
			peers = append(peers, peer)
		}
	}
	if err := readPorts(ctx, e, peers); err != nil {
		return err
	}
	var sets []*Set
	var open []*LinkSettings
	for _, c := range changes {
		var set *Set
		if c.Err == nil {
			set, c.Err = c.set(peerOf[c])
		}
		if c.Err == nil {
			open, sets = append(open, c), append(sets, set)
		}
	}
	if err := Apply(ctx, e, sets...); err != nil {
		return err
	}
	for i, c := range open {
		c.Err, c.After = sets[i].Err, sets[i].After
	}
	return nil
}

// set is the Set of PortInfo. peer is the port at the other end of the link, nil
// or with an error where it is not known.
func (c *LinkSettings) set(peer *Port) (*Set, error) {
	now := c.PortInfo()
	values := map[string]uint64{}
	if len(c.Speed.Words) > 0 {
		speeds, err := c.Speed.among(Speeds, c.speeds(supported))
		if err == nil {
			err = c.putSpeeds(values, speeds)
		}
		if err == nil && peer != nil && peer.Err == nil {
			err = meets("speeds", Speeds, speeds, peer.speeds(enabled))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.Width.Words) > 0 {
		widths, err := c.Width.among(Widths, widthSet(now.LinkWidthSupported))
		if err == nil && peer != nil && peer.Err == nil {
			i := peer.PortInfo()
			err = meets("widths", Widths, widths, widthSet(i.LinkWidthEnabled))
		}
		if err != nil {
			return nil, err
		}
		for i, bit := range widthBits {
			if widths>>i&1 != 0 {
				values["link_width_enabled"] |= uint64(bit)
			}
		}
	}
	set := &Set{Dest: c.Dest, GUID: c.GUID, Attr: mad.AttrPortInfo, Modifier: uint32(c.Num), Once: true, Edit: func(data []byte) {
		for name, v := range values {
			mad.AttrPortInfo.Field(name).SetUint(data, v)
		}
	}}
	for name := range sorted(values) {
		set.Named = append(set.Named, name)
	}
	return set, nil
}

// set is a set of Speeds or of Widths: bit i is element i.
type set uint16

var widthBits = [...]mad.LinkWidth{mad.LinkWidth1x, mad.LinkWidth2x, mad.LinkWidth4x, mad.LinkWidth8x, mad.LinkWidth12x}

func widthSet(w mad.LinkWidth) (s set) {
	for i, bit := range widthBits {
		if w&bit != 0 {
			s |= 1 << i
		}
	}
	return s
}

func (s set) words(all []string) string {
	var words []string
	for i, word := range all {
		if s>>i&1 != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// among is the set that c chooses of those that are supported.
func (c Choice) among(all []string, supported set) (chosen set, err error) {
	for _, word := range c.Words {
		i := slices.Index(all, word)
		if supported>>i&1 == 0 {
			return 0, unsupported("%s is not among what the port supports: %s", word, supported.words(all))
		}
		chosen |= 1 << i
		if c.UpTo {
			chosen = supported & (1<<(i+1) - 1)
		}
	}
	return chosen, nil
}

// meets: the peer has some of them enabled, too.
func meets(what string, all []string, mine, theirs set) error {
	if mine&theirs != 0 {
		return nil
	}
	return &CautionError{fmt.Sprintf("not set, for of these %s (%s) the neighbour has none enabled, but %s: the link would not come up again", what, mine.words(all), theirs.words(all))}
}

// Which speeds of a port are meant.
const (
	supported = iota
	enabled
)

// speeds are those of the port. PortInfo has them in three fields, as later
// ones did not fit the first, and the capability masks say which of these are
// there (rdma-core infiniband-diags/ibportstate.c get_port_info).
func (p *Port) speeds(which int) set {
	i := p.PortInfo()
	first, ext, ext2 := i.LinkSpeedSupported, i.LinkSpeedExtSupported, i.LinkSpeedExtSupported2
	if which == enabled {
		first, ext, ext2 = i.LinkSpeedEnabled, i.LinkSpeedExtEnabled, i.LinkSpeedExtEnabled2
	}
	if !p.extended() || ext == mad.LinkSpeedExtDisabled {
		ext = 0
	}
	if !p.extended2() {
		ext2 = 0
	}
	return set(first&7) | set(ext&15)<<3 | set(ext2&1)<<7
}

// extended: PortInfo has the speeds from FDR on, and extended2: those from XDR on.
func (p *Port) extended() bool {
	return p.caps.CapabilityMask&mad.CapabilityMaskIsExtendedSpeedsSupported != 0
}

func (p *Port) extended2() bool {
	return p.caps.CapabilityMask&mad.CapabilityMaskIsCapabilityMask2Supported != 0 && p.caps.CapabilityMask2&fabric.CapabilityMask2ExtendedSpeeds2 != 0
}

// putSpeeds puts a set of speeds in the fields that the port has. A set without
// SDR is reserved, and 30 stands for no extended speed (IBA 14.2.5.6;
// opensm opensm/osm_subnet.c force_link_speed, include/iba/ib_types.h
// IB_LINK_SPEED_EXT_DISABLE).
func (c *LinkSettings) putSpeeds(values map[string]uint64, speeds set) error {
	now := c.PortInfo()
	const xdr = 1 << 7
	switch {
	case speeds&1 == 0:
		return unsupported("sdr must be among the speeds: links begin with it, and sets without it are reserved")
	case c.extended2() && speeds&xdr == 0 && now.LinkSpeedExtEnabled2 != 0:
		return unsupported("xdr is enabled, and no public source says how it is switched off: it must be among the speeds")
	}
	values["link_speed_enabled"] = uint64(speeds & 7)
	if c.extended() && now.LinkSpeedExtSupported != 0 {
		values["link_speed_ext_enabled"] = uint64(speeds >> 3 & 15)
		if speeds>>3&15 == 0 {
			values["link_speed_ext_enabled"] = uint64(mad.LinkSpeedExtDisabled)
		}
	}
	if speeds&xdr != 0 {
		values["link_speed_ext_enabled2"] = 1
	}
	return nil
}
