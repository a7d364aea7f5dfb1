package mad

// AttributeID names an attribute within a class.
type AttributeID uint16

// Attribute is the description of one attribute, or of a header. The generator
// makes it from a tagged struct, where all of it is declared. It is immutable and
// safe for concurrent use.
type Attribute struct {
	Name     string   // in the specification: "PortInfo"
	Aliases  []string // in older specifications: "SwitchRecord"
	Class    Class    // ClassSubn for both subnet management classes; 0 of a header
	Version  uint8    // of the class
	ID       AttributeID
	OUI      uint32         // of the vendor, in the vendor classes from 0x30 on; otherwise 0
	Methods  []Method       // requests that the specification allows
	Methods1 []Method       // the same in version 1 of SubnAdm
	Modifier []ModifierPart // the fields of the attribute modifier; empty: it is 0
	SMOwned  bool           // a subnet manager sets it and expects no other changes
	// Older is set if a newer attribute has the same number: Lookup returns that, and
	// this one is found only by its name. Device is the DeviceID in NodeInfo of the
	// devices that have it; 0: unknown.
	Older   bool
	Device  uint16
	SafeGet bool // a vendor's attribute of which a Get is known only to read
	// Capabilities are the capabilities in GeneralInfo of which a device needs one to have
	// the attribute; empty: none.
	Capabilities []Capability
	// Needs are conditions on other attributes, of which a device has to meet one to have
	// the attribute; empty: none. OnlyRouters is set if only routers have it.
	Needs       []Need
	OnlyRouters bool
	// UnknownModifier is set if no public source has the modifier: only a caller who knows
	// the device can give it. InferredModifier is set if Modifier is an inference.
	UnknownModifier, InferredModifier bool
	Size                              int        // length of the layout in bytes
	Section                           string     // of the specification
	Sources                           []string   // the public sources of the layout: project, file and symbol
	Doc                               string     // one paragraph
	Fields                            []Field    // in wire order, reserved bits left out
	Variants                          []Variant  // the layouts that fields of raw bytes can have
	Variant                           string     // the name of the variant in place, or ""
	Answer                            *Attribute // the attribute of the records in the answer; nil: this one
	Register                          uint16     // of a layout: the number of the device's register; 0: not a register
	Confirmed                         bool       // false: fewer than two sources

	// The content of a record of the subnet administrator, by class version 1:
	// state, which may be queried; configuration, which others than the subnet
	// manager may also edit (IBA 1.0.a; Shanley, InfiniBand Network
	// Architecture, table 33-6).
	State, Configuration bool
	// Required is set if class version 1 requires the attribute of each subnet
	// administrator (Shanley, table 33-4); otherwise it is optional there.
	Required bool

	offset int      // in the MAD, bytes; 0: the class's data offset
	lazy   *derived // made at first use
}

// Offset returns the offset of the attribute in a MAD of its class version, in bytes.
func (a *Attribute) Offset() int { return a.OffsetIn(a.Version) }

// OffsetIn returns its offset in a MAD of another version of its class.
func (a *Attribute) OffsetIn(version uint8) int {
	if a.offset > 0 {
		return a.offset
	}
	return (&Header{Class: a.Class, ClassVersion: version}).DataOffset()
}

// ModifierPart is a field of an attribute modifier: "port", "block", ...
type ModifierPart struct {
	Name  string
	Shift uint8
	Bits  uint8
}

// Place returns the bits of the attribute modifier that select a port or a block of
// a table. The others are flags or commands; an agent that does not support a flag
// clears it in its answer.
func (a *Attribute) Place() (mask uint32) {
	for _, p := range a.Modifier {
		switch p.Name {
		case "port", "in_port", "out_port", "block", "position":
			mask |= uint32(1<<p.Bits-1) << p.Shift
		}
	}
	return mask
}

// FieldType is the type of a field's bits.
type FieldType uint8

const (
	FieldTypeUint   FieldType = iota // an unsigned number
	FieldTypeLID                     // LID
	FieldTypeGUID                    // GUID, 64 bits
	FieldTypeGID                     // GID, 128 bits
	FieldTypeEnum                    // one of Words
	FieldTypeMask                    // a set of Words, by bit
	FieldTypeText                    // NUL-padded UTF-8
	FieldTypeBytes                   // raw
	FieldTypeStruct                  // an attribute inside a record
)

// Field is one field of an attribute. Offsets count bits from the attribute's
// first; bit 0 is the most significant bit of byte 0, as in the specification.
type Field struct {
	Name       string   // the component name in the specification: "LinkWidthActive"
	Script     string   // SnakeName(Name): "link_width_active"
	Also       []string // other script names; usually none
	Vendor     string   // its name if IsGeneric is 0; a vendor then defines it, as a number: "DeviceID"; usually ""
	Offset     int      // bits
	Bits       int      // bits of one element
	Count      int      // elements; 1 unless an array
	Stride     int      // bits from one element to the next; Bits if they are adjacent
	Type       FieldType
	Words      *Words     // of KindEnum and KindMask
	Struct     *Attribute // of KindStruct
	Component  int        // first bit in the SA ComponentMask; -1: none
	Components int        // number of bits there: 1, more for fields that the specification splits
	ReadOnly   bool       // "ro": the agent ignores it in a Set
	NoChange   bool       // "nochange=0": in a Set, 0 means no change
	W1C        bool       // "w1c": in a Set, 1 clears (or triggers), 0 means no change
	Key        bool       // "key": shown only on request
	Hex        bool       // "hex": shown in hexadecimal
	Signed     bool       // "signed": a number in two's complement
	Scale      int        // "scale=8": the number is 8 times the value; 0: it is the value
	Select2    int        // "select2=N": N+1, for a counter that bit N of CounterSelect2 selects; otherwise 0
	Doc        string     // one sentence or two
}

// Words are the names of an enumeration's values or of a mask's bits, in
// lower snake case.
type Words struct {
	Name string            // the Go type: "PortState"
	Word map[uint64]string // value (of an enumeration) or bit value 1<<n (of a mask) to word
	Code map[string]uint64 // word to value
}
