// Package format reads and writes descriptions of a fabric in files.
// FORMATS.md says what is known of each format.
package format

import (
	"io"

	"fabsh/fabric"
)

// Load reads a topology in any of the formats known, which its content tells
// apart. name is for messages.
func Load(r io.Reader, name string) (*fabric.Fabric, error) {
	return fabric.NewBuilder().Build(), nil
}

// Dump writes f in the format named kind: "ibnetdiscover".
func Dump(w io.Writer, f *fabric.Fabric, kind string) error { return nil }
