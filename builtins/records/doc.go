// Package records is the values of attributes: bytes with a layout, read and
// written by field, and what help says of them.
//
//	record.go    a record: the bytes of an attribute
//	field.go     values of fields, both ways
//	ids.go       GUIDs and GIDs as scripts write them
//	attrkind.go  parameters that name an attribute, or take its fields
//	helpattr.go  help on attributes, fields, classes
//	origin.go    where a record was read
//	datagram.go  a MAD as a value: decode
//	annotate.go  a whole datagram, explained
//	mask.go      keys kept out of a text
package records
