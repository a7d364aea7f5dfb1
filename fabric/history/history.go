// Package history keeps what a subnet was, and what happened to each link, for years: one SQLite file.
//
// A Recorder adds a Cycle for each sweep: what changed since the last one, as events and as the lives of
// links; and the fabric, as a snapshot a week and deltas of it. A Store answers questions: At, Changes,
// Lives, Flaps, Gaps. That nothing was recorded in a time is a fact which answers state: a gap is not an
// absence of changes.
//
// All times are UTC, to the second. Nodes and ports have ids of the history's own, which are never used
// again; nodes are identified by GUID. No keys are kept. A file that another user wrote is opened
// read-only, with limits; each cycle has a sum of its rows, which Check compares.
//
// The file must be on a local file system: SQLite's write-ahead log needs memory that processes share.
package history

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/mad"
)

// FileName is the name of a history in the folder of its subnet.
const FileName = "history.db"

// schemaVersion is the version of the schema below. Readers accept it and the one before.
const schemaVersion = 1

// applicationID is in the header of the file, by which file(1) and fabsh recognise it: "fabs".
const applicationID = 0x66616273

// Store is a history that is open. It is safe for concurrent use.
type Store struct {
	db     *sql.DB
	path   string
	gapsOf *gapMemo
}

// ErrNone reports that there is no history.
var ErrNone = errors.New("no history; fabsh history record begins one")

// Open opens the history at path for questions. A file that another user wrote is not trusted:
// nothing in it runs, and what it holds is bounded.
func Open(ctx context.Context, path string) (*Store, error) {
	if IsServer(path) {
		return openServer(ctx, path)
	}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	s, err := open(ctx, path, "mode=ro&"+readerOptions)
	if err != nil && !exists(path+"-wal") { // in a folder that this user cannot write
		s, err = open(ctx, path, "mode=ro&immutable=1&"+readerOptions)
	}
	return s, err
}

// Questions read most pages once: what a page costs is its memory, which a small cache uses again.
const readerOptions = "_pragma=query_only(1)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)&_pragma=cache_size(-1024)"

// checkFile returns an error unless path is a file.
func checkFile(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return format.FileError(err)
	case st.IsDir():
		return fmt.Errorf("%s: is a directory", path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s: not a file", path)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// open opens the file and checks that it is a history.
func open(ctx context.Context, path, options string) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: absolute}).EscapedPath()+"?_pragma=busy_timeout(10000)&"+options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Store{db: db, path: path, gapsOf: new(gapMemo)}
	if err := s.identify(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

// identify returns an error unless the file is a history whose schema is known.
func (s *Store) identify(ctx context.Context) error {
	var id int64
	if err := s.db.QueryRowContext(ctx, "pragma application_id").Scan(&id); err != nil {
		return s.failed(err)
	}
	if id != applicationID {
		return fmt.Errorf("%s: not a history of fabsh", s.path)
	}
	return s.checkSchema(ctx)
}

// checkSchema returns an error unless the version of the schema is known.
func (s *Store) checkSchema(ctx context.Context) error {
	text, err := s.meta(ctx, "schema")
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s: the history is damaged: schema %q", s.path, text)
	case version > schemaVersion:
		return fmt.Errorf("%s: the history is of schema %d, of a later fabsh; this one reads up to %d", s.path, version, schemaVersion)
	case version < schemaVersion-1 || version < 1:
		return fmt.Errorf("%s: the history is of schema %d; this fabsh reads from %d", s.path, version, max(1, schemaVersion-1))
	}
	return nil
}

// meta returns the value of a key; an error without one.
func (s *Store) meta(ctx context.Context, key string) (value string, err error) {
	err = s.db.QueryRowContext(ctx, "select value from meta where key = ?", key).Scan(&value)
	return value, s.failed(err)
}

// failed adds the path to an error of SQLite, and says what it means.
func (s *Store) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// Close closes the history.
func (s *Store) Close() error { return s.db.Close() }

// Path is the path of the file.
func (s *Store) Path() string { return s.path }

// Recorder adds cycles to a history. Only one process can be the recorder of a history.
type Recorder struct {
	Store
	lock interface{ Release() }

	keyTime int64          // of the last keyframe
	key     *fabric.Fabric // its fabric
	keySize int            // bytes of it
	last    *fabric.Fabric // of the last cycle; nil: none
	lastT   int64

	ids                map[portKey]int64 // of nodes, and of ports that are known; nil: not read
	guids              map[int64]mad.GUID
	allPorts           bool // ids has all ports
	lastNode, lastPort int64
	words              map[wordKey]int64
	read               *audit.Read // counters of the last cycle; nil: none
	grownRows          map[grownKey]grown
	today              map[grownKey]bool // that grew on the day on which this recorder began, before it
	rowsSince          int64             // first cycle of this recorder; 0: none
	readIDs            []readID          // of the ports of read, in its order
	hours              *hours
	loadedHours        bool            // in this cycle
	grades             map[int64]int64 // of bit error rates, by port
	purged, modulesDay int64           // the days on which old rows were removed, and modules recorded, last
	routes             *fabric.Fabric  // forwarding tables that were kept last; nil: not known
	routesT            int64           // of the row that has them
	guard              func(path string) string
}

