// Package mad is the wire format of InfiniBand management datagrams (MADs):
// headers, classes, methods, status, attributes, their effects, and generated
// codecs. Package mad/engine sends and receives them.
//
// ParseHeader reads the base header of a MAD, and Lookup finds the Attribute of a class and
// number: its layout, methods and sources. Attribute.Field and Attribute.Flat describe single
// fields; Attribute.Resolve chooses between the layouts of raw bytes. Each attribute is also a
// struct with generated methods Decode and Encode (PortInfo, NodeRecord ...). Dissect returns
// the parts of a datagram, Validate its violations of the specification. EffectOf returns what
// a request may change, Allowed whether the specification has it; WritesRegister and MaskKeys
// protect registers and keys.
//
// Section numbers refer to the InfiniBand Architecture Specification, volume 1 (IBA).
// Attributes that it does not have are of NVIDIA (Mellanox); their sources are cited at each.
//
// # Concurrency and ownership
//
// The package has no mutable state: its functions are safe for concurrent use. Structs of
// attributes and headers are plain values: Decode copies everything out of the bytes, and
// Encode keeps no reference to them. Attribute, Field, Variant and Words describe layouts. They
// are shared, immutable and safe for concurrent use: callers must not modify them, nor the
// slices and maps in them. Functions on datagrams do not keep m; slices that they
// return are parts of m.
//
// # How to add an attribute
//
// An attribute is one tagged struct, in the file of its family:
//
//	// LedInfo is the port's beacon light, for people who look for the port.
//	//
//	//mad:attr class=Subn id=0x0031 methods=Get,Set size=4 section=14.2.5.15 modifier=port:0:8
//	//mad:source python-rdma codegen/iba_14.xml SMPLedInfo
//	//mad:source illumos usr/src/uts/common/sys/ib/mgt/sm_attr.h sm_ledinfo_t
//	type LedInfo struct {
//		// LedMask is set if the light is on.
//		LedMask bool   `mad:"0:1"`
//		_       uint32 `mad:"1:31"`
//	}
//
// Then "make generate" writes Decode and Encode and the table of its fields, in a file
// named z and the name of the source file, and the entry in ATTRIBUTES.md. Scripts, help
// and recordings use these tables. The effect of a request follows from its method and class
// (see Effect). The generator rejects invalid declarations, with their positions.
//
// Each struct needs:
//
//   - a comment on the struct and on each field: it is the text of help. It names
//     a field as in Go; help shows the specification's name
//   - the fields in the order of the wire, all bits of the layout covered once;
//     reserved bits are fields called _, which are sent as 0
//   - two sources from different projects, or the word unconfirmed
//   - script names (the specification's names in snake case) that differ from
//     each other and from the keywords of Starlark; "data" is the whole attribute
//
// # Directives
//
// A directive is a line at the end of a type's comment:
//
//	//mad:attr class=Subn id=0x0031 ...   the struct is an attribute; one line for each attribute of
//	                                      this layout. Text after a semicolon is help on that one only
//	//mad:header size=8 section=16.2.1    the struct is a layout, but not an attribute: a header, an element
//	                                      of an array, a variant
//	//mad:variant of=Notice.DataDetails name=gid when=IsGeneric:1,TrapNumber:64-67
//	                                      bytes of another layout have this one where all conditions hold
//	//mad:source opensm include/iba/ib_types.h ib_port_info_t
//	                                      where the layout is published: project, file, symbol
//	//mad:enum                            a number type of which each value has a word
//	//mad:mask                            a number type of which each bit has a word
//
// The words of an enum or mask are its constants: the word is the constant's
// name without the type's, in snake case, or the quoted text with which its
// line comment begins.
//
//	VLs0To14 VLs = 5 // "vl0_14"
//
// # Options of attr and header
//
// A header has name, size, section, words and unconfirmed only.
//
//	alias=SwitchRecord          names in older specifications, separated by commas
//	answer=PathRecord           Go name of the attribute whose records the answer has, if not this one
//	capability=ar|ar_rev1       words of GeneralInfo's capabilities, of which the device needs one
//	class=Subn                  management class: Subn, SubnAdm, Perf, BM, DevMgt, ComMgt, SNMP, Vendor09,
//	                            Vendor0A, Vendor0C, CC, Ping, SysStat
//	config                      a record that others than the subnet manager may edit (class version 1)
//	device=0xbd36               of an older attribute: DeviceID in NodeInfo of the devices that have it
//	id=0x0015                   attribute ID
//	inferred                    the parts of the modifier are an inference: no public source has them
//	methods=Get,Set             requests that the specification has: Get, Set, Send, Trap, Report,
//	                            TrapRepress, GetTable, GetTraceTable, GetMulti, Delete
//	modifier=port:0:8,in:8:8    parts of the attribute modifier: name, lowest bit, number of bits;
//	                            unknown if no public source has it
//	name=ReadVPD                name, if not the struct's
//	needs=PortInfo.LID&0xff     fields of other attributes of the class, separated by |, of which one must
//	                            not be 0 in the device; without a field, it must answer the attribute
//	older                       a newer attribute has its number; this one is found by name only
//	offset=32                   first byte in the MAD, if not where the class has its attributes
//	onlyrouters                 only routers have the attribute
//	oui=0x001405                vendor's OUI, in the vendor classes from 0x30 on
//	required                    each subnet administrator must have it (class version 1)
//	register=0x900a             of a layout: the number of the register of Mellanox' devices; the layout is
//	                            a variant of the attributes that carry registers
//	safeget                     a vendor's attribute of which a Get only reads
//	section=14.2.5.6            section of the specification, or vendor
//	size=64                     length in bytes; one smaller than the struct has its first fields
//	smowned                     a subnet manager sets it and expects no other changes
//	state                       a record that can be read but not changed (class version 1)
//	unconfirmed                 fewer than two sources are known
//	v1=Get,GetBulk              requests in version 1 of SubnAdm: Get, Set, Report, Inform, GetTable,
//	                            GetBulk, Config
//	version=1                   class version, if not the current one
//	words=CapabilityMask:PerfCapabilityMask
//	                            enumerations or masks for fields that are plain numbers in the struct
//
// # Options of variant
//
//	name=gid                    name of the variant
//	of=Notice.DataDetails       struct and field: raw bytes, with room for this layout
//	only=SubnAdm,ReadVPD        classes or attributes that have the variant; otherwise all of the struct
//	when=TrapNumber:64-67|144,modifier.mode:2
//	                            conditions, all of which must hold: a field, or part of the modifier, and
//	                            its values; of a field of bytes, the number in its first two. Without
//	                            when, the variant is chosen by its name alone
//
// # Options of a field
//
// A tag begins with offset:bits, counted in bits from the beginning of the
// attribute; of an array, the bits of the first element: `mad:"128:16,ro,hex"`.
// The Go type is bool, an unsigned number, LID, GUID, GID, an enum or a mask,
// another layout, or an array of one of these except bool.
//
//	also=node_type              one more script name
//	bytes                       an array of bytes that is one value
//	component=3                 first bit in the SA's ComponentMask, if not the one after the field
//	                            before; component=none: the field has none
//	components=2                number of bits in the ComponentMask
//	enum                        of a mask type: exactly one bit is set
//	hex                         shown in hexadecimal
//	key                         a key: shown only on request
//	minor                       a table that is too wide leaves it out first
//	name=M_Key                  the specification's name, if not that in Go
//	nochange=0                  in a Set, 0 means no change
//	ro                          read-only: agents ignore it in a Set
//	scale=8                     the number is 8 times the value: of eighths
//	select2=1                   the bit of CounterSelect2 that selects this counter
//	signed                      a number in two's complement
//	stride=16                   bits from one element of an array to the next, if not the bits of an element
//	text                        an array of bytes that is UTF-8 text, padded with NUL
//	vendor=DeviceID             the specification's name if IsGeneric is 0: then a number
//	w1c                         in a Set, 1 clears (or triggers), 0 means no change
package mad
