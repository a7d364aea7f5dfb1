package audit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// The file "subnet" beside acks and states records of which subnet they are: a
// directory is named after a subnet manager or by an administrator, and two subnets may
// have the same name. Its lines are
//
//	prefix 0xfe80000000000000
//	switch 0x0002c90300100000

const subnetHeader = "# The subnet of which this directory keeps acknowledgements and state.\n"

func subnetFile(dir string, s fabric.Subnet) string { return filepath.Join(s.Folder(dir), "subnet") }

// CheckSubnet returns a *fabric.OtherSubnetError if what is kept of s below dir is of
// another subnet.
func CheckSubnet(dir string, s fabric.Subnet) error {
	if _, err := os.Stat(s.Folder(dir)); err != nil { // nothing is kept
		return nil
	}
	path := subnetFile(dir, s)
	recorded, err := readSubnet(path)
	if err != nil || recorded == nil || s.Is(*recorded) {
		return err
	}
	return &fabric.OtherSubnetError{
		Path: s.Folder(dir), Recorded: recorded.String(), Current: s.String(), Found: s.Common(*recorded), Of: len(recorded.Switches),
		Remedy: "use --subnet NAME or --state DIR, or remove " + path + " if the subnet is the same",
	}
}

// RecordSubnet records that what is kept of s below dir is of s. Recorded switches that s
// lacks stay, unless complete is set and s has half of them: in an outage most are missing.
func RecordSubnet(dir string, s fabric.Subnet, complete bool) error {
	path := subnetFile(dir, s)
	recorded, err := readSubnet(path)
	if err != nil {
		return err
	}
	switches := s.Switches
	if recorded != nil && s.Prefix == 0 {
		s.Prefix = recorded.Prefix
	}
	if recorded != nil && (!complete || !s.HasHalf(*recorded)) {
		switches = slices.Concat(switches, recorded.Switches)
		slices.Sort(switches)
		switches = slices.Compact(switches)
	}
	if recorded != nil && recorded.Prefix == s.Prefix && slices.Equal(switches, recorded.Switches) {
		return nil
	}
	return format.WriteFile(context.Background(), path, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		fmt.Fprintf(out, "%sprefix 0x%016x\n", subnetHeader, s.Prefix)
		for _, g := range switches {
			fmt.Fprintf(out, "switch %v\n", g)
		}
		return out.Flush()
	})
}

// readSubnet reads the file; nil: it does not exist.
func readSubnet(path string) (*fabric.Subnet, error) {
	text, err := readSmall(path)
	if err != nil || text == "" {
		return nil, err
	}
	s, err := parseSubnet(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to record the subnet again", path, err)
	}
	return s, nil
}

// parseSubnet reads the lines of the file.
func parseSubnet(text string) (*fabric.Subnet, error) {
	s := new(fabric.Subnet)
	at := 0
	for line := range strings.Lines(text) {
		at++
		word, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || word[0] == '#' {
			continue
		}
		n, err := strconv.ParseUint(number, 0, 64)
		switch {
		case err == nil && word == "prefix":
			s.Prefix = n
		case err == nil && word == "switch":
			s.Switches = append(s.Switches, mad.GUID(n))
		default:
			return nil, fmt.Errorf("line %d: want prefix or switch, and a number", at)
		}
	}
	slices.Sort(s.Switches)
	s.Switches = slices.Compact(s.Switches)
	return s, nil
}
