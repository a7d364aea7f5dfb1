package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/history"
	"fabsh/fabric/plural"
)

// Limits of repeat offenders.
const (
	offendersOver   = 180 * day
	offendersRecent = 14 * day // a fault is not over yet
	offendersShown  = 5        // on the page Now
	offendersWait   = 100 * time.Millisecond
)

// offenders are the links and cables that had faults on two days or more, the worst first, and since when
// there is a history of them.
type offenders struct {
	links, cables []history.Offender
	more          int // links and cables that are left out
	from          time.Time
}

// offendersData is what the page of repeat offenders shows, and the section of Now.
type offendersData struct {
	First    string // what to replace first
	FirstURL template.URL
	Links    []offenderRow
	Cables   []offenderRow // that had faults at several links, or whose link is not among these
	More     int
	Over     string
	Empty    string // instead of all that
	All      template.URL
}

// Worst returns the few links that the page Now shows; without links, cables.
func (d *offendersData) Worst() []offenderRow {
	list := d.Links
	if len(list) == 0 {
		list = d.Cables
	}
	return list[:min(len(list), offendersShown)]
}

// offenderRow is a link or a cable.
type offenderRow struct {
	Text         string
	URL          template.URL
	Place        choice   // of a cable
	Cables       []choice // of a link
	Days, Places int
	Downs        int
	Errors       string
	Last         time.Time
	Recent       bool
}

// Day returns the day of the last fault, UTC, which sorts as text.
func (r offenderRow) Day() string { return r.Last.UTC().Format(time.DateOnly) }

// offendersOf returns the repeat offenders before the time of a page. They are counted once an hour.
func (s *Site) offendersOf(v *view, wait time.Duration) (*offenders, error) {
	h, err := s.historyStore(v.ctx)
	if err != nil {
		return nil, err
	}
	until := v.moment.time.Add(time.Second)
	key := workKey{h, "offenders " + iso(until.Truncate(time.Hour))}
	if v.moment.isPast {
		until = until.Truncate(time.Hour)
		key.what += " past"
	}
	x, err := compute(v.ctx, &s.work, key, wait, func(ctx context.Context) (*offenders, error) { return countOffenders(ctx, h, until) })
	if err != nil && !errors.Is(err, errPending) { // the next page tries it again
		s.work.mu.Lock()
		s.work.remove(func(k workKey) bool { return k == key })
		s.work.mu.Unlock()
	}
	return x, err
}

func countOffenders(ctx context.Context, h *history.Store, until time.Time) (*offenders, error) {
	o, err := h.Overview(ctx)
	if err != nil {
		return nil, err
	}
	x := &offenders{from: o.From}
	for of, list := range map[string]*[]history.Offender{"link": &x.links, "cable": &x.cables} {
		all, err := h.Offenders(ctx, history.OffenderQuery{Of: of, Since: until.Add(-offendersOver), Until: until})
		if err != nil {
			return nil, err
		}
		n := slices.IndexFunc(all, func(o history.Offender) bool { return o.Days < 2 })
		if n < 0 {
			n = len(all)
		}
		*list = slices.Clone(all[:min(n, maxRows)])
		if of == "link" {
			x.more = n - len(*list)
		}
	}
	return x, nil
}

func (s *Site) offendersPage(v *view) error {
	v.Template, v.Tab, v.Title = "offenders", "now", "Repeat offenders"
	v.Data = s.offendersData(v, workWait)
	return nil
}

