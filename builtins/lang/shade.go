package lang

// Drawn is a value that shows as a picture, no line of it wider than width; 0: there is
// no limit. Where blocks is true a cell may be a rune of Cells.
type Drawn interface {
	Draw(width int, blocks bool) string
}

// Shades of a cell: those from 0 on, and what is not known or not there.
const (
	Shades       = 8 // from what is low to what is high
	ShadeUnknown = 8
	ShadeNone    = 9
)

// firstCells is the first of the runes that stand for two cells. They are of Unicode's
// private use, so that they mean nothing to anybody else.
const firstCells = 0xf_0000

// Cells is the rune that stands for two cells, one above the other, of these shades.
// Who writes to the terminal puts half blocks in colour there.
func Cells(upper, lower int) rune { return rune(firstCells + upper<<4 + lower) }

// CellsOf are the shades of a rune of Cells; false: it is another.
func CellsOf(r rune) (upper, lower int, ok bool) {
	upper, lower = int(r-firstCells)>>4, int(r-firstCells)&0xf
	return upper, lower, r >= firstCells && upper <= ShadeNone && lower <= ShadeNone
}
