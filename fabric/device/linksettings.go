package device

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Choice is a choice of speeds or widths that a link may use.
type Choice struct {
	Words []string // empty: leave them unchanged
	// UpTo means that Words is one word, which stands for itself and for all slower or
	// narrower ones that the port supports.
	UpTo bool
}

// LinkSettings changes the speeds and widths that are enabled at a port. They
// count from the link's next training on.
type LinkSettings struct {
	PortTarget
	Speed, Width Choice
	// Force makes the change even where a CautionError would refuse it.
	Force bool
}

// SetLinks makes all changes at once; the outcome of each is in its Err.
// The Sets are sent once. The error is the end of ctx.
func SetLinks(ctx context.Context, e *engine.Engine, changes ...*LinkSettings) error {
	var targets, peers []*PortTarget
	for _, c := range changes {
		targets = append(targets, &c.PortTarget)
	}
	if err := readPorts(ctx, e, targets); err != nil {
		return err
	}
	peerOf := map[*LinkSettings]*PortTarget{}
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
	if err := SetAttributes(ctx, e, sets...); err != nil {
		return err
	}
	for i, c := range open {
		c.Err, c.After = sets[i].Err, sets[i].After
	}
	return nil
}

// set is the Set of PortInfo. peer is the port at the other end of the link, nil
// or with an error where it is unknown.
func (c *LinkSettings) set(peer *PortTarget) (*Set, error) {
	now := c.PortInfo()
	values := map[string]uint64{}
	if len(c.Speed.Words) > 0 {
		speeds, err := c.Speed.among(fabric.LinkSpeeds, c.speeds(fabric.SupportedSpeeds))
		if err == nil {
			err = c.putSpeeds(values, speeds)
		}
		if err == nil && peer != nil && peer.Err == nil {
			err = meets("speeds", fabric.LinkSpeeds, speeds, peer.speeds(fabric.EnabledSpeeds))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.Width.Words) > 0 {
		widths, err := c.Width.among(fabric.LinkWidths, fabric.WidthSet(now.LinkWidthSupported))
		if err == nil && peer != nil && peer.Err == nil {
			i := peer.PortInfo()
			err = meets("widths", fabric.LinkWidths, widths, fabric.WidthSet(i.LinkWidthEnabled))
		}
		if err != nil {
			return nil, err
		}
		for _, word := range widths.Words(fabric.LinkWidths) {
			values["link_width_enabled"] |= mad.WordsLinkWidth.Code[word]
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

// among is the set that c chooses of those that are supported.
func (c Choice) among(all []string, supported fabric.RateSet) (chosen fabric.RateSet, err error) {
	for _, word := range c.Words {
		i := slices.Index(all, word)
		if supported>>i&1 == 0 {
			return 0, unsupported("%s: not supported by the port; supported: %s", word, strings.Join(supported.Words(all), ", "))
		}
		chosen |= 1 << i
		if c.UpTo {
			chosen = supported & (1<<(i+1) - 1)
		}
	}
	return chosen, nil
}

// meets returns an error unless the peer has some of them enabled, too.
func meets(what string, all []string, mine, theirs fabric.RateSet) error {
	if mine&theirs != 0 {
		return nil
	}
	return &CautionError{fmt.Sprintf("not set: of these %s (%s) the neighbour has enabled none, only %s; the link would not come up again", what, strings.Join(mine.Words(all), ", "), strings.Join(theirs.Words(all), ", "))}
}

// speeds are those of the port.
func (p *PortTarget) speeds(of func(caps, i *mad.PortInfo) fabric.RateSet) fabric.RateSet {
	i := p.PortInfo()
	return of(&p.caps, &i)
}

// putSpeeds puts a set of speeds in the fields that the port has. A set without
// SDR is reserved, and 30 stands for no extended speed (IBA 14.2.5.6;
// opensm opensm/osm_subnet.c force_link_speed, include/iba/ib_types.h
// IB_LINK_SPEED_EXT_DISABLE).
func (c *LinkSettings) putSpeeds(values map[string]uint64, speeds fabric.RateSet) error {
	now := c.PortInfo()
	const xdr = 1 << 7
	switch {
	case speeds&1 == 0:
		return unsupported("the speeds must include sdr: links begin with it, and sets without it are reserved")
	case fabric.HasExtendedSpeeds2(&c.caps) && speeds&xdr == 0 && now.LinkSpeedExtEnabled2 != 0:
		return unsupported("xdr is enabled and no public source documents how to disable it; the speeds must include it")
	}
	values["link_speed_enabled"] = uint64(speeds & 7)
	if fabric.HasExtendedSpeeds(&c.caps) && now.LinkSpeedExtSupported != 0 {
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
