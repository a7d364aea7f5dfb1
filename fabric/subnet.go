package fabric

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Subnet identifies a subnet across runs. LIDs and names of nodes change, so it has
// neither.
type Subnet struct {
	Given    string     // the name that the administrator gave it; "": unnamed
	Prefix   uint64     // of its GIDs; 0: unknown
	SM       mad.GUID   // port GUID of the master subnet manager; 0: unknown
	Switches []mad.GUID // node GUIDs, sorted
}

// DefaultPrefix is the GID prefix of subnets without one of their own (IBA 4.1.1): it
// identifies nothing.
const DefaultPrefix = 0xfe80_0000_0000_0000

// SubnetOf returns the subnet of f, which may have a given name. The PortInfo of the
// port of the sweep identifies it or, in a file, the first PortInfo that does.
func SubnetOf(f *Fabric, given string) Subnet {
	s := Subnet{Given: given}
	nodes := f.Nodes()
	for i := range nodes {
		if nodes[i].IsSwitch() {
			s.Switches = append(s.Switches, nodes[i].GUID())
		}
	}
	slices.Sort(s.Switches)
	s.Switches = slices.Compact(s.Switches)
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

// Common returns how many of the switches recorded has s.
func (s Subnet) Common(recorded Subnet) (n int) {
	for _, g := range recorded.Switches {
		if _, ok := slices.BinarySearch(s.Switches, g); ok {
			n++
		}
	}
	return n
}

// Is reports whether s is the subnet that was recorded. Another one has another GID prefix;
// or it has less than half of the recorded switches, and switches that were not recorded.
// With recorded switches alone it is the recorded subnet in an outage. A subnet manager, and
// every other port, may be replaced.
func (s Subnet) Is(recorded Subnet) bool {
	return s.mayBe(recorded) && (s.hasHalf(recorded) || s.Common(recorded) == len(s.Switches))
}

// HasHalf reports whether s, of which only a part may be known, is the subnet that was
// recorded, because it has at least half of its switches.
func (s Subnet) HasHalf(recorded Subnet) bool { return s.mayBe(recorded) && s.hasHalf(recorded) }

// mayBe reports whether the prefixes are equal, as far as both are known.
func (s Subnet) mayBe(recorded Subnet) bool {
	return s.Prefix == 0 || recorded.Prefix == 0 || s.Prefix == recorded.Prefix
}

func (s Subnet) hasHalf(recorded Subnet) bool {
	return 2*s.Common(recorded) >= len(recorded.Switches)
}

// String describes s to people: "prefix 0xfe80000000000000, 12 switches from
// 0x0002c90300100000".
func (s Subnet) String() string {
	text := fmt.Sprintf("prefix 0x%016x, %s", s.Prefix, plural.Count(len(s.Switches), "switch", "switches"))
	if len(s.Switches) > 0 {
		text += " from " + s.Switches[0].String()
	}
	return text
}

// OtherSubnetError reports that what was kept is of another subnet.
type OtherSubnetError struct {
	Path      string // what was kept
	Recorded  string // the subnet that it is of
	Current   string // the subnet of this fabric
	Found, Of int    // switches of the recorded subnet that are in this one
	Remedy    string
}

func (e *OtherSubnetError) Error() string {
	return fmt.Sprintf("%s is of another subnet (%s), not of this one (%s, with %d of those %d); %s", e.Path, e.Recorded, e.Current, e.Found, e.Of, e.Remedy)
}

// Folder returns the directory below dir for the state kept of s.
func (s Subnet) Folder(dir string) string { return filepath.Join(dir, s.Key()) }

// StateFiles returns the paths of the files with a name in the directories of subnets below
// dir, whose name may have characters that are special in patterns.
func StateFiles(dir, name string) (paths []string) {
	folders, _ := os.ReadDir(dir)
	for _, folder := range folders {
		path := filepath.Join(dir, folder.Name(), name)
		if _, err := os.Lstat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// CheckSubnetName returns nil if text is valid as the name of a subnet.
func CheckSubnetName(text string) error {
	if text == "" || len(text) > 64 || text[0] == '.' || strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) {
		return fmt.Errorf("invalid subnet name %q; use up to 64 letters, digits, - _ and . (not first)", text)
	}
	return nil
}
