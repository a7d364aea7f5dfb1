package datagrams

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/mad"
)

// eeprom is the name by which reg_get reads a module through MCIA.
const eeprom = "EEPROM"

// A module's EEPROM is read in pieces of 48 bytes, which all firmware supports (linux
// mlxsw reg.h MLXSW_REG_MCIA_EEPROM_SIZE), from either half of its 256 bytes.
const (
	eepromPiece = 48
	eepromPage  = 128
	eepromI2C   = 0x50
)

// readEEPROM reads the modules in ports, and returns records with their own layout,
// SFF8636 or CMIS.
func (a *regGetArgs) readEEPROM(c *lang.Call) (starlark.Value, error) {
	if len(a.Fields) > 0 {
		return nil, lang.Errorf(`"EEPROM" is always read whole; use "MCIA" for parts`)
	}
	mcia := *a
	mcia.Name = "MCIA"
	r, err := newRegisterRequest(c, &mcia)
	if err != nil {
		return nil, err
	}
	m := &modules{registerRequest: r, memory: make([][]byte, len(r.targets)), layout: make([]*mad.Attribute, len(r.targets))}
	failed := slices.Clone(r.values)
	copy(m.values, failed)
	// Both kinds have the lower half and page 0.
	if err := m.page(0, 0, 0); err != nil {
		return nil, err
	}
	if err := m.page(0, eepromPage, eepromPage); err != nil {
		return nil, err
	}
	m.identify()
	if err := m.page(0x11, eepromPage, 2*eepromPage); err != nil {
		return nil, err
	}
	for i := range m.values {
		if m.values[i] == nil {
			m.values[i] = m.targets[i].Answer(records.New(m.layout[i], m.memory[i]), m.ports[i])
		}
	}
	return m.results()
}

// modules are the modules in the ports of a request.
type modules struct {
	*registerRequest
	memory [][]byte         // the contents; nil until identified
	layout []*mad.Attribute // the layout of each
}

// page reads the half of a page that begins at address, to its place in the layouts.
// Page 0x11 exists in CMIS modules with more than one page.
func (m *modules) page(page, address, at int) error {
	for from := 0; from < eepromPage; from += eepromPiece {
		size := min(eepromPiece, eepromPage-from)
		before := slices.Clone(m.values)
		for i := range m.values {
			if page != 0 && m.values[i] == nil && !m.hasPages(i) {
				m.values[i] = starlark.None // no request
			}
		}
		if err := m.read(func(int) []byte { return pieceOf(page, address+from, size) }); err != nil {
			return err
		}
		for i, v := range m.values {
			rec, ok := v.(*records.Record)
			if before[i] != nil || !ok {
				if v == starlark.None {
					m.values[i] = nil
				}
				continue
			}
			m.take(i, rec, at+from, size)
		}
	}
	return nil
}

// pieceOf returns the fields of MCIA that select a piece.
func pieceOf(page, address, size int) []byte {
	data := make([]byte, mad.LayoutMCIA.Size)
	(&mad.MCIA{I2CDeviceAddress: eepromI2C, PageNumber: uint8(page), DeviceAddress: uint16(address), Size: uint16(size)}).Encode(data)
	return data
}

// take stores a piece that target i has answered.
func (m *modules) take(i int, rec *records.Record, at, size int) {
	m.values[i] = nil
	var piece mad.MCIA
	piece.Decode(rec.Data)
	if piece.ModuleStatus != mad.ModuleStatusOK {
		m.answered(i, &ModuleError{status: piece.ModuleStatus})
		return
	}
	if m.memory[i] == nil {
		m.memory[i] = make([]byte, 3*eepromPage)
	}
	copy(m.memory[i][at:], piece.EEPROM[:size])
}

// identify determines the layout of each module.
func (m *modules) identify() {
	for i, memory := range m.memory {
		if m.values[i] != nil {
			continue
		}
		switch id := mad.ModuleIdentifier(memory[0]); id {
		case mad.ModuleIdentifierQSFP, mad.ModuleIdentifierQSFPPlus, mad.ModuleIdentifierQSFP28:
			m.layout[i] = mad.LayoutSFF8636
		case mad.ModuleIdentifierQSFPDD, mad.ModuleIdentifierOSFP, mad.ModuleIdentifierSFPDD, mad.ModuleIdentifierDSFP, mad.ModuleIdentifierQSFPCMIS:
			m.layout[i] = mad.LayoutCMIS
		default:
			m.answered(i, &ModuleError{kind: id, unknown: true})
		}
	}
}

// hasPages reports whether the module of target i has page 0x11.
func (m *modules) hasPages(i int) bool {
	if m.layout[i] != mad.LayoutCMIS {
		return false
	}
	var c mad.CMIS
	c.Decode(m.memory[i])
	return !c.FlatMem
}

// ModuleError is the error of a module that was not read.
type ModuleError struct {
	status  mad.ModuleStatus
	kind    mad.ModuleIdentifier
	unknown bool // its kind is, kind
}

func (e *ModuleError) Error() string {
	if e.unknown {
		return "unknown layout of modules of kind " + e.kind.String()
	}
	return "the module was not read: " + e.reason()
}

func (e *ModuleError) reason() string { return strings.ReplaceAll(e.status.String(), "_", " ") }

// Describe returns the error's attributes for scripts.
func (e *ModuleError) Describe() (op, target, status string) {
	if e.unknown {
		return "reg_get(EEPROM)", "", "unsupported"
	}
	return "reg_get(EEPROM)", "", e.reason()
}
