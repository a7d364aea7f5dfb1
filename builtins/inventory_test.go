package builtins

import (
	"strings"
	"testing"

	"fabsh/fabric/diff"
)

// TestInventoryDiff: what snapshot --all keeps has the firmware of devices, as the live devices have it, and
// a comparison names the one that changed.
func TestInventoryDiff(t *testing.T) {
	onSimWith(t, "fattree:k=4,levels=2", smKey, nil, nil, func(t *testing.T, f *fixture) {
		b := &bench{t: t, f: f}
		const show = `print([(i.subject, i.firmware, i.psid) for i in discover().inventory()][:1])`
		b.code(`sim.firmware("leaf-1", "31.2010.4102", psid = "MT_1")`)
		before := kept(t, f)
		b.code(`sim.firmware("leaf-1", "31.2012.1024", psid = "MT_1")`)
		after := kept(t, f)
		want := `[("leaf-1", "31.2012.1024", "MT_1")]`
		if got := strings.TrimSpace(b.code(show)); got != want {
			t.Errorf("live: %s, want %s", got, want)
		}
		r, err := diff.Compare(t.Context(), before, after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.Changes {
			got = append(got, c.Kind+" "+c.Subject+" "+c.Before+" -> "+c.After)
		}
		if text, want := strings.Join(got, "; "), "node.firmware leaf-1 31.2010.4102 MT_1 -> 31.2012.1024 MT_1"; text != want {
			t.Errorf("changes %s, want %s", text, want)
		}
		file := ofFile(t, after)
		defer file.Close()
		if got := strings.TrimSpace((&bench{t: t, f: file}).code(show)); got != want {
			t.Errorf("of the file: %s, want %s", got, want)
		}
	})
}
