package mad

// AttributeID names an attribute within a class.
type AttributeID uint16

// Attribute is everything there is to know of one attribute. The generator
// makes one from each tagged struct; nothing about an attribute stands
// anywhere else.
type Attribute struct {
	Name      string   // the specification's: "PortInfo"
	Aliases   []string // what older specifications call it: "SwitchRecord"
	Class     Class    // ClassSubn for both subnet management classes; 0 of a header
	Version   uint8    // of the class
	ID        AttributeID
	OUI       uint32         // whose it is, in the vendor classes from 0x30 on; else 0
	Methods   []Method       // requests that the specification allows
	Methods1  []Method       // the same in version 1 of SubnAdm
	Modifier  []ModifierPart // what the attribute modifier says; empty: it is 0
	SMOwned   bool           // a subnet manager sets it and expects it to stay
	Size      int            // length of the layout in bytes
	Section   string         // of the specification
	Sources   []string       // the public sources of the layout: project, file and symbol
	Doc       string         // one paragraph
	Fields    []Field        // in wire order, reserved bits left out
	Variants  []Variant      // what else its bytes can mean
	Variant   string         // which of them this is; "": none
	Answer    *Attribute     // whose records the answer holds; nil: its own
	Confirmed bool           // false: fewer than two sources

	// What a record of the subnet administrator holds: state that may be
	// queried, configuration that others than the subnet manager edit
	// (IBA 1.0.a; Shanley, InfiniBand Network
	// Architecture, table 33-6).
	State, Configuration bool

	offset int // in the MAD, bytes; 0: where the class's attributes are
	links  *links
}

// Offset is where the attribute begins in a MAD, in bytes.
func (a *Attribute) Offset() int {
	if a.offset > 0 {
		return a.offset
	}
	return a.Class.DataOffset()
}

// ModifierPart is a part of an attribute modifier: "port", "block", ...
type ModifierPart struct {
	Name  string
	Shift uint8
	Bits  uint8
}

// Place is the bits of the attribute modifier that say which port, or which block
// of a table, is meant. The others are flags, which an agent that does not know
// them clears in its answer, or orders.
func (a *Attribute) Place() (mask uint32) {
	for _, p := range a.Modifier {
		switch p.Name {
		case "port", "in_port", "out_port", "block", "position":
			mask |= uint32(1<<p.Bits-1) << p.Shift
		}
	}
	return mask
}

// Kind says how a field's bits read.
type Kind uint8

const (
	KindUint   Kind = iota // an unsigned number
	KindLID                // LID
	KindGUID               // GUID, 64 bits
	KindGID                // GID, 128 bits
	KindEnum               // one of Words
	KindMask               // a set of Words, by bit
	KindText               // NUL-padded UTF-8
	KindBytes              // raw
	KindStruct             // an attribute inside a record
)

// Field is one field of an attribute. Offsets count bits from the attribute's
// first; bit 0 is the most significant bit of byte 0, as in the specification.
type Field struct {
	Name       string // the specification's component name: "LinkWidthActive"
	Script     string // SnakeName(Name): "link_width_active"
	Also       string // another script name, where the specification has two; usually ""
	Offset     int    // bits
	Bits       int    // bits of one element
	Count      int    // elements; 1 unless an array
	Stride     int    // bits from one element to the next; Bits where they touch
	Kind       Kind
	Words      *Words     // of KindEnum and KindMask
	Struct     *Attribute // of KindStruct
	Component  int        // first bit in the SA ComponentMask; -1: not one
	Components int        // how many bits: 1, but for fields that the specification splits
	ReadOnly   bool       // "ro": the agent ignores it in a Set
	NoChange   bool       // "nochange=0": in a Set, 0 means leave as it is
	W1C        bool       // "w1c": in a Set, 1 clears (or triggers); 0 leaves
	Key        bool       // "key": never shown unless asked for
	Hex        bool       // "hex": people write it in hexadecimal
	Select2    int        // "select2=N": N+1, of a counter that bit N of CounterSelect2 chooses; else 0
	Doc        string     // one sentence or two
}

// Words are the names of an enumeration's values or of a mask's bits, in
// lower snake case.
type Words struct {
	Name string            // the Go type: "PortState"
	Word map[uint64]string // value (of an enumeration) or bit value 1<<n (of a mask) to word
	Code map[string]uint64 // word to value
}
