package spec

import (
	"strings"
	"testing"
)

// TestKeys: each key has a text and an example, which is of that key and is accepted.
func TestKeys(t *testing.T) {
	check := func(kind string, keys []Key) {
		seen := map[string]bool{}
		for _, k := range keys {
			if k.Doc == "" || seen[k.Name] || !strings.HasPrefix(k.Example, k.Name+"=") {
				t.Errorf("%s: key %+v", kind, k)
			}
			seen[k.Name] = true
			text := kind + ":" + k.Example
			if k.Name == "p" && kind == "pgft" {
				text = kind + ":m=4/8,w=1/4," + k.Example
			}
			if _, _, err := Parse(text); err != nil {
				t.Error(err)
			}
			if k.Default == "" {
				continue
			}
			if _, _, err := Parse(kind + ":" + k.Name + "=" + k.Default); err != nil {
				t.Error(err)
			}
		}
	}
	for _, k := range Kinds() {
		if k.Doc == "" {
			t.Errorf("%s has no text", k.Name)
		}
		check(k.Name, k.Keys)
	}
	check("fattree", GeneratedKeys())
	check("fattree", CommonKeys())
}
