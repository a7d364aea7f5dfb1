package format

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Anyone may create a symbolic link in a directory such as /tmp, and so choose what the next
// program that writes there replaces. Everything that fabsh writes is found by Target, if the
// user names the file, or by ownPath, if it is one of fabsh's own. Both go from directory to
// directory, because a link can be at any place in a path.

// Target returns the file that writing to path writes. A symbolic link is followed if it is the
// user's own and leads to a file of theirs; one to a directory, too, if it is root's, or if only
// the user and root can create it. /dev/stdout and the like are links too. "-" is refused:
// elsewhere it means standard output, which also gets text.
func Target(path string) (string, error) {
	if path == "-" {
		return "", errors.New("-: ambiguous; use /dev/stdout for standard output, ./- for a file of that name")
	}
	if isStream(path) {
		return path, nil
	}
	target, err := followLinks(path, true)
	if err != nil {
		return "", aboutPath(path, err)
	}
	if st, err := os.Lstat(path); err != nil || st.Mode()&fs.ModeSymlink == 0 || isStream(target) {
		return target, nil
	}
	if st, err := os.Lstat(target); err == nil && st.Mode().IsRegular() && !IsOwn(st) {
		return "", fmt.Errorf("%s: symbolic link to a file of another user, %s; write to that file itself", path, target)
	}
	return target, nil
}

// ownPath returns where path, a file of fabsh itself or its directory, is: the links in its
// directories are followed as by Target. The last name is not.
func ownPath(path string) (string, error) {
	target, err := followLinks(path, false)
	if err != nil {
		return "", aboutPath(path, err)
	}
	return target, nil
}

// MakeDirectory creates the directory at path for files of fabsh itself, and those above it.
func MakeDirectory(path string, mode fs.FileMode) error {
	if err := CheckDirectory(path); err != nil {
		return err
	}
	return os.MkdirAll(path, mode)
}

// CheckDirectory returns an error if files in the directory at path, which may be missing, are not
// to be written because of a symbolic link.
func CheckDirectory(path string) error {
	_, err := followLinks(filepath.Join(path, "file"), false)
	if err != nil {
		return aboutPath(path, err)
	}
	return nil
}

// aboutPath returns err with the path, unless that is the link that it names.
func aboutPath(path string, err error) error {
	if link, ok := errors.AsType[*linkError](err); ok && link.name == filepath.Clean(path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// linkError is the error of a symbolic link that is not followed.
type linkError struct{ name string }

func (e *linkError) Error() string {
	return e.name + ": symbolic link of another user; write to the path that it leads to, or to another"
}

// maxLinks is the maximum number of symbolic links in a path (path_resolution(7)).
const maxLinks = 40

// followLinks returns path without symbolic links; unchanged if it has none. The last name is
// followed only if last is set. Names that do not exist are kept. The error lacks the path.
func followLinks(path string, last bool) (string, error) {
	at, rest := "", names(path)
	if filepath.IsAbs(path) {
		at = string(filepath.Separator)
	}
	links := 0
	for len(rest) > 0 {
		name := filepath.Join(at, rest[0])
		rest = rest[1:]
		st, err := os.Lstat(name)
		if err != nil || st.Mode()&fs.ModeSymlink == 0 || len(rest) == 0 && !last {
			at = name // an error is that of who opens it
			continue
		}
		if !IsOwn(st) && (len(rest) == 0 || Owner(st) != 0 && !isProtected(filepath.Dir(name))) {
			return "", &linkError{name}
		}
		to, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", errors.New("too many levels of symbolic links")
		}
		if rest = append(names(to), rest...); filepath.IsAbs(to) {
			at = string(filepath.Separator)
		}
		if full := filepath.Join(at, filepath.Join(rest...)); isStream(full) {
			return full, nil
		}
	}
	if links == 0 {
		return path, nil
	}
	return at, nil
}

// names returns the names in path.
func names(path string) (list []string) {
	for name := range strings.SplitSeq(path, string(filepath.Separator)) {
		if name != "" && name != "." {
			list = append(list, name)
		}
	}
	return list
}

// isProtected reports whether only the user and root can create files in a directory.
func isProtected(dir string) bool {
	st, err := os.Lstat(dir)
	return err == nil && st.Mode().Perm()&0o022 == 0 && (IsOwn(st) || Owner(st) == 0)
}
