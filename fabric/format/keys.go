package format

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// KeyNames returns the names that a file of keys has for all keys but the M_Keys of
// single ports: as in opensm.conf and ibdiag.conf, where these have them.
func KeyNames() []string {
	names := make([]string, len(namedKeys))
	for i, k := range namedKeys {
		names[i] = k.name
	}
	return names
}

var namedKeys = []struct {
	name string
	of   func(*engine.Keys) *uint64
}{
	{"m_key", func(k *engine.Keys) *uint64 { return &k.M }},
	{"sa_key", func(k *engine.Keys) *uint64 { return &k.SA }},
	{"sm_key", func(k *engine.Keys) *uint64 { return &k.SM }},
	{"cc_key", func(k *engine.Keys) *uint64 { return &k.CC }},
	{"b_key", func(k *engine.Keys) *uint64 { return &k.B }},
	{"vendor_key", func(k *engine.Keys) *uint64 { return &k.Vendor }},
}

// ReadKeys reads a file of keys. A line is the GUID of a port or node and its
// M_Key, as in OpenSM's file guid2mkey (opensm osm_db_pack.c,
// osm_db_guid2mkey_set), or the name of a key and the key. Where all M_Keys are
// equal and there is no m_key, all other ports have this M_Key too. Errors
// show nothing of a line, because it may be a key.
func ReadKeys(r io.Reader, name string) (*engine.Keys, error) {
	keys := &engine.Keys{Ports: map[mad.GUID]uint64{}}
	seen := map[string]int{} // line
	r, err := Bounded(r, name, maxList)
	if err != nil {
		return nil, err
	}
	l := newLines(r, name)
	for l.next() {
		text, _, _ := bytes.Cut(l.text, []byte("#"))
		words := strings.Fields(strings.Replace(string(text), "=", " ", 1))
		if len(words) == 0 {
			continue
		}
		set, id, what := keySetter(keys, words[0])
		if set == nil {
			l.fail("a GUID, as in 0x0002c90300001000, or one of %s, and then a key", strings.Join(KeyNames(), ", "))
			break
		}
		if first := seen[id]; first > 0 {
			l.fail("%s only once; it is also in line %d", what, first)
			break
		}
		seen[id] = l.at.line
		key, ok := uint64(0), len(words) == 2
		if ok {
			key, ok = cNumber(words[1])
		}
		if !ok {
			l.fail("one key of at most 64 bits, as 0x%016x, after %s", 0, what)
			break
		}
		if set(key); len(keys.Ports) > maxTotalPorts {
			l.fail("keys of at most %d ports", maxTotalPorts)
		}
	}
	switch {
	case l.err != nil:
		return nil, l.err
	case len(seen) == 0:
		return nil, fmt.Errorf("%s: the file has no keys", name)
	case seen["m_key"] == 0:
		keys.M = commonKey(keys.Ports)
	}
	return keys, nil
}

// HoldsKeys reports whether a text has a management key that is not a default of OpenSM, 0 or 1: a
// file of keys, or a configuration such as opensm.conf.
func HoldsKeys(text []byte) bool {
	for line := range bytes.Lines(text) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		words := strings.FieldsFunc(string(line), func(r rune) bool { return strings.ContainsRune(" \t\r\n=:,;|{}\"'", r) })
		if len(words) < 2 {
			continue
		}
		key, ok := cNumber(words[1])
		least := uint64(2)
		if name := strings.ToLower(words[0]); !strings.HasSuffix(name, "_key") || name == "p_key" || name == "q_key" {
			if guid, isNumber := cNumber(words[0]); !isNumber || guid == 0 || len(bytes.Fields(line)) != 2 {
				continue
			}
			least = 1 << 16 // of a GUID: a small number may be a LID or another id
		}
		if ok && key >= least {
			return true
		}
	}
	return false
}

// keySetter sets the key that the first word of a line is for; nil for an unknown
// word. id is common to all spellings of the word; what is for messages.
func keySetter(keys *engine.Keys, word string) (set func(key uint64), id, what string) {
	for _, k := range namedKeys {
		if k.name == word {
			return func(key uint64) { *k.of(keys) = key }, word, word
		}
	}
	if guid, ok := cNumber(word); ok && guid != 0 {
		return func(key uint64) { keys.Ports[mad.GUID(guid)] = key }, mad.GUID(guid).String(), "the GUID"
	}
	return nil, "", ""
}

// commonKey returns the key that all ports have; 0 where they differ.
func commonKey(ports map[mad.GUID]uint64) (key uint64) {
	for _, k := range ports {
		if key != 0 && k != key {
			return 0
		}
		key = k
	}
	return key
}
