package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWordsAtPrompt: what may stand behind the commands that run at the prompt too.
func TestWordsAtPrompt(t *testing.T) {
	list := AtPrompt(nil, commands())
	for _, test := range []struct {
		line string
		want []string
	}{
		{"audit --lo", []string{"--load-cache"}},
		{"audit c", []string{"config", "counters"}},
		{"audit counters links co", []string{"config"}},
		{"audit counters --th", []string{"--thresholds"}},
		{"audit counters --baseline no", nil},
		{"audit --fail-on ", []string{"info", "warning", "error", "critical"}},
		{"audit a", []string{"ack"}},
		{"audit ack x --", []string{"--subnet", "--until", "--reason", "--by"}},
		{"report html co", []string{"config", "counters"}},
		{"report html a", nil},
		{"report ibh", []string{"ibhosts"}},
		{"report ibtracert --m", []string{"--mlid"}},
	} {
		words := strings.Split(test.line, " ")
		typed := words[len(words)-1]
		var got []string
		for _, w := range list[words[0]].Words(words[1 : len(words)-1]) {
			if w, _, _ = strings.Cut(w, "\t"); strings.HasPrefix(w, typed) {
				got = append(got, w)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", test.line, diff)
		}
	}
}
