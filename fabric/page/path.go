package page

import "strconv"

// sheet is cells of a grid, each of a class.
type sheet struct {
	wide, high int // of a cell, with its gap
	gap        int
	order      []string // of classes
	of         map[string]*cells
}

// add adds the cell of column x and row y. Cells of a row follow one another.
func (s *sheet) add(class string, x, y int) {
	c := s.of[class]
	if c == nil {
		if s.of == nil {
			s.of = map[string]*cells{}
		}
		c = &cells{wide: s.wide, high: s.high, gap: s.gap}
		s.of[class] = c
		s.order = append(s.order, class)
	}
	c.add(x, y)
}

func (s *sheet) layers() (list []layer) {
	for _, class := range s.order {
		list = append(list, layer{class, s.of[class].path()})
	}
	return list
}

// cells is a path of SVG that covers cells of a grid: one element for thousands of
// cells keeps the page small, and quick to draw.
type cells struct {
	d          []byte
	wide, high int // of a cell, with its gap
	gap        int
	x, y, run  int // the cells that have not been written
}

// add adds the cell of column x and row y. Cells side by side become one.
func (c *cells) add(x, y int) {
	if c.run > 0 && c.gap == 0 && y == c.y && x == c.x+c.run {
		c.run++
		return
	}
	c.flush()
	c.x, c.y, c.run = x, y, 1
}

func (c *cells) flush() {
	if c.run == 0 {
		return
	}
	num := func(letter byte, n int) { c.d = strconv.AppendInt(append(c.d, letter), int64(n), 10) }
	w, h := c.run*c.wide-c.gap, c.high-c.gap
	num('M', c.x*c.wide)
	num(' ', c.y*c.high)
	num('h', w)
	num('v', h)
	num('h', -w)
	c.d = append(c.d, 'z')
	c.run = 0
}

// path is the d of the path element; "" where there is no cell.
func (c *cells) path() string {
	c.flush()
	return string(c.d)
}
