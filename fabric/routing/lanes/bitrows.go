package lanes

// bitRows are rows of bits.
type bitRows struct {
	start []int32 // by row: its first word; and the end
	words []uint64
}

// newBitRows are n rows, each of as many bits as size says.
func newBitRows(n int, size func(row int32) int32) bitRows {
	b := bitRows{start: make([]int32, n+1)}
	for row := range int32(n) {
		b.start[row+1] = b.start[row] + (size(row)+63)/64
	}
	b.words = make([]uint64, b.start[n])
	return b
}

func (b *bitRows) of(row int32) []uint64 { return b.words[b.start[row]:b.start[row+1]] }

func (b *bitRows) set(row, bit int32)   { b.words[b.start[row]+bit/64] |= 1 << (bit % 64) }
func (b *bitRows) unset(row, bit int32) { b.words[b.start[row]+bit/64] &^= 1 << (bit % 64) }

// frontier is what a search has met. As vertices share their bits by switch, it reads each
// once, however many edges lead there.
type frontier struct {
	met   []int32
	seen  bitRows // by switch, and place: the search has read the vertex
	round []int32 // by switch: the search that its row is of
	now   int32
}

// begin begins a search at vertex x.
func (f *frontier) begin(x int32) {
	f.now++
	f.met = append(f.met[:0], x)
}

// at is the row of switch s.
func (f *frontier) at(s int32) []uint64 {
	row := f.seen.of(s)
	if f.round[s] != f.now {
		f.round[s] = f.now
		clear(row)
	}
	return row
}