// NewRecorder opens the history at path as its recorder, and makes one of the subnet if the file does not exist.
func NewRecorder(ctx context.Context, path string, subnet fabric.Subnet, now time.Time) (*Recorder, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if kind := remoteKind(filepath.Dir(path)); kind != "" {
		return nil, fmt.Errorf("%s: on %s, a network file system, where SQLite cannot share memory; choose a local folder by --state", path, kind)
	}
	lock, err := format.AcquireLock(path + ".lock")
	if err != nil {
		return nil, err
	}
	r, err := newRecorder(ctx, path, subnet, now)
	if err != nil {
		lock.Release()
		return nil, err
	}
	r.lock = lock
	return r, nil
}

const recorderOptions = "_txlock=immediate&_pragma=cache_size(-8192)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)"

func newRecorder(ctx context.Context, path string, subnet fabric.Subnet, now time.Time) (*Recorder, error) {
	if !exists(path) {
		if err := create(ctx, path, subnet, now); err != nil {
			return nil, err
		}
	}
	s, err := open(ctx, path, recorderOptions)
	if err != nil {
		return nil, err
	}
	r := &Recorder{Store: *s, guard: freeSpace}
	if err := r.resume(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return r, nil
}

// create makes an empty history. It has its name once it is whole.
func create(ctx context.Context, path string, subnet fabric.Subnet, now time.Time) error {
	part := path + ".new"
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		os.Remove(part + end)
	}
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	defer os.Remove(part)
	absolute, err := filepath.Abs(part)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: absolute}).EscapedPath()+"?_txlock=immediate&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, fmt.Sprintf("pragma application_id = %d", applicationID)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := &Store{db: db, path: path, gapsOf: new(gapMemo)}
	err = s.inBatch(ctx, func(b *batch) error {
		for _, statement := range schema {
			for _, name := range withoutRowid {
				if strings.HasPrefix(statement, "create table "+name+"(") {
					statement += " without rowid"
				}
			}
			b.exec(statement)
		}
		b.begin(subnet.Key(), now)
		return nil
	})
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// begin adds what each history begins with.
func (b *batch) begin(subnet string, now time.Time) {
	for _, m := range [][2]string{{"schema", strconv.Itoa(schemaVersion)}, {"subnet", subnet}, {"created", now.UTC().Format(time.RFC3339)}} {
		b.insert(tableMeta, m[0], m[1])
	}
}

// resume loads the last cycle.
func (r *Recorder) resume(ctx context.Context) error {
	const done = "select coalesce(max(t), -1) from pending where name = ?"
	if err := cmp.Or(r.db.QueryRowContext(ctx, done, "purged").Scan(&r.purged), r.db.QueryRowContext(ctx, done, "modules").Scan(&r.modulesDay)); err != nil {
		return r.failed(err)
	}
	var keyframe sql.NullInt64
	err := r.db.QueryRowContext(ctx, "select t, keyframe from cycle order by t desc limit 1").Scan(&r.lastT, &keyframe)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return r.failed(err)
	}
	r.keyTime = keyframe.Int64
	if r.key, r.keySize, err = r.keyframe(ctx, r.keyTime); err != nil {
		return err
	}
	r.last, err = r.since(ctx, r.key, r.keyTime, r.lastT)
	return err
}

// Last is the time of the last cycle; zero without a cycle.
func (r *Recorder) Last() time.Time {
	if r.last == nil {
		return time.Time{}
	}
	return at(r.lastT)
}

// leave keeps what the next recorder goes on with: the counters, and the samples of the hour.
func (r *Recorder) leave() error {
	left := map[string][]byte{}
	if r.read != nil {
		data, err := audit.EncodeRead(r.read)
		if err != nil {
			return err
		}
		left["read"] = data
	}
	if r.hours != nil && len(r.hours.kinds) > 0 {
		left["hours"] = r.hours.encode()
	}
	if len(left) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return r.inBatch(ctx, func(b *batch) error {
		for _, name := range sortedKeys(left) {
			var old []any
			for _, row := range b.rows(tablePending, "name = ?", name) {
				old = row
			}
			b.put(tablePending, old, []any{name, r.lastT, left[name]})
		}
		return nil
	})
}

// Close closes the history and releases it.
func (r *Recorder) Close() error {
	err := r.leave()
	err = cmp.Or(err, r.Store.Close())
	r.lock.Release()
	return err
}
