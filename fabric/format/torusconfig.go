package format

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// TorusConfig is a file of OpenSM's option torus_config, torus-2QoS.conf(5). Dimensions
// are x, y, z.
type TorusConfig struct {
	Size  [3]int  // switches along each dimension; 1: not used
	Mesh  [3]bool // no link leads from the last to the first
	Seeds []TorusSeed
}

// TorusSeed is a switch whose neighbours are named.
type TorusSeed struct {
	From     mad.GUID
	To       [3][2]mad.GUID // by dimension: in the direction of falling and of rising coordinates; 0: not named
	Dateline [3]int         // where coordinate 0 is, from the switch
	Line     int            // of the first link
}

// maxSeeds bounds the seeds, each of which is tried.
const maxSeeds = 256

var torusWords = []string{"torus", "mesh", "xp_link", "xm_link", "yp_link", "ym_link", "zp_link", "zm_link", "x_dateline", "y_dateline", "z_dateline", "next_seed", "port_order", "portgroup_max_ports", "max_changes"}

// ReadTorusConfig reads the file as OpenSM does (opensm osm_torus.c, parse_config):
// words after the expected ones are ignored, and so are port_order, portgroup_max_ports and
// max_changes.
func ReadTorusConfig(r io.Reader, name string) (*TorusConfig, error) {
	c := &TorusConfig{}
	seed := TorusSeed{}
	l := newLines(r, name)
	for l.next() {
		words := strings.Fields(string(l.text))
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		key, words := words[0], words[1:]
		switch {
		case !slices.Contains(torusWords, key):
			l.fail("one of %s, not %q", strings.Join(torusWords, ", "), fabric.Clip(key))
		case (c.Size[0] == 0) != (key == "torus" || key == "mesh"):
			l.fail("torus or mesh, and three sizes, first and once")
		case c.Size[0] == 0:
			c.readShape(l, key == "mesh", words)
		case strings.HasSuffix(key, "_link"):
			seed.readLink(l, int(key[0]-'x'), key[1] == 'p', words)
		case strings.HasSuffix(key, "_dateline"):
			d := key[0] - 'x'
			n, err := strconv.Atoi(strings.Join(words[:min(1, len(words))], ""))
			if err != nil || n <= -c.Size[d] || n >= c.Size[d] {
				l.fail("a number from %d to %d after %s", 1-c.Size[d], c.Size[d]-1, key)
			}
			seed.Dateline[d] = n
		case key == "next_seed":
			c.add(l, &seed)
		}
	}
	c.add(l, &seed)
	switch {
	case l.err != nil:
		return nil, l.err
	case c.Size[0] == 0:
		return nil, fmt.Errorf("%s: expected torus or mesh, and three sizes; the file has neither", name)
	case len(c.Seeds) == 0:
		return nil, fmt.Errorf("%s: expected links such as xp_link, and two GUIDs of switches; the file has none", name)
	}
	return c, nil
}

// readShape reads the three sizes, each perhaps with a t or m for torus and mesh.
func (c *TorusConfig) readShape(l *lines, mesh bool, words []string) {
	points, dims := uint64(1), 0
	for d := range c.Size {
		word := ""
		if d < len(words) {
			word = words[d]
		}
		number := strings.TrimRight(word, "tTmM")
		n, ok := cNumber(number)
		if !ok || len(word)-len(number) > 1 || n < 1 || n > maxTotalPorts {
			l.fail("three sizes, as in torus 4 5 1 or mesh 3t 4 5, not %q", l.shown())
			return
		}
		if points *= n; points > maxTotalPorts {
			l.fail("at most %d switches", maxTotalPorts)
			return
		}
		if n > 1 {
			dims++
		}
		open := mesh
		if suffix := word[len(number):]; suffix != "" {
			open = suffix == "m" || suffix == "M"
		}
		c.Size[d], c.Mesh[d] = int(n), open || n <= 2
	}
	if dims == 0 {
		l.fail("a size above 1, not %q", l.shown())
	}
}

// readLink reads the two switches of a link.
func (s *TorusSeed) readLink(l *lines, dim int, rising bool, words []string) {
	var ends [2]mad.GUID
	for i := range ends {
		v, ok := uint64(0), false
		if i < len(words) {
			v, ok = cNumber(words[i])
		}
		if !ok || v == 0 {
			l.fail("two GUIDs of switches: %q", l.shown())
			return
		}
		ends[i] = mad.GUID(v)
	}
	if s.From != 0 && s.From != ends[0] {
		l.fail("a link from %v, as those before of this seed, not from %v", s.From, ends[0])
	}
	if s.From == 0 {
		s.Line = l.at.line
	}
	way := 0
	if rising {
		way = 1
	}
	s.From, s.To[dim][way] = ends[0], ends[1]
}

// add ends a seed, if it has a link.
func (c *TorusConfig) add(l *lines, s *TorusSeed) {
	if l.err != nil || s.From == 0 {
		return
	}
	if len(c.Seeds) == maxSeeds {
		l.fail("at most %d seeds", maxSeeds)
		return
	}
	c.Seeds = append(c.Seeds, *s)
	*s = TorusSeed{}
}
