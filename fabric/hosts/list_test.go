package hosts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	for _, test := range []struct{ names, want string }{
		{"", ""},
		{"a", "a"},
		{"node1", "node1"},
		{"node2 node1 node2", "node[1-2]"},
		{"node9 node10 node11", "node[9-11]"},
		{"node09 node10 node11", "node[09-11]"},
		{"node9 node09 node10", "node[09-10],node9"},
		{"node001 node01 node1", "node001,node01,node1"},
		{"login node1 node3 node4 mgmt", "login,mgmt,node[1,3-4]"},
		{"rack1node1 rack1node2 rack2node1", "rack1node[1-2],rack2node1"},
		{"n1-ib n2-ib", "n1-ib,n2-ib"},
		{"7 8", "[7-8]"},
		{"n9999999999999999999 n99999999999999999998", "n9999999999999999999,n99999999999999999998"}, // too long to count
	} {
		if got := Fold(strings.Fields(test.names)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.names, got, test.want)
		}
	}
}

func TestExpand(t *testing.T) {
	for _, test := range []struct{ list, want string }{
		{"", ""},
		{"a,b", "a b"}, {" a, b ,n[1-2], c d", "a b n1 n2 c d"}, {"a, ,b", "error"}, {"n[1, 3-4 ,6],m", "n1 n3 n4 n6 m"}, {"n[1, ]", "error"},
		{"node[1-3,5]", "node1 node2 node3 node5"},
		{"node[08-10]-ib", "node08-ib node09-ib node10-ib"},
		{"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
		{"node[", "error"}, {"node]", "error"}, {"node[[1]]", "error"}, {"a,,b", "error"}, {",", "error"},
		{"node[]", "error"}, {"node[1-]", "error"}, {"node[3-1]", "error"}, {"node[a-b]", "error"}, {"node[-1]", "error"},
		{strings.Repeat("n", 60000) + "[1-65000]", "error"}, {"node[" + strings.Repeat("0", 60000) + "1-65000]", "error"}, {"[1-2]" + strings.Repeat("n", 60000) + "[1-65000]", "error"},
		{"node[1-99999999]", "error"}, {"a[0-65535]b[0-65535]", "error"}, {"a[0-99]b[0-99]c[0-99]d[0-99]e[0-99]f[0-99]", "error"},
	} {
		names, err := Expand(test.list)
		got := strings.Join(names, " ")
		if err != nil {
			got = "error"
		}
		if got != test.want {
			t.Errorf("%s: got %.80s (%v), want %s", test.list, got, err, test.want)
		}
	}
}

// TestFoldExpand: lists stand for the names that were folded.
func TestFoldExpand(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var names []string
		for range random.IntN(60) {
			names = append(names, fmt.Sprintf("%s%0*d%s", []string{"n", "n-", "rack1n", ""}[random.IntN(4)], random.IntN(4), random.IntN(120), []string{"", "", "", "-ib"}[random.IntN(4)]))
		}
		list := Fold(names)
		got, err := Expand(list)
		slices.Sort(got)
		slices.Sort(names)
		if want := slices.Compact(names); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: got %v, want %v (%v)", list, got, want, err)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, list := range []string{"a,node[1-3,05]x[2]", "[", "[1-65535],[1-65535]"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		names, err := Expand(list)
		if err != nil || slices.ContainsFunc(names, func(name string) bool { return strings.ContainsAny(name, "[],") }) {
			return
		}
		again, err := Expand(Fold(names))
		slices.Sort(names)
		slices.Sort(again)
		if err != nil && len(names) > 0 || !slices.Equal(slices.Compact(names), again) {
			t.Errorf("%q: %q, folded %q (%v)", list, names, Fold(names), err)
		}
	})
}
