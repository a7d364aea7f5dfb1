package builtins

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/lang"
)

// TestWrite writes below --out in real folders, through os.Root.
func TestWrite(t *testing.T) {
	for _, test := range []struct{ name, code, out, err string }{
		{"new", `fs.write("new.txt", "x")`, "\"out/new.txt\"\n", ""},
		{"bytes", `fs.write("b", b"\xff\x00"); fs.exists("out/b")`, "True\n", ""},
		{"replaced", `fs.write("old.txt", "new"); fs.read("out/old.txt")`, "\"new\"\n", ""},
		{"in folders", `fs.read(fs.write("a/b/c.txt", "x"))`, "\"x\"\n", ""},
		{"absolute", `fs.write(fs.read("where") + "/out/abs.txt", "x")`, "\"out/abs.txt\"\n", ""},
		{"a link in the folder is replaced", `fs.write("to-secret", "x"); fs.read("out/to-secret")`, "\"x\"\n", ""},
		{"through a link out", `fs.write("escape/x", "x")`, "", "out/escape/x: path escapes from parent"},
		{"through ..", `fs.write("../x", "x")`, "", "../x: scripts may write only below out, the directory of --out"},
		{"beside", `fs.write(fs.read("where") + "/x", "x")`, "", "DIR/work/x: scripts may write only below out, the directory of --out"},
		{"the folder itself", `fs.write("", "x")`, "", ": scripts may write only below out, the directory of --out"},
		{"over a folder", `fs.write("folder", "x")`, "", "out/folder: is not a regular file, so it cannot be replaced"},
		{"below a file", `fs.write("old.txt/x", "x")`, "", "out/old.txt/x: not a directory"},
		{"no text", `fs.write("x", 1)`, "", "fs.write: for parameter data: got int, want string or bytes; json.encode(x) and str(x) return strings"},
		{"read a link out", `fs.read("out/to-secret")`, "", "out/to-secret: path escapes from parent"},
		{"read outside", `fs.read("../secret")`, "", "../secret: scripts may not read here, only below ., out; allow its directory with -I"},
		{"exists outside", `fs.exists("../secret")`, "", "../secret: scripts may not read here, only below ., out; allow its directory with -I"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			work := filepath.Join(dir, "work")
			for _, d := range []string{"work/out/folder", "elsewhere"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, data := range map[string]string{"secret": "s", "work/out/old.txt": "old", "work/where": work} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for name, target := range map[string]string{"escape": "elsewhere", "to-secret": "secret"} {
				if err := os.Symlink(filepath.Join(dir, target), filepath.Join(work, "out", name)); err != nil {
					t.Fatal(err)
				}
			}
			f := plain(t, func(o *SessionOptions) { o.FS, o.Dir, o.Out = nil, work, "out" })
			out, explained, _ := f.run(test.code)
			want := test.err
			if test.name == "beside" {
				want = dir + want[len("DIR"):]
			}
			if diff := cmp.Diff([]string{test.out, want}, []string{out, firstLines(explained, want)}); diff != "" {
				t.Errorf("output, error (-want +got):\n%s", diff)
			}
			// What lies outside is as before, and no temporary file is left.
			if data, err := os.ReadFile(filepath.Join(dir, "secret")); string(data) != "s" {
				t.Error("the secret is", string(data), err)
			}
			for _, pattern := range []string{"elsewhere/*", "work/x", "work/out/.*", "work/out/*/.*"} {
				if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
					t.Error("left behind:", left)
				}
			}
		})
	}
}

func TestWriteWithoutOut(t *testing.T) {
	f := plain(t, nil)
	_, explained, status := f.run(`fs.write("x", "x")`)
	want := "x: scripts may write only to the directory of --out; give --out DIR"
	if firstLines(explained, want) != want || status != lang.StatusUsage {
		t.Errorf("status %d, %s", status, explained)
	}
}

// TestWriteWhileLoading: the refusal cannot be caught.
func TestWriteWhileLoading(t *testing.T) {
	f := plain(t, func(o *SessionOptions) {
		o.Out = "."
		write(t, o.FS, "/work/m.star", `x = catch(fs.write, "x", "x")`)
	})
	_, explained, status := f.run(`load("m.star", "x")`)
	want := "cannot load m.star: fs.write: refused: a module cannot write files while it is being loaded (m.star); write in a function that the script calls"
	if firstLines(explained, want) != want || status != lang.StatusUsage {
		t.Errorf("status %d, %s", status, explained)
	}
	if _, err := f.fs.Stat("/work/x"); err == nil {
		t.Error("the file is there")
	}
}
