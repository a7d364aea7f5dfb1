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

// ReadKeys reads the keys that --keys asks for, from a file or, with "-", from
// the terminal; nil where it asks for none. It also returns the file.
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
		return nil, nil, errors.New("--keys takes the name of a file, or - to be asked, and no key: all users of this host can read the command line")
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

// private returns what f is, if nobody but its owner may read or write it.
func private(f namedFile) (fs.FileInfo, error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, fmt.Errorf("%s: is a folder", f.Name())
	case st.Mode().Perm()&0o077 != 0:
		return st, fmt.Errorf("%s: holds keys, and its mode %04o lets others at it; make it yours alone: chmod 600 %s", f.Name(), st.Mode().Perm(), f.Name())
	}
	return st, nil
}

// askKeys asks for each kind of key at the terminal, which does not show it.
func askKeys(interrupts *Interrupts) (*engine.Keys, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("--keys -: there is no terminal to ask at; put the keys in a file of mode 0600: --keys FILE")
	}
	defer tty.Close()
	interrupts.OnExit(SaveTerminal(tty))
	defer interrupts.OnExit(func() {})
	// Before the first question and between them too, for who types fast.
	restore, err := hideTyping(tty)
	if err != nil {
		return nil, fmt.Errorf("--keys -: the terminal would show them: %w; put them in a file of mode 0600: --keys FILE", err)
	}
	defer restore()
	var lines strings.Builder
	for _, name := range format.KeyNames() {
		key, err := askUnseen(tty, name+" (not shown; Enter for none): ")
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
