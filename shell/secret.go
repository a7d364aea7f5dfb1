package shell

import (
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

// readKeys reads the keys that --keys asks for, from a file or, with "-", from
// the terminal; nil where it asks for none.
func (a *app) readKeys() (*engine.Keys, error) {
	switch {
	case !a.flags.Changed("keys"):
		return a.handed, nil
	case a.keys == "-":
		return a.askKeys()
	}
	keys, err := a.readKeyFile(a.keys)
	if _, bad := strconv.ParseUint(a.keys, 0, 64); bad == nil && errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("--keys takes the name of a file, or - to be asked, and no key: all users of this host can read the command line")
	}
	if err != nil {
		return nil, fmt.Errorf("--keys: %w", err)
	}
	return keys, nil
}

func (a *app) readKeyFile(path string) (*engine.Keys, error) {
	f, err := lang.OpenNamed(a.context(), path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := a.private(f); err != nil {
		return nil, err
	}
	return format.ReadKeys(f, path)
}

type namedFile interface {
	Name() string
	Stat() (fs.FileInfo, error)
}

// private: nobody but its owner may read or write f, and scripts may not either.
func (a *app) private(f namedFile) error {
	st, err := f.Stat()
	if err == nil {
		a.secrets = append(a.secrets, st)
	}
	switch {
	case err != nil:
		return err
	case st.IsDir():
		return fmt.Errorf("%s: is a folder", f.Name())
	case st.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: holds keys, and its mode %04o lets others at it; make it yours alone: chmod 600 %s", f.Name(), st.Mode().Perm(), f.Name())
	}
	return nil
}

// askKeys asks for each kind of key at the terminal, which does not show it.
func (a *app) askKeys() (*engine.Keys, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("--keys -: there is no terminal to ask at; put the keys in a file of mode 0600: --keys FILE")
	}
	defer tty.Close()
	a.interrupts.onExit(saveTerminal(tty))
	defer a.interrupts.onExit(func() {})
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
	keys, err := format.ReadKeys(strings.NewReader(lines.String()), "--keys -")
	if err != nil {
		return nil, err
	}
	return keys, nil
}
