package certificate

import (
	"errors"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fabsh/mad"
)

// TestInterleavings: of random rounds in small networks, those have a certificate that holds
// which are safe in all interleavings of their blocks.
func TestInterleavings(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	safe, unsafe := 0, 0
	worlds := 2000
	if testing.Short() {
		worlds = 300
	}
	for i := range worlds {
		w := newWorld(random, i%3 == 0)
		switch i % 4 {
		case 0:
			w.adapt(random)
		case 1:
			w = newRing(random)
		}
		sub := w.subnet(t)
		c := w.rounds(random, sub)
		wrong := w.judge(sub, c)
		err := Make(t.Context(), sub, c)
		if failed := new(FailureError); err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		if err == nil {
			if _, err := Check(t.Context(), sub, c); err != nil {
				t.Errorf("world %d: what Make made is refused: %v", i, err)
			}
		}
		if (err == nil) != (wrong == nil) {
			t.Errorf("world %d: %v, and in all interleavings: %v", i, err, wrong)
		}
		if wrong == nil {
			safe++
		} else {
			unsafe++
		}
	}
	t.Logf("%d safe, %d unsafe", safe, unsafe)
	if safe < worlds/20 || unsafe < worlds/20 {
		t.Errorf("%d safe, %d unsafe: too few", safe, unsafe)
	}
}

// unpacked are all numbers of a list.
func unpacked(data []byte) (all []uint32) {
	in := unpack(data, "numbers")
	for one := make([]uint32, 1); in.read(one, 1<<30) == nil; {
		all = append(all, one[0])
	}
	return all
}

// mutations change a certificate at random.
var mutations = []struct {
	name   string
	mutate func(random *rand.Rand, c *Certificate)
}{
	{"rank", func(random *rand.Rand, c *Certificate) { c.Ranks = mutated(random, c.Ranks) }},
	{"position", func(random *rand.Rand, c *Certificate) {
		if n := len(c.Orders); n > 0 {
			c.Orders[random.IntN(n)] = mutated(random, c.Orders[random.IntN(n)])
		}
	}},
	{"rounds swapped", func(random *rand.Rand, c *Certificate) {
		i, j := random.IntN(len(c.Rounds)), random.IntN(len(c.Rounds))
		c.Rounds[i], c.Rounds[j] = c.Rounds[j], c.Rounds[i]
	}},
	{"block moved", func(random *rand.Rand, c *Certificate) {
		from, to := &c.Rounds[random.IntN(len(c.Rounds))], &c.Rounds[random.IntN(len(c.Rounds))]
		if n := len(from.Writes); n > 0 {
			i := random.IntN(n)
			b := from.Writes[i]
			from.Writes = slices.Delete(slices.Clone(from.Writes), i, i+1)
			to.Writes = append(slices.Clone(to.Writes), b)
			slices.SortFunc(to.Writes, func(a, b Write) int { return a.Change - b.Change })
		}
	}},
	{"entries edited", func(random *rand.Rand, c *Certificate) {
		r := &c.Rounds[random.IntN(len(c.Rounds))]
		if n := len(r.Writes); n > 0 {
			r.Writes = slices.Clone(r.Writes)
			b := &r.Writes[random.IntN(n)]
			b.Data = slices.Clone(b.Data)
			b.Data[random.IntN(len(b.Data))] = uint8(random.IntN(6))
		}
	}},
	{"drain", func(random *rand.Rand, c *Certificate) {
		r := &c.Rounds[random.IntN(len(c.Rounds))]
		r.Drain = []time.Duration{0, 1, 1 << 40}[random.IntN(3)]
	}},
	{"rounds merged", func(random *rand.Rand, c *Certificate) {
		if i := random.IntN(len(c.Rounds)); i+1 < len(c.Rounds) {
			blocks := slices.Concat(c.Rounds[i].Writes, c.Rounds[i+1].Writes)
			slices.SortFunc(blocks, func(a, b Write) int { return a.Change - b.Change })
			c.Rounds[i+1].Writes = blocks
			c.Rounds = slices.Delete(slices.Clone(c.Rounds), i, i+1)
		}
	}},
	{"proof of another change", nil},
}

// mutated changes a number of a list, or its length.
func mutated(random *rand.Rand, data []byte) []byte {
	all := unpacked(data)
	switch n := len(all); {
	case n == 0 || random.IntN(8) == 0:
		all = append(all, uint32(random.IntN(8)))
	case random.IntN(8) == 0:
		all = all[:n-1]
	default:
		all[random.IntN(n)] = uint32(random.IntN(12))
	}
	return Pack(all)
}

