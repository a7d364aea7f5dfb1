package types

import (
	"slices"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/mad"
)

// FieldWords returns the possible words of all attributes of records and other values
// whose value is always one of these or a tuple of them, by the attribute's name.
func FieldWords() map[string]lang.FieldWords {
	all := map[string]lang.FieldWords{}
	texts := map[string]bool{} // names of attributes that can be any text
	add := func(name string, words []string, mask bool) {
		w, ok := all[name]
		for _, word := range words {
			if !slices.Contains(w.Words, word) {
				w.Words = append(w.Words, word)
			}
		}
		w.Mask = mask && (!ok || w.Mask)
		if ok && w.Mask != mask {
			texts[name] = true // a word in one type, a tuple in another
		}
		all[name] = w
	}
	for _, a := range layouts() {
		for i := range a.Flat() {
			f := &a.Flat()[i]
			for _, name := range append([]string{f.Script}, f.Also...) {
				switch {
				case f.Words != nil && f.Count == 1:
					add(name, records.WordsOf(f.Words), f.Type == mad.FieldTypeMask)
				case f.Type != mad.FieldTypeUint && f.Type != mad.FieldTypeLID || f.Key || f.Count > 1:
					texts[name] = true
				}
			}
		}
	}
	for _, d := range All() {
		for _, m := range d.Members {
			if m.Words != nil {
				add(m.ShortName(), m.Words, false)
			} else if m.Method == nil {
				texts[m.Name] = true
			}
		}
	}
	for name := range texts {
		delete(all, name)
	}
	return all
}

// layouts returns all attributes, headers, and the variants of both.
func layouts() []*mad.Attribute {
	list := slices.Concat(mad.Attributes(), mad.Headers())
	for _, a := range list {
		for _, v := range a.Variants {
			list = append(list, v.Layout)
		}
	}
	return list
}
