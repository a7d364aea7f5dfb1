package gen

import (
	"fmt"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"strings"
)

// keywords are the keywords and reserved words of Starlark, which are not valid as
// script names (Starlark specification, "Lexical elements").
var keywords = strings.Fields(`and break continue def elif else for if in lambda load not or pass return while
	as assert async await class del except finally from global import is nonlocal raise try with yield`)

// check adds an error for each problem on the wire or in a script, and numbers the
// components.
func (p *pkg) check() {
	p.placeRegisters()
	ids := map[string]*attr{}
	for _, f := range p.files {
		for _, w := range f.wordTypes {
			p.checkWords(w)
		}
		for _, l := range f.layouts {
			for _, a := range l.attrs {
				p.checkAttr(l, a)
				key := fmt.Sprintf("class %s id %#04x", a.classWord(), a.id)
				if other := ids[key]; other != nil && !a.header && !a.older && !other.older {
					p.errs.add(a.pos, "%s: %s is already used by %s", a.name, key, other.name)
				}
				ids[key] = a
			}
			for _, v := range l.variantOf {
				p.checkVariant(v)
			}
			p.checkPlaces(l)
			l.useSpecNames()
		}
	}
	// The components of a record depend on the components of the attribute inside, which
	// must be valid.
	if len(p.errs.errs) > 0 {
		return
	}
	done := map[*layout]int{}
	for _, f := range p.files {
		for _, l := range f.layouts {
			l.numberComponents(done)
			p.checkNames(l)
		}
	}
}

func (p *pkg) checkWords(w *wordType) {
	if len(w.consts) == 0 {
		p.errs.add(w.pos, "%s has no constants", w.name)
	}
	for i, c := range w.consts {
		for _, d := range w.consts[:i] {
			if c.word == d.word {
				p.errs.add(c.pos, "%s: word %q occurs twice", w.name, c.word)
			}
			if c.value == d.value {
				p.errs.add(c.pos, "%s: value %d occurs twice", w.name, c.value)
			}
		}
		if c.word == "" {
			p.errs.add(c.pos, "%s: a constant without a word", w.name)
		}
		if w.bits < 64 && c.value>>w.bits != 0 {
			p.errs.add(c.pos, "%s: %q does not fit", w.name, c.word)
		}
	}
}

func (p *pkg) checkAttr(l *layout, a *attr) {
	if a.size == 0 {
		p.errs.add(a.pos, "%s: no size", a.name)
	}
	if a.section == "" {
		p.errs.add(a.pos, "%s: no section", a.name)
	}
	if at := 8 * a.size; a.size < l.size && slices.ContainsFunc(l.fields, func(f *field) bool { return f.offset < at && at < f.offset+f.span() }) {
		p.errs.add(a.pos, "%s: %d bytes end within a field", a.name, a.size)
	}
	if len(a.methods1) > 0 && a.class.name != "SubnAdm" {
		p.errs.add(a.pos, "%s: v1 is for SubnAdm", a.name)
	}
	projects := map[string]bool{}
	for _, s := range l.sources {
		project, _, _ := strings.Cut(s, " ")
		projects[project] = true
	}
	if len(projects) < 2 && !a.unconfirmed {
		p.errs.add(a.pos, "%s: the layout needs sources from two projects, or the word unconfirmed", a.name)
	}
	if !a.header && (a.class.name == "" || !a.hasID || len(a.methods)+len(a.methods1) == 0) {
		p.errs.add(a.pos, "%s: class, id and methods are needed", a.name)
	}
	used := uint64(0)
	for _, m := range a.modifier {
		bits := (uint64(1)<<m.bits - 1) << m.shift
		if used&bits != 0 {
			p.errs.add(a.pos, "%s: part %q of the modifier overlaps another", a.name, m.name)
		}
		used |= bits
	}
	for _, word := range a.capability {
		c := p.capabilityOf(word)
		if c < 0 {
			p.errs.add(a.pos, "%s: GeneralInfo has no capability %q", a.name, word)
		}
		a.capabilities = append(a.capabilities, c)
	}
	for _, text := range a.needs {
		if n, ok := p.needOf(a, text); ok {
			a.needed = append(a.needed, n)
		} else {
			p.errs.add(a.pos, "%s: needs=%s: unknown attribute or field of its class", a.name, text)
		}
	}
	if len(a.modifier) > 0 && a.unknownModifier || len(a.modifier) == 0 && a.inferred {
		p.errs.add(a.pos, "%s: a modifier is either unknown or has parts, which may be inferred", a.name)
	}
	a.words = map[string]*wordType{}
	for _, text := range strings.FieldsFunc(a.wordsOption, func(r rune) bool { return r == ',' }) {
		name, typ, _ := strings.Cut(text, ":")
		if p.wordTypes[typ] == nil || !slices.ContainsFunc(l.fields, func(f *field) bool { return f.goName == name }) {
			p.errs.add(a.pos, "%s: no field or no words for %q", a.name, text)
			continue
		}
		a.words[name] = p.wordTypes[typ]
	}
}

