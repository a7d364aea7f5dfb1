package gen

import (
	"fmt"

	"fabsh/mad/internal/snake"
)

// registerAccess are the attributes that carry a device's register: its bytes, and
// the number that identifies it.
var registerAccess = []struct{ of, field, number, also string }{
	{"MlnxAccessRegister", "Register", "Operation.RegisterID", ""},
	{"AccessRegisterLong", "Register", "Operation.RegisterID", ""},
	{"AccessRegister", "Content", "modifier.register", ",BlockNum:0"},
}

// placeRegisters makes each register a variant of the attributes that carry
// registers and have room for it.
func (p *pkg) placeRegisters() {
	for _, f := range p.files {
		for _, l := range f.layouts {
			for _, a := range l.attrs {
				if a.register != 0 {
					p.placeRegister(l, a)
				}
			}
		}
	}
}

func (p *pkg) placeRegister(l *layout, a *attr) {
	if !a.header {
		p.errs.add(a.pos, "%s: register= is for //mad:header", a.name)
		return
	}
	for _, access := range registerAccess {
		base := p.layouts[access.of]
		if base == nil {
			continue
		}
		if room := base.named(access.field); room != nil && 8*a.size <= room.bits {
			text := fmt.Sprintf("of=%s.%s name=%s when=%s:%#04x%s", access.of, access.field, snake.Name(a.name), access.number, a.register, access.also)
			p.readVariant(l, a.pos, text)
		}
	}
}
