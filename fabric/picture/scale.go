package picture

import (
	"math"
	"strconv"

	"fabsh/fabric"
)

// Value returns a figure of a port; an unknown figure is not 0.
type Value func(p *fabric.Port) (v float64, known bool)

// Figure is the value of a cell: the highest value of its links.
type Figure struct {
	Value          float64
	Known, Unknown int // links
}

// Figures returns the values of all cells: of the ports of rows or, if far, of the ports of
// columns.
func (m *Matrix) Figures(value Value, far bool) [][]Figure {
	figures := make([][]Figure, len(m.Rows))
	for r, line := range m.Links {
		figures[r] = make([]Figure, len(line))
		for c, links := range line {
			f := &figures[r][c]
			for _, p := range links {
				if far {
					p = p.Peer()
				}
				v, known := value(p)
				switch {
				case !known:
					f.Unknown++
					continue
				case f.Known == 0 || v > f.Value:
					f.Value = v
				}
				f.Known++
			}
		}
	}
	return figures
}

// shades is the number of classes of colour, from dark (low) to light (high).
const shades = 8

// Scale has the lowest value of each class, the lowest class first.
type Scale []float64

// Steps returns a scale of whole numbers, with equal steps from the lowest to the highest.
func Steps(lowest, highest float64) (s Scale) {
	lowest = min(lowest, highest)
	if highest-lowest < 1 {
		return Scale{lowest}
	}
	for i := range shades {
		v := math.Ceil(lowest + float64(i)*(highest-lowest+1)/shades)
		if v <= highest && (len(s) == 0 || v > s[len(s)-1]) {
			s = append(s, v)
		}
	}
	return s
}

// Even returns a scale of any numbers, with equal steps from the lowest to the highest.
func Even(lowest, highest float64) (s Scale) {
	for i := range shades {
		if v := lowest + float64(i)*(highest-lowest)/shades; i == 0 || v > s[len(s)-1] {
			s = append(s, v)
		}
	}
	return s
}

// Powers returns a scale by powers of ten, with a class for 0: for figures that are mostly 0.
func Powers(highest float64) Scale {
	s := Scale{0, math.SmallestNonzeroFloat64}
	for v := 10.0; v <= highest && len(s) < shades; v *= 10 {
		s = append(s, v)
	}
	return s
}

// Shade returns the shade of a value, from 0. The shades of few classes are far apart.
func (s Scale) Shade(v float64) int {
	i := 0
	for i+1 < len(s) && v >= s[i+1] {
		i++
	}
	return s.ShadeOf(i)
}

// ShadeOf returns the shade of a class.
func (s Scale) ShadeOf(class int) int {
	if len(s) < 2 {
		return 0
	}
	return class * (shades - 1) / (len(s) - 1)
}

// Text returns a class in words.
func (s Scale) Text(class int) string {
	v := s[class]
	switch {
	case v == math.SmallestNonzeroFloat64:
		return "above 0"
	case class == 0 && v == 0 && len(s) > 1 && s[1] <= 1:
		return "0"
	}
	return "from " + strconv.FormatFloat(v, 'g', 4, 64)
}