// needOf reads "AdaptiveRoutingInfo.HBFSup&0x1" as a need of a.
func (p *pkg) needOf(a *attr, text string) (n need, ok bool) {
	text, mask, masked := strings.Cut(text, "&")
	n.mask = ^uint64(0)
	if masked && readNumber(&n.mask, mask, 64) != nil {
		return n, false
	}
	name, field, _ := strings.Cut(text, ".")
	for _, f := range p.files {
		for _, l := range f.layouts {
			i := slices.IndexFunc(l.attrs, func(b *attr) bool { return !b.header && b.name == name && b.class == a.class })
			if i < 0 {
				continue
			}
			if n.variable = l.attrs[i].variable; field == "" {
				return n, true
			}
			g := l.named(field)
			if g == nil {
				return n, false
			}
			n.field = g.script
			return n, true
		}
	}
	return n, false
}

// capabilityOf returns the number of a capability in GeneralInfo, whose masks are of 32
// bits each; -1 if no mask has the word.
func (p *pkg) capabilityOf(word string) int {
	for i := range 4 {
		w := p.wordTypes[fmt.Sprint("Capabilities", i)]
		if w == nil {
			continue
		}
		for _, c := range w.consts {
			if c.word == word {
				return 32*i + bits.TrailingZeros64(c.value)
			}
		}
	}
	return -1
}

// checkPlaces checks that the fields cover all bits without overlap, in order,
// and that the generator can encode them.
func (p *pkg) checkPlaces(l *layout) {
	size := 8 * l.size
	if size == 0 {
		return // checkAttr has an error for it
	}
	owner := make([]*field, size)
	group, before := 0, 0 // first bit of the fields that share bytes with this one; first bit of the field before
	for _, f := range l.fields {
		if f.offset+f.span() > size {
			p.errs.add(f.pos, "%s: bits %d to %d are outside the %d bytes", f.goName, f.offset, f.offset+f.span()-1, size/8)
			continue
		}
		if f.stride < f.bits {
			p.errs.add(f.pos, "%s: stride %d is less than an element", f.goName, f.stride)
			continue
		}
		if !f.encodable() {
			p.errs.add(f.pos, "%s: %d bits at %d do not fit type %s", f.goName, f.bits, f.offset, f.goType)
		}
		if f.offset < before {
			p.errs.add(f.pos, "%s: bit %d comes before the field above", f.goName, f.offset)
			return
		}
		if before = f.offset; f.offset%8 == 0 {
			group = f.offset
		}
		if !f.array && !f.whole() && f.offset+f.bits-group > 64 {
			p.errs.add(f.pos, "%s: shares bytes with too many fields", f.goName)
			return
		}
		for i := range f.count {
			for b := range f.bits {
				at := f.offset + i*f.stride + b
				if o := owner[at]; o != nil {
					p.errs.add(f.pos, "%s: bit %d is also in %s", f.goName, at, o.goName)
					return
				}
				owner[at] = f
			}
		}
	}
	if at := slices.Index(owner, nil); at >= 0 && len(p.errs.errs) == 0 {
		p.errs.add(l.pos, "%s: bit %d is in no field; declare reserved bits as _", l.goName, at)
	}
}

// encodable reports whether f's Go type fits its place, and the generator has code for it.
func (f *field) encodable() bool {
	aligned := f.offset%8 == 0 && f.stride%8 == 0
	switch f.fieldType {
	case "Struct":
		return aligned && f.bits == 8*f.structure.size && f.stride == f.bits && (!f.array || f.structure.isFlat())
	case "GID", "Text", "Bytes":
		return aligned && f.bits == f.typeBits && f.stride == f.bits
	}
	if f.goType == "bool" {
		return f.bits == 1 && !f.array
	}
	switch {
	case f.bits > f.typeBits:
		return false
	case !f.array:
		// More than 8 bytes cannot be read at once.
		return (f.offset+f.bits-1)/8-f.offset/8 < 8
	case f.bits < 8:
		// An element of an array stays inside its byte.
		return 8%f.stride == 0 || f.stride%8 == 0 && f.offset%8+f.bits <= 8
	}
	return aligned && f.bits == f.typeBits
}

