package fabric

import (
	"fmt"
	"path/filepath"
	"strings"

	"fabsh/mad"
)

// Subnet identifies a subnet across runs. LIDs and names of nodes change, so it has
// neither.
type Subnet struct {
	Given  string   // the name that the administrator gave it; "": unnamed
	Prefix uint64   // of its GIDs; 0: unknown
	SM     mad.GUID // port GUID of the master subnet manager; 0: unknown
}

// DefaultPrefix is the GID prefix of subnets without one of their own (IBA 4.1.1): it
// identifies nothing.
const DefaultPrefix = 0xfe80_0000_0000_0000

// SubnetOf returns the subnet of f, which may have a given name. The PortInfo of the
// port of the sweep identifies it or, in a file, the first PortInfo that does.
func SubnetOf(f *Fabric, given string) Subnet {
	s := Subnet{Given: given}
	ports := f.Ports()
	consider := func(p *Port) {
		i := p.Info()
		if i == nil {
			return
		}
		if s.Prefix == 0 {
			s.Prefix = i.GIDPrefix
		}
		if s.SM == 0 && i.MasterSMLID != 0 {
			if q := f.PortByLID(i.MasterSMLID); q != nil {
				s.SM = q.GUID()
			}
		}
	}
	if p := f.From(); p != nil {
		if p.Node().IsSwitch() {
			p = p.Node().Port(0)
		}
		consider(p)
	}
	for i := range ports {
		if s.Prefix != 0 && s.SM != 0 {
			break
		}
		consider(&ports[i])
	}
	return s
}

// Key returns the name of s: as it was given; else by its prefix, where it has one of its own;
// else by its subnet manager, whose hand-over then makes it another.
func (s Subnet) Key() string {
	switch {
	case s.Given != "":
		return s.Given
	case s.Prefix != 0 && s.Prefix != DefaultPrefix:
		return fmt.Sprintf("prefix-0x%016x", s.Prefix)
	case s.SM != 0:
		return "sm-" + s.SM.String()
	}
	return "unknown"
}

// IsKnown reports whether something distinguishes s from other subnets.
func (s Subnet) IsKnown() bool { return s.Key() != (Subnet{}).Key() }

// Folder returns the directory below dir for the state kept of s.
func (s Subnet) Folder(dir string) string { return filepath.Join(dir, s.Key()) }

// CheckSubnetName returns nil if text is valid as the name of a subnet.
func CheckSubnetName(text string) error {
	if text == "" || len(text) > 64 || text[0] == '.' || strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) {
		return fmt.Errorf("invalid subnet name %q; use up to 64 letters, digits, - _ and . (not first)", text)
	}
	return nil
}
