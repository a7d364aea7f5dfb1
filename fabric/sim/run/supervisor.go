//go:build linux && (amd64 || arm64)

package run

import (
	"encoding/binary"
	"errors"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Running is a command that runs, and all that it started. Its methods may be called from
// any goroutine.
type Running struct {
	command *command
	hosts   *hosts
}

// Start starts a command.
func Start(o ProgramOptions) (*Running, error) {
	h, err := newHosts(o)
	if err != nil {
		return nil, err
	}
	c, err := startCommand(commandOptions{Program: o.Program, Path: o.Path, Args: o.Args, IoctlType: umadIoctlType, Folder: h.folder})
	if errors.Is(err, errNoListener) {
		err = ErrUnsupported
	}
	if err != nil {
		h.close()
		return nil, err
	}
	s := &supervisor{listener: c.Listener, hosts: h, files: map[uint64]*file{}, texts: map[string]int{}, pidfds: map[uint32]int{}}
	go c.Listener.Serve(s.handle)
	return &Running{command: c, hosts: h}, nil
}

// Signal sends the command a signal.
func (r *Running) Signal(sig syscall.Signal) { r.command.Signal(sig) }

// Kill kills the command and all that it started, whatever they ignore.
func (r *Running) Kill() { r.command.Kill() }

// Wait waits until the command has ended, and all that it started, which is terminated
// then. It returns the command's exit status, as of a shell.
func (r *Running) Wait() (status int, err error) {
	status, err = r.command.Wait()
	r.command.Listener.Close()
	r.hosts.close()
	return status, err
}

// Supported reports whether this host can run programs on a subnet.
func Supported() bool {
	done := make(chan bool)
	go func() { // on a thread that has the filter until it ends, with this function
		runtime.LockOSThread()
		fd, err := installFilter(umadIoctlType)
		if err == nil {
			_, err = newListener(fd)
		}
		done <- err == nil
	}()
	return <-done
}

// supervisor answers the calls that come. They come one after the other.
type supervisor struct {
	*listener
	hosts *hosts
	texts map[string]int // files that have been opened, by their text

	pidfd  sync.Mutex     // guards pidfds
	pidfds map[uint32]int // of the processes of threads

	mu    sync.Mutex // guards files
	files map[uint64]*file
}

// handle answers a call.
func (s *supervisor) handle(c *systemCall) {
	switch c.Kind() {
	case callRead:
		s.read(c)
		return
	case callWrite:
		s.write(c)
		return
	case callWriteList:
		s.writev(c)
		return
	case callIoctl:
		s.ioctl(c)
		return
	case callDuplicate:
		s.duplicate(c)
		return
	}
	folder, address, rest := c.PathArguments()
	name, ok := s.Path(c, address)
	if !ok || name == "" {
		s.Proceed(c)
		return
	}
	m, p := s.resolve(c, folder, name)
	if p == "" {
		s.Proceed(c)
		return
	}
	if m == nil {
		s.Answer(c, 0, unix.ENOENT)
		return
	}
	e := m.Lookup(p)
	if e == nil {
		s.Answer(c, 0, m.missing(p))
		return
	}
	if strings.HasSuffix(name, "/") && e.Kind != entryFolder {
		s.Answer(c, 0, unix.ENOTDIR)
		return
	}
	switch c.Kind() {
	case callOpen:
		s.open(c, m, p, e, rest[0])
	case callOpen2:
		var how [8]byte // its flags, in struct open_how
		if !s.Read(c, rest[0], how[:]) {
			s.Answer(c, 0, unix.EFAULT)
			return
		}
		s.open(c, m, p, e, binary.NativeEndian.Uint64(how[:]))
	case callStat:
		var st unix.Stat_t
		errno := m.stat(p, e, &st)
		s.give(c, errno, rest[0], unsafe.Slice((*byte)(unsafe.Pointer(&st)), unsafe.Sizeof(st)), 0)
	case callStatx:
		var st unix.Statx_t
		errno := m.statx(p, e, int(uint32(rest[1])), &st)
		s.give(c, errno, rest[2], unsafe.Slice((*byte)(unsafe.Pointer(&st)), unsafe.Sizeof(st)), 0)
	case callAccess:
		s.Answer(c, 0, access(e, uint32(rest[0])))
	case callReadlink:
		s.Answer(c, 0, unix.EINVAL)
	default:
		s.Answer(c, 0, unix.EOPNOTSUPP)
	}
}

// give copies a result to the caller's memory, and answers.
func (s *supervisor) give(c *systemCall, errno unix.Errno, address uint64, b []byte, value int64) {
	if errno == 0 && !s.Write(c, address, b) {
		errno = unix.EFAULT
	}
	s.Answer(c, value, errno)
}

// resolve returns the path in the tree that a path stands for, clean and absolute, or ""
// if it is not in the tree; and the host, nil if it is unknown. Links outside the tree
// are not followed.
func (s *supervisor) resolve(c *systemCall, folder int32, name string) (*host, string) {
	if !strings.HasPrefix(name, "/") {
		link := "/proc/" + strconv.FormatUint(uint64(c.Thread), 10)
		if folder == unix.AT_FDCWD {
			link += "/cwd"
		} else {
			link += "/fd/" + strconv.Itoa(int(folder))
		}
		base, err := os.Readlink(link)
		if err != nil || !s.Valid(c) {
			return nil, ""
		}
		if m, p := s.hosts.containing(base); m != nil {
			if p = path.Join(p, name); inFileTree(p) {
				return m, p
			}
			return nil, "" // ".." led out of the tree: the kernel finds what is there
		}
		name = base + "/" + name
	}
	if name = path.Clean(name); !inFileTree(name) {
		return nil, ""
	}
	return s.hosts.of(c.Thread), name
}

// missing is the error of a path that is not in the tree.
func (m *host) missing(p string) unix.Errno {
	if e := m.Lookup(path.Dir(p)); e != nil && e.Kind != entryFolder {
		return unix.ENOTDIR
	}
	return unix.ENOENT
}

// access is access(2) for the user that the programs have.
func access(e *treeEntry, mode uint32) unix.Errno {
	allowed := uint32(unix.R_OK)
	switch e.Kind {
	case entryFolder:
		allowed |= unix.X_OK
	case entryUMAD, entryISSM, entryVerb:
		allowed |= unix.W_OK
	}
	if mode&^allowed&7 != 0 {
		return unix.EACCES
	}
	return 0
}

// Modes of files, and the size that sysfs shows for all.
const (
	textMode   = unix.S_IFREG | 0o444
	deviceMode = unix.S_IFCHR | 0o600
	folderMode = unix.S_IFDIR | 0o755
	textSize   = 4096
)

func (m *host) stat(p string, e *treeEntry, st *unix.Stat_t) unix.Errno {
	fd, errno := m.openBelow(p, unix.O_PATH|unix.O_NOFOLLOW)
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, st); err != nil {
		return errnoOf(err)
	}
	switch e.Kind {
	case entryFolder:
		st.Mode = folderMode
	case entryText:
		st.Mode, st.Size = textMode, textSize
	default:
		st.Mode, st.Rdev = deviceMode, unix.Mkdev(umadMajor, e.Minor)
	}
	return 0
}

func (m *host) statx(p string, e *treeEntry, mask int, st *unix.Statx_t) unix.Errno {
	fd, errno := m.openBelow(p, unix.O_PATH|unix.O_NOFOLLOW)
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, mask, st); err != nil {
		return errnoOf(err)
	}
	switch e.Kind {
	case entryFolder:
		st.Mode = folderMode
	case entryText:
		st.Mode, st.Size = textMode, textSize
	default:
		st.Mode, st.Rdev_major, st.Rdev_minor = deviceMode, umadMajor, e.Minor
	}
	return 0
}

// openBelow opens a file of the host's folders. They belong to the user, whose programs
// may put links there: none is followed, and no path leads out.
func (m *host) openBelow(p string, flags uint64) (int, unix.Errno) {
	for {
		fd, err := unix.Openat2(m.root, "."+p, &unix.OpenHow{
			Flags:   flags | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if err == unix.EAGAIN || err == unix.EINTR { // something was renamed meanwhile
			continue
		}
		return fd, errnoOf(err)
	}
}

func errnoOf(err error) unix.Errno {
	switch e := err.(type) {
	case nil:
		return 0
	case unix.Errno:
		return e
	}
	return unix.EIO
}
