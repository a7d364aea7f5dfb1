package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	values "fabsh/builtins/routing"
	"fabsh/fabric/routing/engines"
)

// TestScriptsAreFormatted: the shipped scripts are as fabsh fmt leaves them.
func TestScriptsAreFormatted(t *testing.T) {
	for _, e := range engines.All() {
		src := values.EnginePolicy(&e)
		if out, err := Format(e.Name, []byte(src)); err != nil || string(out) != src {
			t.Errorf("the policy of %s: %v\n%s", e.Name, err, cmp.Diff(src, string(out)))
		}
	}
	files := 0
	for _, tree := range []string{"../../scripts", "../../examples"} {
		filepath.WalkDir(tree, func(name string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".star" {
				return err
			}
			files++
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Format(name, src)
			if err != nil {
				t.Error(err)
			} else if diff := cmp.Diff(string(src), string(out)); diff != "" {
				t.Errorf("%s: run fabsh fmt %s\n-want +got\n%s", name, strings.TrimPrefix(name, "../"), diff)
			}
			return nil
		})
	}
	if files == 0 {
		t.Error("no scripts")
	}
}

// TestScript: the dialect's own statements come through, and what is
// formatted stays as it is.
func TestScript(t *testing.T) {
	for _, test := range []struct{ name, in, out string }{
		{"while", "def f(x):\n  while x>0:\n    x-=1\n", "def f(x):\n    while x > 0:\n        x -= 1\n"},
		{"while in while, with words of its own", "while a:\n    while not(b) and c: # while\n        s = 'for while_ in'\n", "while a:\n    while not (b) and c:  # while\n        s = \"for while_ in\"\n"},
		{"while at the end of a tab", "if x:\n\twhile True: pass\n\tif y:\n\t\tz = '''\n\ta'''\n        elif z: a; b\n\telse:\n\t\tpass\n", "if x:\n    while True:\n        pass\n    if y:\n        z = \"\"\"\n\\ta\"\"\"\n    elif z:\n        a\n        b\n    else:\n        pass\n"},
		{"lambdas, stars", "f=lambda *a,**k:(a,k)\ndef g(a,*,b=1,**c):return a\n", "f = lambda *a, **k: (a, k)\n\ndef g(a, *, b = 1, **c):\n    return a\n"},
		{"lists keep their order", "x = f(deps=['b','a'], srcs=['2','1'])\n", "x = f(deps = [\"b\", \"a\"], srcs = [\"2\", \"1\"])\n"},
		{"top-level control", "for i in range(3):\n  if i: continue\n  print(i)\n", "for i in range(3):\n    if i:\n        continue\n    print(i)\n"},
		{"windows", "x=1\r\nwhile x:\r\n  x=0\r\n", "x = 1\nwhile x:\n    x = 0\n"},
		{"letters beyond ASCII", "x = 'é'\ny = '\\té\\'\\u00e9'\nz = '''é\nü'''\nv = 'é\"'\nload('é', 'b')\n", "x = \"é\"\ny = \"\\té\\'\\u00e9\"\nz = \"\"\"é\nü\"\"\"\nv = 'é\"'\n\nload(\"é\", \"b\")\n"},
		{"escapes of letters beyond ASCII", "x = '\\u00e9'\n", "x = \"\\u00e9\"\n"},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Format("x.star", []byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.out, string(got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if again, err := Format("x.star", got); err != nil || string(again) != string(got) {
				t.Errorf("once more it is %q, %v", again, err)
			}
		})
	}
}

// FuzzScript: whatever is a script is one afterwards, and stays as it is
// then.
func FuzzScript(f *testing.F) {
	for _, src := range []string{"x = [\n1,\n# c\n2]\n", "while x: pass\n", "load('a', b='c')\n", "x = '''a\n\tb'''\n", "def f(): # c\n  '''doc'''\n", "x = 'é\\u00e9'\n", "x = b'\\xff' + r'\\' \n", "\r0", "if 1:\r\twhile 0: pass # c\r\nx = '''a\\r\\n'''\r"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		out, err := Format("x.star", []byte(src))
		if err != nil {
			return
		}
		if _, err := Format("x.star", out); err != nil {
			t.Errorf("%q becomes %q: %v", src, out, err)
		}
	})
}

// TestLongStatement: what would take seconds is refused; long lists are not.
func TestLongStatement(t *testing.T) {
	for name, x := range map[string]struct{ src, want string }{
		"sum":   {"y = 1\nif y:\n    x = 1" + strings.Repeat(" + 1", 20000) + "\n", "x.star:3:5: statement too long to format, such as a sum of 10,000 terms; divide it"},
		"calls": {"x = a" + strings.Repeat(".b()", 10000) + "\n", "x.star:1:1: statement too long to format, such as a sum of 10,000 terms; divide it"},
		"elif":  {"def f(a):\n    if a:\n        pass\n" + strings.Repeat("    elif a:\n        pass\n", 10000), "too long to format"},
		"list":  {"x = [" + strings.Repeat("1, ", 40000) + "]\n", ""},
		"lines": {strings.Repeat("x = 1 + 1\n", 20000), ""},
	} {
		_, err := Format("x.star", []byte(x.src))
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