// isFlat reports whether l has no array and no struct, so that an array of l is possible.
func (l *layout) isFlat() bool {
	return !slices.ContainsFunc(l.fields, func(f *field) bool { return f.count > 1 || f.structure != nil })
}

// checkVariant checks that the variant fits its field, and that its conditions
// name fields, or parts of the modifier, that exist.
func (p *pkg) checkVariant(v *variant) {
	base := p.layouts[v.of]
	if base == nil || v.name == "" {
		p.errs.add(v.pos, "%s: a variant needs of=Layout.Field and name=", v.layout.goName)
		return
	}
	for i, f := range base.fields {
		if f.goName != v.field {
			continue
		}
		if f.fieldType != "Bytes" || v.layout.size > f.bits/8 || f.offset%8 != 0 {
			p.errs.add(v.pos, "%s: does not fit in %s.%s", v.layout.goName, v.of, v.field)
		}
		f.union, v.base = true, base
		base.variants = append(base.variants, placement{i, v})
	}
	if len(base.variants) == 0 || base.variants[len(base.variants)-1].variant != v {
		p.errs.add(v.pos, "%s: unknown field %s.%s", v.layout.goName, v.of, v.field)
	}
	for _, c := range v.when {
		if name, is := strings.CutPrefix(c.name, "modifier."); is {
			if !slices.ContainsFunc(base.attrs, func(a *attr) bool {
				return slices.ContainsFunc(a.modifier, func(m modifierPart) bool { return m.name == name })
			}) {
				p.errs.add(v.pos, "%s: the modifiers of %s have no part %q", v.layout.goName, v.of, name)
			}
		} else if f := base.named(c.name); f == nil || f.count != 1 || f.bits > 64 && f.fieldType != "Bytes" {
			p.errs.add(v.pos, "%s: %s has no number %q", v.layout.goName, v.of, c.name)
		}
	}
	for _, only := range v.only {
		if !slices.ContainsFunc(base.attrs, func(a *attr) bool { return a.name == only || a.classWord() == only }) {
			p.errs.add(v.pos, "%s: %s has no attribute %s", v.layout.goName, v.of, only)
		}
	}
}

// useSpecNames replaces the Go names of the fields in l's comments by those of
// the specification.
func (l *layout) useSpecNames() {
	for _, f := range l.fields {
		if f.goName == f.name || f.reserved() {
			continue
		}
		word := regexp.MustCompile(`\b` + regexp.QuoteMeta(f.goName) + `\b`)
		l.doc = word.ReplaceAllLiteralString(l.doc, f.name)
		for _, g := range l.fields {
			g.doc = word.ReplaceAllLiteralString(g.doc, f.name)
		}
	}
}

// numberComponents gives the fields their bits in the ComponentMask: one after
// the other, reserved fields included, and in a record those of the attribute
// inside one by one. It returns how many there are.
func (l *layout) numberComponents(done map[*layout]int) int {
	if n, ok := done[l]; ok {
		return n
	}
	next := 0
	for _, f := range l.fields {
		if f.fixed && f.component < 0 {
			continue
		}
		if f.fixed {
			next = f.component
		}
		f.component = next
		if f.structure != nil && !f.array {
			f.components = f.structure.numberComponents(done)
		}
		next += f.components
	}
	done[l] = next
	return next
}

// checkNames checks that no two fields have one script name, and that no
// script name is a keyword.
func (p *pkg) checkNames(l *layout) {
	seen := map[string]*field{}
	var walk func(*layout)
	walk = func(in *layout) {
		for _, f := range in.fields {
			if f.reserved() {
				continue
			}
			for _, name := range f.scriptNames() {
				if name == "data" && f.offset != 0 {
					p.errs.add(f.pos, "%s: \"data\" is the name of all bytes of a record; choose another name for a part", f.goName)
				}
				if slices.Contains(keywords, name) {
					p.errs.add(f.pos, "%s: %q is a keyword of Starlark", f.goName, name)
				}
				if o := seen[name]; o != nil && in == l {
					p.errs.add(f.pos, "%s: script name %q is also that of %s", f.goName, name, o.goName)
				} else if o != nil {
					p.errs.add(l.pos, "%s: script name %q of %s.%s is also that of %s", l.goName, name, in.goName, f.goName, o.goName)
				}
				seen[name] = f
			}
			if f.structure != nil {
				walk(f.structure)
			}
		}
	}
	walk(l)
	own := maps.Clone(seen)
	for _, v := range l.variants {
		seen = maps.Clone(own)
		walk(v.layout)
	}
}
