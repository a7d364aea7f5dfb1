package accept

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
)

// Run is what was watched so far. It is kept in a file as JSON.
type Run struct {
	Version int
	Profile string
	Digest  string // of what the items, the plan and the time are: another one begins a new run
	Soak    time.Duration
	Every   time.Duration
	Began   time.Time
	Ended   time.Time             // zero: it goes on
	Samples []Span                // times of samples that followed each other, the oldest first
	Items   map[string]*ItemState // by name
	Before  *Ended                `json:",omitempty"` // the run before; nil: none
}

// Span is a time in which samples followed each other.
type Span struct {
	From, To time.Time
	Count    int
}

// ItemState is what was watched of an item.
type ItemState struct {
	Watched time.Duration // while its checks were done in sample after sample
	Last    time.Time     // of the last sample that did its checks; zero: none
	Why     string        // why the last sample did not do them; "": it did
	Acked   int           // acknowledged findings of the last sample
	Seen    []Seen        // the oldest first
	Full    bool          // there were more than are kept
}

// Ended is a run that has ended.
type Ended struct {
	Began, Ended time.Time
	Outcomes     map[string]Outcome
}

// Limits of a run: damaged fabrics have many findings, and a file may hold anything.
const (
	runVersion = 1
	maxSeen    = 200      // findings of an item
	maxSpans   = 1000     // gaps, and one
	maxRunFile = 64 << 20 // bytes
)

// NewRun returns a run that begins at now. plan is what else decides about it, such as the digest of the plan.
func NewRun(p *Profile, plan string, soak, every time.Duration, now time.Time) *Run {
	return &Run{Version: runVersion, Profile: p.Name, Digest: digest(p, plan, soak), Soak: soak, Every: every, Began: now.UTC().Truncate(time.Second), Items: map[string]*ItemState{}}
}

