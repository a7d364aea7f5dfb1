package picture

import (
	"math"
	"strconv"

	"fabsh/fabric"
)

// Value is a figure of a port; unknown is not 0.
type Value func(p *fabric.Port) (v float64, known bool)

// Figure is the value of a cell: the highest of its links.
type Figure struct {
	Value          float64
	Known, Unknown int // links
}

// Figures are the values of all cells: of the ports of rows or, if far, of those of
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

// Shades is how many classes of colour there are, from dark, for what is low, to light.
const Shades = 8

// Scale is from which value on each class is, the lowest first.
type Scale []float64

// Steps is a scale of whole numbers, with equal steps from the lowest to the highest.
func Steps(lowest, highest float64) (s Scale) {
	lowest = min(lowest, highest)
	if highest-lowest < 1 {
		return Scale{lowest}
	}
	for i := range Shades {
		v := math.Ceil(lowest + float64(i)*(highest-lowest+1)/Shades)
		if v <= highest && (len(s) == 0 || v > s[len(s)-1]) {
			s = append(s, v)
		}
	}
	return s
}

// Even is a scale of any numbers, with equal steps from the lowest to the highest.
func Even(lowest, highest float64) (s Scale) {
	for i := range Shades {
		if v := lowest + float64(i)*(highest-lowest)/Shades; i == 0 || v > s[len(s)-1] {
			s = append(s, v)
		}
	}
	return s
}

// Powers is a scale by powers of ten, with a class for 0: for what is mostly 0.
func Powers(highest float64) Scale {
	s := Scale{0, math.SmallestNonzeroFloat64}
	for v := 10.0; v <= highest && len(s) < Shades; v *= 10 {
		s = append(s, v)
	}
	return s
}

// Shade is the shade of a value, from 0 on. Where there are few classes they are far apart.
func (s Scale) Shade(v float64) int {
	i := 0
	for i+1 < len(s) && v >= s[i+1] {
		i++
	}
	return s.ShadeOf(i)
}

// ShadeOf is the shade of a class.
func (s Scale) ShadeOf(class int) int {
	if len(s) < 2 {
		return 0
	}
	return class * (Shades - 1) / (len(s) - 1)
}

// Text is a class in words.
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
