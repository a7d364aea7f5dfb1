package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"fabsh/builtins/lang"
)

func TestSI(t *testing.T) {
	var got []string
	for _, v := range []float64{unknown, 0, 0.001, 0.2, 1, 9.999, 99.96, 999.4, 999.6, 1234, 80e9, 4e19} {
		got = append(got, si(v))
	}
	want := []string{"?", "0", "<.01", "0.2", "1", "10", "100", "999", "1k", "1.23k", "80G", "40E"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestLike(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "leaf-1/3", true}, {"leaf", "leaf-1/3", true}, {"l*3", "leaf-1/3", true}, {"3*l", "leaf-1/3", false},
		{"*", "", true}, {"spine", "leaf-1/3", false}, {"1**3", "leaf-1/3", true},
	} {
		if got := like(strings.Split(c.pattern, "*"), c.name); got != c.want {
			t.Errorf("like(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestAdaptivity(t *testing.T) {
	for _, c := range []struct {
		on, undetermined, switches int
		want                       string
	}{
		{0, 0, 4, ""},
		{3, 0, 4, "adaptive routing on at 3 of 4 switches"},
		{2, 1, 4, "adaptive routing on at 2, unknown at 1 of 4 switches"},
		{0, 1, 1, "adaptive routing unknown at 1 of 1 switch"},
	} {
		if got := adaptivity(c.on, c.undetermined, c.switches); got != c.want {
			t.Errorf("adaptivity(%d, %d, %d) = %q, want %q", c.on, c.undetermined, c.switches, got, c.want)
		}
	}
}

func TestSpark(t *testing.T) {
	for _, c := range []struct {
		values []float32
		n      int
		want   string
	}{
		{[]float32{0, 0}, 2, "▁▁"}, {[]float32{0, 1, unknown, 2}, 4, "▁▅ █"}, {[]float32{9, 1, 1}, 2, "██"}, {nil, 2, ""},
	} {
		if got := spark(c.values, c.n); got != c.want {
			t.Errorf("spark(%v) = %q, want %q", c.values, got, c.want)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		typed string
		want  []string
		rest  string
	}{
		{"qé", []string{"q", "é"}, ""},
		{"\x1b[A\x1b[5~x", []string{"\x1b[A", "\x1b[5~", "x"}, ""},
		{"\x1b", []string{"\x1b"}, ""},
		{"a\x1b[", []string{"a"}, "\x1b["},
		{"\xc3", nil, "\xc3"},
		{"\xff", []string{"\xff"}, ""},
		{"\x1b[" + strings.Repeat("1;", maxSequence), nil, ""},
	} {
		list, rest := keys(c.typed)
		if diff := cmp.Diff(c.want, list); diff != "" || rest != c.rest {
			t.Errorf("%q: rest %q, want %q; -want +got\n%s", c.typed, rest, c.rest, diff)
		}
	}
}

// testRound has n ports whose rates grow, and one that is not known.
func testRound(n int, name string) round {
	r := round{num: 1, sent: 7, silent: 1}
	for i := range n {
		v := float64(i)
		r.rows = append(r.rows, row{place: place{1, i}, name: fmt.Sprintf("%s/%d", name, i), peer: "peer", rate: [numBy]float64{v, 2 * v, float64(n - i), unknown}, bits: 1e12, symbols: v, tier: []string{"host", "leaf"}[i%2], what: "symbol_error_counter 3"})
	}
	r.rows = append(r.rows, row{place: place{2, 1}, name: "silent/1", peer: "peer", rate: [numBy]float64{unknown, unknown, unknown, unknown}, bits: unknown, what: "no answer"})
	return r
}

// TestWidths: no line is wider than it may be, whatever names are like, and nothing
// in them does anything; the number of a port is seen if anything is.
func TestWidths(t *testing.T) {
	for _, name := range []string{"leaf", "", strings.Repeat("long-", 40), "\x1b[2J\u202eevil\n", "交换机交换机交换机交换机交换机", "e\u0301\u0301"} {
		table := newTable(Options{Name: lang.OneLine(name), Filter: ""})
		table.add(testRound(30, lang.OneLine(name)))
		for width := range 210 {
			for i, line := range table.lines(width+1, 0, 5) {
				if n := text.StringWidth(line); n > width+1 || strings.IndexFunc(line, unicode.IsControl) >= 0 {
					t.Fatalf("%q at %d, line %d: %d columns: %q", name, width+1, i, n, line)
				}
				if width+1 == 80 && i == 1 && !strings.Contains(line, "/29 ") {
					t.Errorf("%q: no port number in %q", name, line)
				}
			}
		}
	}
}

func TestTable(t *testing.T) {
	table := newTable(Options{Name: "net"})
	table.add(testRound(3, "leaf"))
	names := func() (list []string) {
		for _, r := range table.shown {
			list = append(list, r.name)
		}
		return list
	}
	s := &screen{table: table, height: 4}
	for _, c := range []struct {
		typed string
		want  []string
		from  int
	}{
		{"", []string{"leaf/2", "leaf/1", "leaf/0", "silent/1"}, 0},
		{"e", []string{"leaf/0", "leaf/1", "leaf/2", "silent/1"}, 0},
		{"\x1b[B\x1b[B", []string{"leaf/0", "leaf/1", "leaf/2", "silent/1"}, 2},
		{"\x1b[6~\x1b[6~\x1b[6~", []string{"leaf/0", "leaf/1", "leaf/2", "silent/1"}, 3},
		{"\x1b[5~\x1b[A", []string{"leaf/0", "leaf/1", "leaf/2", "silent/1"}, 1},
		{"w\x1b[F", []string{"leaf/2", "leaf/1", "leaf/0", "silent/1"}, 3},
		{"/leaf*1q", nil, 0}, // q is typed, and no key
		{"\x7f\r", []string{"leaf/1"}, 0},
		{"/zzz\x1b", []string{"leaf/1"}, 0},
		{"\x1b", []string{"leaf/2", "leaf/1", "leaf/0", "silent/1"}, 0},
		{"b", []string{"leaf/2", "leaf/1", "leaf/0", "silent/1"}, 0},
		{"<", []string{"leaf/0", "leaf/1", "leaf/2", "silent/1"}, 0},
		{"t", []string{"leaf/0", "leaf/2"}, 0},
		{"t>", []string{"leaf/1"}, 0},
		{"tttw", []string{"leaf/2", "leaf/1", "leaf/0", "silent/1"}, 0},
	} {
		list, _ := keys(c.typed)
		for _, key := range list {
			if quit, _ := s.press(key); quit {
				t.Errorf("%q quits", key)
			}
		}
		if diff := cmp.Diff(c.want, names()); diff != "" || s.from != c.from {
			t.Errorf("after %q: from %d, want %d; -want +got\n%s", c.typed, s.from, c.from, diff)
		}
	}
	for key, interrupts := range map[string]bool{"q": false, "\x04": false, "\x03": true} {
		if quit, interrupted := s.press(key); !quit || interrupted != interrupts {
			t.Errorf("%q: quit %v, interrupted %v", key, quit, interrupted)
		}
	}

	// What was seen stays when the fabric is lost, and trends go on after that.
	table.add(round{num: 2, err: errors.New("gone\x1b[2J\nmore")})
	if got := table.summary(); got != `connection to the fabric lost, retrying: gone\x1b[2J` || len(table.shown) != 4 {
		t.Errorf("lost: %q, %d rows", got, len(table.shown))
	}
	for range 2 * remembered {
		table.add(testRound(3, "leaf"))
	}
	if got, want := table.summary(), "net, by wait: 4 ports, 1 not answered, 7 datagrams per round"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if x := table.round.rows[2].trend.past[Wait]; len(x) != remembered || slices.Max(x) != 2 {
		t.Errorf("trend %v", x)
	}
	if got, want := ber(&table.round.rows[0])+" "+ber(&table.round.rows[2])+" "+ber(&table.round.rows[3]), "<7e-14 2e-12 ?"; got != want { // 3 in 49 rounds of 1e12 bits
		t.Errorf("bit error rates %s, want %s", got, want)
	}
	// Ports that come and go take nobody else's trend.
	fewer := testRound(3, "leaf")
	fewer.rows = slices.Delete(fewer.rows, 1, 2)
	table.add(fewer)
	if x := table.round.rows[1].trend.past[Wait]; len(x) != remembered || slices.Max(x) != 2 {
		t.Errorf("trend %v", x)
	}
}

// FuzzKeys: nothing that is typed is lost, but for a sequence without an end.
func FuzzKeys(f *testing.F) {
	f.Add("q\x1b[A\xc3")
	f.Add("\x1bO\x1b[200~\xff\xfe")
	f.Fuzz(func(t *testing.T, typed string) {
		list, rest := keys(typed)
		if got := strings.Join(list, "") + rest; got != typed && (rest != "" || !strings.HasPrefix(typed, got) || len(typed)-len(got) <= maxSequence) {
			t.Errorf("%q becomes %q and %q", typed, list, rest)
		}
		if slices.Contains(list, "") {
			t.Errorf("%q has an empty key", typed)
		}
	})
}
