package builtins

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
)

// TestLimitSteps: the steps of all fibers and of modules count, each once, however
// they take turns; and nothing catches the end.
func TestLimitSteps(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.star"), []byte("x = [i for i in range(1000)]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(code string, n uint64) error {
		s, err := NewSession(SessionOptions{Include: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		return program.RunCode(lang.LimitSteps(ctx, n, stop), s.Interpreter, "<test>", code)
	}
	// steps is the fewest that code runs with.
	steps := func(code string) int {
		return sort.Search(1<<20, func(n int) bool {
			err := run(code, uint64(n)+1)
			var limit *lang.LimitError
			if err != nil && !errors.As(err, &limit) {
				t.Fatal(err)
			}
			return err == nil
		}) + 1
	}
	one, many := steps(`parallel(lambda i: [sleep(0) for _ in range(50)], range(20), width=1) and None`), steps(`parallel(lambda i: [sleep(0) for _ in range(50)], range(20), width=9) and None`)
	if one != many || one < 20*50*5 {
		t.Errorf("one after the other %d steps, 9 at once %d", one, many)
	}
	if without, with := steps("None"), steps(`load("m.star", "x")`+"\nNone"); with < without+1000*5 {
		t.Errorf("a module takes %d of %d steps", with-without, with)
	}
	if err := run("catch(parallel, lambda i: catch(lambda: [0 for _ in range(1000)]), [1, 2])", 2000); err == nil || err.Error() != "limit of 2000 steps exceeded by the script; raise --max-steps" {
		t.Errorf("caught: %v", err)
	}
}
