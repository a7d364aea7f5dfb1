package format

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
)

// TestPostambles: a prompt after the tables, and what follows, are skipped with a note. Without a
// place for the note, and above another row, the file is refused; so are lines without a prompt.
func TestPostambles(t *testing.T) {
	for _, x := range tableTexts {
		var notes []string
		capture := func(text string) error {
			notes = nil
			return x.read(&Capture{Reader: strings.NewReader(text), Note: func(s string) { notes = append(notes, s) }})
		}
		at := "x:" + strconv.Itoa(strings.Count(x.text, "\n")+1)
		for _, c := range []struct{ after, want string }{
			{"[root@a ~]# ", ": skipped 1 line after the table, such as a prompt: [root@a ~]#"},
			{"[root@a ~]# exit\r\n\r\nlogout\r\nConnection to a closed.\r\n", ": skipped 3 lines after the table, such as a prompt: [root@a ~]# exit"},
			{"root@a:~/dumps$ exit\n", ": skipped 1 line after the table, such as a prompt: root@a:~/dumps$ exit"},
			{"sw-1 [standalone: master] > \n", ": skipped 1 line after the table, such as a prompt: sw-1 [standalone: master] >"},
		} {
			if err := capture(x.text + c.after); err != nil || !cmp.Equal([]string{at + c.want}, notes) {
				t.Errorf("%s: %q: %v, notes %q", x.name, c.after, err, notes)
			}
		}
		if x.name == "ibdiagnet2.far" {
			continue // its reader ignores all lines before a switch
		}
		for _, after := range []string{"hello\n", "[root@a ~]# dump\n" + x.text, "[root@a ~]# x\n0x0003 001\n", "[root@a ~]#\n" + strings.Repeat("y\n", maxPostamble)} {
			strict, err := x.read(strings.NewReader(x.text+after)), capture(x.text+after)
			if err == nil || strict == nil || err.Error() != strict.Error() || len(notes) > 0 {
				t.Errorf("%s: %q: %v, want %v; notes %q", x.name, fabric.Clip(after), err, strict, notes)
			}
		}
	}
}

// TestPrompts: lines of tables are not taken for prompts.
func TestPrompts(t *testing.T) {
	for _, x := range tableTexts {
		for line := range strings.Lines(x.text) {
			if isPrompt([]byte(strings.TrimSpace(line))) {
				t.Errorf("%s: %q is a prompt", x.name, line)
			}
		}
	}
}
