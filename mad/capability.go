package mad

import (
	"fmt"
	"slices"
	"strings"
)

// Which attributes of NVIDIA and Mellanox a device has: no others may be requested from it.

// Capability is the number of a capability in GeneralInfo, from 0 to 127.
type Capability uint8

// Has reports whether the device has capability c.
func (t *GeneralInfoCapabilities) Has(c Capability) bool {
	masks := [4]uint32{uint32(t.CapMask0), uint32(t.CapMask1), uint32(t.CapMask2), t.CapMask3}
	return c < 128 && masks[c/32]>>(c%32)&1 != 0
}

// String returns the word of c in GeneralInfo's masks.
func (c Capability) String() string {
	masks := []*Words{WordsCapabilities0, WordsCapabilities1, WordsCapabilities2}
	if int(c/32) < len(masks) {
		if word, ok := masks[c/32].Word[1<<(c%32)]; ok {
			return word
		}
	}
	return fmt.Sprintf("unknown(%d)", uint8(c))
}

// Need is a condition of an attribute on what a device answers to a Get of another one,
// with modifier 0: that Field has one of the bits of Mask, or, where Field is "", any
// answer without an error.
type Need struct {
	Of    *Attribute
	Field string // script name
	Mask  uint64
}

// IsMet reports whether the answer, with the data of n.Of, meets n.
func (n *Need) IsMet(data []byte) bool {
	return n.Field == "" || n.Of.Field(n.Field).Uint(data)&n.Mask != 0
}

// IsAnnounced reports whether a device has to announce the attribute before it may be
// requested: those of NVIDIA and Mellanox with Capabilities, Needs or OnlyRouters, and
// GeneralInfo, which only their devices have.
func (a *Attribute) IsAnnounced() bool {
	return a == AttrGeneralInfo || len(a.Capabilities) > 0 || len(a.Needs) > 0 || a.OnlyRouters
}

// AnnouncedBy returns what announces the attribute: "ar or ar_rev1 of GeneralInfo".
func (a *Attribute) AnnouncedBy() string {
	var parts []string
	if a.OnlyRouters {
		parts = append(parts, "node type router")
	}
	if len(a.Capabilities) > 0 {
		var words []string
		for _, c := range a.Capabilities {
			words = append(words, c.String())
		}
		parts = append(parts, strings.Join(words, " or ")+" of GeneralInfo")
	}
	if len(a.Needs) > 0 {
		var words []string
		for _, n := range a.Needs {
			words = append(words, strings.TrimSuffix(n.Of.Name+"."+n.Field, "."))
		}
		parts = append(parts, strings.Join(words, " or "))
	}
	return strings.Join(parts, ", ")
}

// OlderOf returns the older attribute with the number of a; nil without one.
func OlderOf(a *Attribute) *Attribute {
	i := slices.IndexFunc(attributes, func(b *Attribute) bool { return b.Older && b.Class == a.Class && b.ID == a.ID })
	if i < 0 {
		return nil
	}
	return attributes[i]
}

// VendorBull is the VendorID of Bull, whose devices have Mellanox' chips.
const VendorBull = 0x119f

// HasExtPortInfo reports whether DeviceID is one of those with [ExtendedPortInfo]. Some of
// them are older than GeneralInfo (rdma-core infiniband-diags/ibdiag_common.c
// is_mlnx_ext_port_info_supported has these numbers).
func (t *NodeInfo) HasExtPortInfo() bool {
	switch d := t.DeviceID; {
	case d >= 0xc738 && d <= 0xc73b, d >= 0x1003 && d <= 0x101b:
		return true
	case d == 0xc839, d == 0xcb20, d == 0xcf08, d == 0xcf09, d == 0xd2f0, d == 0xa2d2:
		return true
	case t.VendorID != VendorBull:
		return false
	default:
		switch {
		case d >= 0x1bd0 && d <= 0x1bd5, d >= 0x1bc4 && d <= 0x1bc6:
			return true
		}
		switch d {
		case 0x1b02, 0x1b50, 0x1ba0, 0x1bf0, 0x1b33, 0x1b73, 0x1b40, 0x1b41, 0x1b60, 0x1b61, 0x1b83, 0x1b93, 0x1b94, 0x1bb4, 0x1bb5:
			return true
		}
		return false
	}
}

// IsNVIDIA reports whether a device is of NVIDIA or Mellanox, by the VendorID of its
// NodeInfo or by the GUID of the node. With VendorID 0 only the GUID counts.
func IsNVIDIA(vendorID uint32, node GUID) bool {
	return slices.Contains(nvidiaOUIs, vendorID) || slices.Contains(nvidiaOUIs, uint32(node>>40))
}

// nvidiaOUIs are numbers of NVIDIA and Mellanox in the list of the IEEE. Devices of other
// numbers have VendorID 0x0002c9.
var nvidiaOUIs = []uint32{
	0x00_02_c9, 0x00_25_8b, 0x04_3f_72, 0x08_c0_eb, 0x0c_42_a1, 0x10_70_fd, 0x1c_34_da, 0x24_8a_07, 0x50_6b_4b, 0x58_a2_e1, 0x7c_fe_90,
	0x94_6d_ae, 0x98_03_9b, 0x9c_05_91, 0xa0_88_c2, 0xb0_cf_0e, 0xb8_3f_d2, 0xb8_59_9f, 0xb8_ce_f6, 0xc4_70_bd, 0xe4_1d_2d, 0xe8_eb_d3,
	0xec_0d_9a, 0xf4_52_14, 0xfc_6a_1c,
}