// TestMutations: no certificate, however it was changed, lets pass what is unsafe in some
// interleaving.
func TestMutations(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	held, refused := map[string]int{}, map[string]int{}
	worlds := 1500
	if testing.Short() {
		worlds = 300
	}
	var other *Certificate
	for i := range worlds {
		w := newWorld(random, i%3 == 0)
		sub := w.subnet(t)
		c := w.rounds(random, sub)
		if Make(t.Context(), sub, c) != nil {
			if other == nil { // unsafe, with the proof of another change
				continue
			}
			c.Ranks, c.Orders = other.Ranks, other.Orders
		} else {
			other = c
		}
		for range 4 {
			m := mutations[random.IntN(len(mutations))]
			changed := *c
			changed.Rounds, changed.Orders = slices.Clone(c.Rounds), slices.Clone(c.Orders)
			if m.mutate != nil {
				m.mutate(random, &changed)
			} else {
				changed.Ranks, changed.Orders = other.Ranks, other.Orders
			}
			if _, err := Check(t.Context(), sub, &changed); err != nil {
				refused[m.name]++
				continue
			}
			held[m.name]++
			if wrong := w.judge(sub, &changed); wrong != nil {
				t.Errorf("world %d, %s: the certificate holds, and %v", i, m.name, wrong)
			}
		}
	}
	t.Logf("held %v, refused %v", held, refused)
	for _, m := range mutations {
		if refused[m.name] == 0 {
			t.Errorf("%s: never refused", m.name)
		}
	}
}

// TestForgedRanks: no ranks at all prove rounds that are unsafe in some interleaving: not
// the distances before or after a round, which are right where it does not mix them.
func TestForgedRanks(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	held, refused := 0, 0
	for i := range 600 {
		w := newWorld(random, false)
		sub := w.subnet(t)
		c := w.rounds(random, sub)
		c.AcceptCreditLoops = true
		wrong := w.judge(sub, c)
		for mode := range 4 {
			p, err := newProof(sub, c)
			if err != nil {
				t.Fatal(err)
			}
			p.rank = func(int32) error {
				for s := range p.ranks {
					entries := [...][]uint8{p.now, p.then, p.old, p.final}[mode]
					at, links := int32(s), uint32(0)
					for ; links < p.fails() && p.lead(at, entries[at]) >= 0; links++ {
						at = p.channels[p.lead(at, entries[at])].to
					}
					if p.ranks[s] = links; p.lead(at, entries[at]) != leadsToEnd(p.to) {
						p.ranks[s] = p.fails() + links%p.fails()
					}
				}
				return nil
			}
			if p.each(t.Context()) != nil {
				refused++
				continue
			}
			if held++; wrong != nil {
				t.Errorf("world %d, ranks of kind %d: they hold, and %v", i, mode, wrong)
			}
		}
	}
	if held < 50 || refused < 50 {
		t.Errorf("%d held, %d refused: too few", held, refused)
	}
}

// TestEndOnly: a certificate that proves only the end holds for rounds that are unsafe, but not if
// a block ends with another value, or began with one.
func TestEndOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	unsafe := 0
	for i := range 1000 {
		w := newWorld(random, i%3 == 0)
		sub := w.subnet(t)
		c := w.rounds(random, sub)
		if w.judge(sub, c) == nil || len(sub.Changes) == 0 || sub.Changes[0].Attr != mad.AttrLinearForwardingTable {
			continue
		}
		unsafe++
		if Make(t.Context(), sub, c) == nil {
			t.Errorf("world %d: unsafe rounds have a certificate", i)
		}
		c.EndOnly = true
		if _, err := Check(t.Context(), sub, c); err != nil || Make(t.Context(), sub, c) != nil {
			t.Errorf("world %d: %v", i, err)
		}
		was := sub.Changes[0]
		for _, edit := range []func(ch *Change){
			func(ch *Change) { ch.New = slices.Clone(ch.New); ch.New[3] ^= 1 },
			func(ch *Change) { ch.Old = slices.Clone(ch.Old); ch.Old[3] ^= 1 },
		} {
			edit(&sub.Changes[0])
			if _, err := Check(t.Context(), sub, c); err == nil {
				t.Errorf("world %d: it holds for another change", i)
			}
			sub.Changes[0] = was
		}
	}
	if unsafe < 50 {
		t.Errorf("%d unsafe: too few", unsafe)
	}
}

// TestImports: the checker shares no code with the planner and with routing.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(path, "fabsh/") && !slices.Contains([]string{"fabsh/fabric", "fabsh/fabric/plural", "fabsh/mad"}, path) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}
