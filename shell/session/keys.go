package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/mad/engine"
)

// ReadKeys reads the keys that --keys names, from a file or, with "-", from the
// terminal; nil without --keys. It also returns the file.
func (p *Program) ReadKeys(ctx context.Context) (*engine.Keys, Secrets, error) {
	path := p.Settings.Keys
	switch {
	case !p.Settings.Given("keys"):
		return nil, nil, nil
	case path == "-":
		keys, err := askKeys(p.Interrupts)
		return keys, nil, err
	}
	keys, secrets, err := readKeyFile(ctx, path)
	if _, bad := strconv.ParseUint(path, 0, 64); bad == nil && errors.Is(err, os.ErrNotExist) {
		return nil, nil, errors.New("--keys: a key is not accepted on the command line, which all users of this host can read; give a file, or - to be prompted")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--keys: %w", err)
	}
	return keys, secrets, nil
}

func readKeyFile(ctx context.Context, path string) (*engine.Keys, Secrets, error) {
	f, err := lang.OpenNamed(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	secret, err := private(f)
	if err != nil {
		return nil, nil, err
	}
	keys, err := format.ReadKeys(f, path)
	return keys, Secrets{secret}, err
}

type namedFile interface {
	Name() string
	Stat() (fs.FileInfo, error)
}

// private returns the FileInfo of f, if only its owner may read or write it.
func private(f namedFile) (fs.FileInfo, error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, fmt.Errorf("%s: is a directory", f.Name())
	case st.Mode().Perm()&0o077 != 0:
		return st, fmt.Errorf("%s: contains keys, but its mode %04o gives other users access; chmod 600 %s", f.Name(), st.Mode().Perm(), f.Name())
	}
	return st, nil
}

// askKeys prompts for each kind of key at the terminal, which does not display it.
func askKeys(interrupts *Interrupts) (*engine.Keys, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("--keys -: no terminal for the prompt; put the keys into a file of mode 0600: --keys FILE")
	}
	defer tty.Close()
	interrupts.OnExit(SaveTerminal(tty))
	defer interrupts.OnExit(func() {})
	// Before the first prompt and between them too, for a user who types fast.
	restore, err := hideTyping(tty)
	if err != nil {
		return nil, fmt.Errorf("--keys -: the terminal would display them: %w; put them into a file of mode 0600: --keys FILE", err)
	}
	defer restore()
	var lines strings.Builder
	for _, name := range format.KeyNames() {
		key, err := askUnseen(tty, name+" (not displayed; Enter for none): ")
		if err != nil {
			return nil, fmt.Errorf("--keys -: %w", err)
		}
		if key != "" {
			fmt.Fprintf(&lines, "%s %s", name, key)
		}
		lines.WriteByte('\n')
	}
	return format.ReadKeys(strings.NewReader(lines.String()), "--keys -")
}
