package hosts

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/routing/graph"
)

// TestMisplaced: hosts at spines are named with the options that leave them out, which do;
// login and management hosts are left out.
func TestMisplaced(t *testing.T) {
	spines := []string{"L1 - n1 n2 n3 n4 S1 S2", "L2 - n5 n6 n7 n8 S1 S2", "L3 - n9 n10 n11 n12 S1 S2"}
	two := append(slices.Clone(spines), "S1 - x1~HCA-1", "S2 - boss")
	const noTree = "the switches do not form a tree: "
	const whole = "root\n L1 n[1-4]\n L2 n[5-8]\n L3 n[9-12]\n"
	class := func(names ...string) (rules []graph.Rule) {
		for _, name := range names {
			rules = append(rules, graph.Rule{Class: graph.ClassIO, Name: name})
		}
		return append(rules, graph.DefaultRules()...)
	}
	service := append(ServiceRules(), graph.DefaultRules()...)
	for _, c := range []struct {
		name  string
		lines []string
		o     GroupOptions
		want  string
	}{
		{"named", two, GroupOptions{}, "root\n L1 n[1-4]\n L2 n[5-8]\n L3 n[9-12]\n S1 x1\n S2 boss\n! " + noTree +
			"L1/5 and S1/1 are linked, and both switches have hosts; hosts attached to spines: boss, x1; leave them out with --skip-misplaced, or --class 'boss=io' --class 'x1 *=io'\n"},
		{"skipped", two, GroupOptions{SkipMisplaced: true}, whole + "! attached to a spine; left out: \"boss\", \"x1\"\n"},
		{"by class", two, GroupOptions{Rules: class("boss", "x1 *")}, whole},
		{"management", append(slices.Clone(spines), "S1 - ufm1~HCA-1", "L1 - login01~HCA-1"), GroupOptions{Rules: service},
			whole + "! login or management host, which runs no jobs; left out (--class 'NAME=cn' includes it): \"login01 HCA-1\", \"ufm1 HCA-1\"\n"},
		{"requested", append(slices.Clone(spines), "L1 - login01~HCA-1"), GroupOptions{Rules: append([]graph.Rule{{Class: graph.ClassCN, Name: "login*"}}, service...)},
			"root\n L1 login01,n[1-4]\n L2 n[5-8]\n L3 n[9-12]\n"},
		{"no spine", []string{"L1 - n1 n2 n3 n4 L2", "L2 - n5"}, GroupOptions{SkipMisplaced: true}, "root\n L1 n[1-4]\n L2 n5\n! " + noTree + "L1/5 and L2/1 are linked, and both switches have hosts\n"},
	} {
		g, err := Find(net(c.lines...).build(t), c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, text(g)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}