// digest returns a number that changes with the items, the plan or the time to watch.
func digest(p *Profile, plan string, soak time.Duration) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %q", soak, plan)
	for _, i := range p.Items {
		fmt.Fprintf(h, "%q %q %d %q %d %v", i.Name, i.Checks, i.Severity, i.Needs, i.Watch, i.Plan)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// Next returns the run that goes on at now: r itself, or, if it has ended or is of other items, a new one.
func (r *Run) Next(p *Profile, plan string, soak, every time.Duration, now time.Time) (next *Run, why string) {
	fresh := NewRun(p, plan, soak, every, now)
	switch {
	case !r.Ended.IsZero():
		fresh.Before = &Ended{r.Began, r.Ended, map[string]Outcome{}}
		for _, v := range r.Judge(p) {
			if r.Items[v.Name] != nil {
				fresh.Before.Outcomes[v.Name] = v.Outcome
			}
		}
		return fresh, ""
	case r.Digest != fresh.Digest:
		return fresh, "the run of " + r.Began.Format(time.RFC3339) + " had other items, another plan or another --soak: this is a new one"
	case r.last().After(now):
		return fresh, "the clock was set back: the run of " + r.Began.Format(time.RFC3339) + " is dropped, this is a new one"
	}
	r.Every = every
	return r, ""
}

// last returns the time of the last sample; zero: none.
func (r *Run) last() time.Time {
	if len(r.Samples) == 0 {
		return time.Time{}
	}
	return r.Samples[len(r.Samples)-1].To
}

// of returns the state of an item.
func (r *Run) of(item *Item) *ItemState {
	s := r.Items[item.Name]
	if s == nil {
		s = &ItemState{Why: "no sample was taken"}
		if r.Items == nil {
			r.Items = map[string]*ItemState{}
		}
		r.Items[item.Name] = s
	}
	return s
}

// joins reports whether a sample at now follows one at before: later ones leave a gap.
func (r *Run) joins(before, now time.Time) bool {
	return !before.IsZero() && now.Sub(before) <= r.Every*5/2+time.Minute
}

// Watched returns how long the fabric was watched, without gaps.
func (r *Run) Watched() (d time.Duration) {
	for _, s := range r.Samples {
		d += s.To.Sub(s.From)
	}
	return d
}

// Gaps returns the times that were not watched.
func (r *Run) Gaps() (list []Span) {
	for i := 1; i < len(r.Samples); i++ {
		list = append(list, Span{From: r.Samples[i-1].To, To: r.Samples[i].From})
	}
	return list
}

// Add adds a sample, which ended at now.
func (r *Run) Add(p *Profile, report *audit.Report, plan bool, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	for _, t := range []time.Time{r.Began, r.last()} {
		if now.Before(t) { // the clock was set back: no time was watched
			now = t
		}
	}
	if n := len(r.Samples); n > 0 && r.joins(r.Samples[n-1].To, now) {
		r.Samples[n-1].To, r.Samples[n-1].Count = now, r.Samples[n-1].Count+1
	} else {
		r.Samples = append(r.Samples[max(0, n+1-maxSpans):], Span{now, now, 1}) // what is dropped was not watched
	}
	for i := range p.Items {
		item := &p.Items[i]
		s := r.of(item)
		done, why := judged(item, report, plan)
		if s.Why = why; done {
			if n := len(r.Samples); n == 1 && r.Samples[0].Count == 2 {
				s.Watched = now.Sub(r.Samples[0].From) // growth of counters since the first sample
			} else if r.joins(s.Last, now) {
				s.Watched += now.Sub(s.Last)
			}
			s.Last = now
		}
		s.Acked = 0
		for j := range report.Acked {
			if concerns(item, &report.Acked[j].Finding) {
				s.Acked++
			}
		}
		for j := range report.Findings {
			if f := &report.Findings[j]; f.Severity >= item.Severity && concerns(item, f) && item.Beyond == "" && (plan || !item.Plan) {
				s.add(f, now)
			}
		}
	}
}

// add adds a finding.
func (s *ItemState) add(f *audit.Finding, now time.Time) {
	i := slices.IndexFunc(s.Seen, func(x Seen) bool { return x.ID == f.ID() })
	if i < 0 {
		if len(s.Seen) == maxSeen {
			s.Full = true
			return
		}
		i, s.Seen = len(s.Seen), append(s.Seen, Seen{ID: f.ID(), First: now})
	}
	x := &s.Seen[i]
	x.Severity, x.Subject, x.Message, x.Last = max(x.Severity, f.Severity), f.Subject.Name(), f.Message, now
}

// seen returns the findings that fail the item, the worst first: those of the last sample, and of what is
// watched all.
func (s *ItemState) seen(r *Run, all bool) (list []Seen) {
	for _, x := range s.Seen {
		if all || x.Now(r) {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b Seen) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Done reports whether the time to watch is over.
func (r *Run) Done() bool { return len(r.Samples) > 0 && r.Watched() >= r.Soak }

// FileOf returns the file of the run of a profile in a subnet, below the directory dir.
func FileOf(dir string, subnet fabric.Subnet, profile string) string {
	return filepath.Join(subnet.Folder(dir), "accept-"+profile+".json")
}

// Load reads the run in a file; nil without one.
func Load(path string) (*Run, error) {
	f, err := format.OpenPlain(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := format.Bounded(f, path, maxRunFile)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	var kept summed
	if err := strictly(data, &kept); err != nil {
		return nil, fmt.Errorf("%s: not a run of fabsh accept: %w", path, err)
	}
	if sumOf(kept.Run) != kept.Sum {
		return nil, fmt.Errorf("%s: damaged: its content is not what was written", path)
	}
	r := new(Run)
	if err := strictly(kept.Run, r); err != nil {
		return nil, fmt.Errorf("%s: not a run of fabsh accept: %w", path, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// summed is a run in its file: a flipped bit must not make time that was not watched.
type summed struct {
	Sum string // of Run, SHA-256
	Run json.RawMessage
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// strictly reads JSON without unknown members.
func strictly(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// check returns an error unless the run can be what fabsh wrote.
func (r *Run) check() error {
	if r.Version != runVersion {
		return fmt.Errorf("a run of version %d; this fabsh reads %d", r.Version, runVersion)
	}
	if r.Soak < 0 || r.Every < 0 || len(r.Samples) > maxSpans {
		return errors.New("damaged: times that cannot be")
	}
	last := r.Began
	for _, s := range r.Samples {
		if s.From.Before(last) || s.To.Before(s.From) || s.Count < 1 {
			return errors.New("damaged: the times of its samples are not in order")
		}
		last = s.To
	}
	for name, s := range r.Items {
		if s == nil || len(s.Seen) > maxSeen || s.Watched < 0 || s.Watched > last.Sub(r.Began) || s.Acked < 0 {
			return fmt.Errorf("damaged: item %q", fabric.Clip(name))
		}
	}
	return nil
}

// Save writes the run to a file, completely or not at all.
func (r *Run) Save(path string) error {
	if err := format.MakeDirectory(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return format.WriteOwn(path, 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(summed{sumOf(data), data}) })
}