// offendersData returns the repeat offenders for a page, which waits for them for a while.
func (s *Site) offendersData(v *view, wait time.Duration) *offendersData {
	d := &offendersData{}
	x, err := s.offendersOf(v, wait)
	switch {
	case errors.Is(err, errPending):
		d.Empty = "Faults of half a year are being counted. Reload this page in a few seconds."
		return d
	case errors.Is(err, errBusy):
		d.Empty = errBusy.text
		return d
	case err != nil:
		d.Empty = noHistory(err, "No history is kept, so it is not known which links have faults again and again. fabsh serve keeps one unless --no-history is given; fabsh history import begins with snapshots.")
		return d
	}
	end := v.moment.time
	days := min(int(offendersOver/day), int(math.Ceil(end.Sub(x.from).Hours()/24)))
	d.Over = "in " + plural.Count(max(1, days), "day", "days") + " of history"
	if len(x.links)+len(x.cables) == 0 {
		d.Empty = fmt.Sprintf("No link or cable had faults on two days or more, %s, as far as was read.", d.Over)
		if days < 2 {
			d.Over, d.Empty = "", "The history begins at "+when(x.from)+": come back after a few days to see which links have faults again and again."
		}
		return d
	}
	row := func(o *history.Offender) offenderRow {
		return offenderRow{Days: o.Days, Places: o.Links, Downs: o.Flaps, Errors: number(int(min(o.Errors, math.MaxInt64))), Last: o.Last, Recent: end.Sub(o.Last) < offendersRecent}
	}
	at := map[string][]choice{} // cables by the ends of their link
	for i := range x.cables {
		o := &x.cables[i]
		at[endsKey(o.Ends)] = append(at[endsKey(o.Ends)], choice{Text: clean(o.Key), URL: v.to("cable", o.Key)})
	}
	shown := map[string]bool{}
	for i := range x.links {
		o := &x.links[i]
		r := row(o)
		r.Text, r.URL = v.linkOf(o.Ends)
		r.Cables = at[endsKey(o.Ends)]
		shown[endsKey(o.Ends)] = true
		d.Links = append(d.Links, r)
	}
	for i := range x.cables {
		o := &x.cables[i]
		if o.Links < 2 && shown[endsKey(o.Ends)] {
			continue // in the row of its link
		}
		r := row(o)
		r.Text, r.URL = clean(o.Key), v.to("cable", o.Key)
		r.Place.Text, r.Place.URL = v.linkOf(o.Ends)
		d.Cables = append(d.Cables, r)
	}
	for _, list := range [][]offenderRow{d.Links, d.Cables} { // what has faults still is first
		slices.SortStableFunc(list, func(a, b offenderRow) int {
			switch {
			case a.Recent == b.Recent:
				return 0
			case a.Recent:
				return -1
			}
			return 1
		})
	}
	d.More = x.more
	d.first()
	return d
}

// first states what to replace first: a cable whose faults moved with it, or the link with faults on most days,
// if its faults are recent.
func (d *offendersData) first() {
	recent := func(r offenderRow) bool { return r.Recent }
	link, cable := slices.IndexFunc(d.Links, recent), slices.IndexFunc(d.Cables, func(r offenderRow) bool { return r.Recent && r.Places > 1 })
	if cable >= 0 && (link < 0 || d.Cables[cable].Days >= d.Links[link].Days) {
		r := &d.Cables[cable]
		d.First, d.FirstURL = fmt.Sprintf("Cable %s: faults on %s at %d links, so they moved with the cable.", r.Text, plural.Count(r.Days, "day", "days"), r.Places), r.URL
		return
	}
	if link < 0 {
		d.First = fmt.Sprintf("None now: the last fault of all was more than %s ago.", words(offendersRecent))
		return
	}
	r := &d.Links[link]
	d.First, d.FirstURL = fmt.Sprintf("%s: faults on %s.", r.Text, plural.Count(r.Days, "day", "days")), r.URL
	switch n := len(r.Cables); {
	case n == 1:
		d.First += " Its cable is " + r.Cables[0].Text + "."
	case n > 1:
		d.First += fmt.Sprintf(" It had faults with %d cables: suspect a port.", n)
	default:
		d.First += " Its page has what is known of the cable."
	}
}

// endsKey names the ends of a link, in any order.
func endsKey(ends []history.End) string {
	list := slices.Clone(ends)
	slices.SortFunc(list, func(a, b history.End) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
	})
	return fmt.Sprint(list)
}

// linkOf returns the ends of a link in the order of their names, and its page.
func (v *view) linkOf(ends []history.End) (text string, page template.URL) {
	ends = slices.Clone(ends)
	slices.SortFunc(ends, func(a, b history.End) int { return fabric.CompareNames(v.endText(a), v.endText(b)) })
	var list []string
	for _, e := range ends {
		list = append(list, v.endText(e))
	}
	return strings.Join(list, " – "), v.endURL(ends[0])
}

// endText returns the name of a port, or what identifies it if the fabric does not have it.
func (v *view) endText(e history.End) string {
	if e.Node == 0 {
		return "an unknown port"
	}
	if f := v.moment.fabric; f != nil {
		if nodes := f.NodeByGUID(e.Node); len(nodes) > 0 {
			return nodeName(nodes[0]) + "/" + strconv.Itoa(e.Port)
		}
	}
	return e.String()
}
