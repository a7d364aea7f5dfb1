package lang

// Drawn is a value that is shown as a picture with lines of at most width columns; 0:
// unlimited. If blocks is true, a cell may be a rune of Cells.
type Drawn interface {
	Draw(width int, blocks bool) string
}

// Shades of a cell: numbers from 0, and unknown or absent.
const (
	Shades       = 8 // from low to high
	ShadeUnknown = 8
	ShadeNone    = 9
)

// firstCells is the first of the runes that stand for two cells. They are in Unicode's
// private use area, so that they have no other meaning.
const firstCells = 0xf_0000

// Cells returns the rune for two cells of these shades, one above the other. The writer
// to the terminal replaces it by a half block in colour.
func Cells(upper, lower int) rune { return rune(firstCells + upper<<4 + lower) }

// CellsOf returns the shades of a rune of Cells; false: r is another rune.
func CellsOf(r rune) (upper, lower int, ok bool) {
	upper, lower = int(r-firstCells)>>4, int(r-firstCells)&0xf
	return upper, lower, r >= firstCells && upper <= ShadeNone && lower <= ShadeNone
}
