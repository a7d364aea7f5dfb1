package serve

import (
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/remedies"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/hosts"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// pathsData is what the page Paths shows.
type pathsData struct {
	From, To, Without string
	Class, Verdict    string
	Facts             []string
	Age               string
	Old               bool
	Unread            []string // what is not known of the tables
	Back              template.URL
	Hops              []hopView
	Lanes             bool // are known of some hops
	Stations          []station
	Choices           []choiceView
	NoLoads           string
	Effect            *effectView
	Ask               []choice
	Empty             string
}

// hopView is a link of a path.
type hopView struct {
	Num                  int
	From, To             choice
	Entry, Choices, Lane string
	Routes               string
	Rate, Load, Errors   string
	Percent              int // of the load; -1: not read
	Mark                 mark
	State                string
	URL                  template.URL
}

// station is a node of a path in its picture, and the link to the next one.
type station struct {
	Name, Ports string
	URL         template.URL
	Switch      bool
	Next        string // the load of the link to the next one
	Class       string
	Last        bool
}

// effectView is the predicted effect of parts that are gone.
type effectView struct {
	Name, Class, Verdict string
	Facts                []item
	Notes                []string
	Command              string // to judge jobs; "": they are known
	Jobs                 *jobsView
	Aside                bool // it is beside a path, so it has a sentence of its own
}

// maxTargets is how many parts are gone at once at most.
const maxTargets = 8

// address returns the address of a page with parameters, at the time that is shown.
func (v *view) address(page string, pairs ...string) template.URL {
	q := url.Values{}
	if at := v.query.Get("at"); at != "" {
		q.Set("at", at)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return template.URL("/" + page)
	}
	return template.URL("/" + page + "?" + q.Encode())
}

// portKey names a port in addresses.
func portKey(p *fabric.Port) string { return key(p.Node()) + "/" + strconv.Itoa(p.Num()) }

// endLID returns the LID of an end of a path: of a LID, a GUID, a port, a node, or a host with one.
func endLID(t *Tables, name string) (mad.LID, error) {
	f, g := t.Fabric(), t.Routes.Graph()
	if lid, err := strconv.ParseUint(name, 10, 16); err == nil && len(f.NodeByName(name)) == 0 {
		if g.TerminalByLID(mad.LID(lid)) < 0 {
			return 0, fmt.Errorf("no port has LID %d", lid)
		}
		return mad.LID(lid), nil
	}
	n, p, err := topology.FindPart(f, starlark.String(name))
	var found *graph.Terminal
	for i := range g.Terminals() {
		x := &g.Terminals()[i]
		switch at := x.Port.Node(); {
		case x.LID == 0:
			continue
		case err == nil:
			if x.Port != p && (p != nil || at != n) {
				continue
			}
		default: // the name of a host stands for its first port with a LID
			if host, ok := fabric.HostName(at.Name()); !ok || at.IsSwitch() || host != name {
				continue
			}
		}
		if found == nil || fabric.CompareNames(x.Port.Name(), found.Port.Name()) < 0 {
			found = x
		}
	}
	switch {
	case found != nil:
		return found.LID, nil
	case err == nil:
		return 0, errors.New("it has no LID")
	}
	return 0, err
}

// missing returns an error of a name, with the nearest one.
func (v *view) missing(err error, name, param string) *pageError {
	text, _, _ := strings.Cut(err.Error(), ";") // without the remedy of scripts
	e := notFound("%s: %s", param, text)
	if near := fabric.Nearest(name, v.names()); near != "" {
		e.near = append(e.near, choice{Text: clean(near), URL: v.with(param, near)})
	}
	return e
}

// trace returns the path that a request names.
func (s *Site) trace(v *view, t *Tables) (*routes.Path, error) {
	var lids [2]mad.LID
	for i, param := range []string{"from", "to"} {
		name := strings.TrimSpace(v.query.Get(param))
		if name == "" {
			return nil, badRequest("%s: missing; want the name of a host, node or port, a GUID or a LID", param)
		}
		lid, err := endLID(t, name)
		if err != nil {
			return nil, v.missing(err, name, param)
		}
		lids[i] = lid
	}
	p, err := t.Routes.Trace(lids[0], lids[1])
	if err != nil {
		return nil, notFound("%v", err)
	}
	return p, nil
}

// targets returns the parts that a request takes away.
func (v *view) targets() (list []string, err error) {
	for x := range strings.SplitSeq(v.query.Get("without"), ",") {
		if x = strings.TrimSpace(x); x != "" {
			list = append(list, x)
		}
	}
	if len(list) > maxTargets {
		return nil, badRequest("without: %d parts; want at most %d", len(list), maxTargets)
	}
	return list, nil
}

func (s *Site) paths(v *view) error {
	v.Template, v.Tab, v.Title = "paths", "paths", "Paths"
	d := &pathsData{From: clean(v.query.Get("from")), To: clean(v.query.Get("to")), Without: clean(v.query.Get("without"))}
	v.Data = d
	t, err := s.tablesOf(v)
	var none *noTables
	if errors.As(err, &none) {
		d.Class, d.Verdict, d.Empty = "none", "Paths are not known.", none.text
		return nil
	}
	if err != nil {
		return err
	}
	d.Age, d.Old = v.ageOf(t)
	for _, note := range t.Routes.ReadNotes[:min(len(t.Routes.ReadNotes), maxRows)] {
		d.Unread = append(d.Unread, clean(note))
	}
	targets, err := v.targets()
	if err != nil {
		return err
	}
	switch {
	case d.From != "" && d.To != "":
		v.data = v.address("api/path", "from", v.query.Get("from"), "to", v.query.Get("to"))
	case len(targets) > 0:
		v.data = v.address("api/impact", "without", v.query.Get("without"))
	}
	if d.From != "" || d.To != "" {
		if err := s.path(v, d, t); err != nil {
			return err
		}
	}
	if len(targets) > 0 {
		return s.effect(v, d, t, targets)
	}
	return nil
}

// crossed is a link that a path crosses.
type crossed struct{ from, to *fabric.Port }

// linksOf returns the links of a path.
func linksOf(p *routes.Path) (list []crossed) {
	ports := p.Ports()
	for i := 0; i+1 < len(ports); i++ {
		if ports[i].Peer() == ports[i+1] {
			list = append(list, crossed{ports[i], ports[i+1]})
		}
	}
	return list
}

// path shows the path that packets take.
func (s *Site) path(v *view, d *pathsData, t *Tables) error {
	p, err := s.trace(v, t)
	if err != nil {
		return err
	}
	g := t.Routes.Graph()
	from := g.Terminals()[p.From].Port
	to := g.Terminals()[g.TerminalByLID(p.LID)].Port
	loads, err := s.loads(v, t)
	switch {
	case errors.Is(err, errPending):
		d.NoLoads = "Routes over each link are still being counted. Reload this page in a few seconds."
	case err != nil:
		d.NoLoads = "Routes over links are not counted: " + clean(err.Error())
	}
	links := linksOf(p)
	first := 1
	if from.Node().IsSwitch() {
		first = 0
	}
	worst, fullest, slowest := isFine, -1, ""
	for i, l := range links {
		h := hopView{Num: i + 1, From: choice{Text: nodeName(l.from.Node()) + "/" + strconv.Itoa(l.from.Num())}, To: choice{Text: nodeName(l.to.Node()) + "/" + strconv.Itoa(l.to.Num())},
			URL: v.linkURL(l.from), Lane: laneOn(t, p, l), Percent: -1, Load: "not read", Errors: "not read", Routes: "not counted"}
		if l.from.Node().IsSwitch() {
			h.Entry = "port " + strconv.Itoa(l.from.Num())
		}
		h.Choices = choicesAt(p, i-first)
		if c := g.ChannelOf(l.from); c >= 0 && loads != nil {
			h.Routes = number(int(loads[c]))
		} else if c < 0 {
			h.Routes = "" // of a host, not of the fabric
		}
		h.Rate, h.State = l.from.Width()+" "+l.from.Speed(), "not in the reading that is shown"
		h.Mark = isNone
		if now := samePort(v.moment.fabric, l.from); now != nil {
			h.Mark = v.moment.stateOf(now)
			h.State = stateWords[h.Mark]
			if now.Peer() == nil {
				h.State = "no link now"
			}
			if slowest == "" && linkMark(now) == isSlow {
				slowest = h.From.Text
			}
			v.figuresOfHop(&h, now)
		}
		d.Lanes = d.Lanes || h.Lane != "not read"
		worst = max(worst, h.Mark)
		fullest = max(fullest, h.Percent)
		d.Hops = append(d.Hops, h)
	}
	d.Choices = v.choicesOf(p, loads)
	d.stations(v, from, to, links)
	d.verdict(p, from, to, worst, fullest, slowest)
	d.Facts = append(d.Facts, fmt.Sprintf("LID %d to LID %d", g.Terminals()[p.From].LID, p.LID))
	d.Facts = append(d.Facts, fmt.Sprintf("for service level %d", p.SL))
	if p.Steps != nil {
		d.Facts = append(d.Facts, "switches choose among ports by load; the row is the static port")
	}
	d.Back = v.address("paths", "from", portKey(to), "to", portKey(from))
	if p.Broken == "" {
		if back, err := t.Routes.Trace(g.Terminals()[g.TerminalByLID(p.LID)].LID, g.Terminals()[p.From].LID); err == nil && len(linksOf(back)) > 0 {
			if sameWay(links, linksOf(back)) {
				d.Facts = append(d.Facts, "the way back takes the same links")
			} else {
				d.Facts = append(d.Facts, "the way back takes other links")
			}
		}
	}
	seen := map[string]bool{}
	ask := func(text, target string) {
		if !seen[target] && len(d.Ask) < 12 {
			seen[target] = true
			d.Ask = append(d.Ask, choice{Text: text, URL: v.address("paths", "from", v.query.Get("from"), "to", v.query.Get("to"), "without", target)})
		}
	}
	for _, l := range links {
		if l.from.Node().IsSwitch() && l.to.Node().IsSwitch() {
			ask("if the link "+nodeName(l.from.Node())+"/"+strconv.Itoa(l.from.Num())+" goes", portKey(l.from))
		}
	}
	for _, l := range links {
		if l.to.Node().IsSwitch() {
			ask("if "+nodeName(l.to.Node())+" goes", key(l.to.Node()))
		}
	}
	return nil
}

// sameWay reports whether back crosses the links in the other order.
func sameWay(links, back []crossed) bool {
	if len(links) != len(back) {
		return false
	}
	for i, l := range links {
		if back[len(back)-1-i].from != l.to {
			return false
		}
	}
	return true
}

// samePort returns the port in another fabric; nil: it has none.
func samePort(f *fabric.Fabric, p *fabric.Port) *fabric.Port {
	if f == nil || p.Node().Fabric() == f {
		return p
	}
	if nodes := f.NodeByGUID(p.Node().GUID()); len(nodes) > 0 {
		return nodes[0].Port(p.Num())
	}
	return nil
}

// figuresOfHop sets what was counted at both ends of a link.
func (v *view) figuresOfHop(h *hopView, p *fabric.Port) {
	if f, ok := v.moment.figuresOf(p); ok && !math.IsNaN(float64(f.load)) {
		h.Percent = min(100, int(math.Round(float64(100*f.load))))
		h.Load = fmt.Sprintf("%d %%", h.Percent)
	}
	sum, known := 0.0, false
	for _, e := range []*fabric.Port{p, p.Peer()} {
		if e == nil {
			continue
		}
		if f, ok := v.moment.figuresOf(e); ok && !math.IsNaN(float64(f.errors)) {
			sum, known = sum+float64(f.errors), true
		}
	}
	if known {
		h.Errors = number(int(sum))
	}
}

// laneOn returns the virtual lane of packets on a link.
func laneOn(t *Tables, p *routes.Path, l crossed) string {
	if t.Routes.SL2VL != nil && l.from.Node().IsSwitch() {
		for _, h := range p.Hops {
			if p.Graph().Switches()[h.Switch] == l.from.Node() {
				return fmt.Sprintf("VL %d", h.VL)
			}
		}
	}
	if info := l.from.Info(); info != nil && info.OperationalVLs == 1 {
		return "VL 0" // the only one of the link
	}
	return "not read"
}

// choicesAt returns the ports that switches choose from after so many links; "": none chooses.
func choicesAt(p *routes.Path, step int) string {
	if step < 0 || step >= len(p.Steps) {
		return ""
	}
	most, switches := "", len(p.Steps[step])
	for i := range p.Steps[step] {
		x := &p.Steps[step][i]
		if n := x.Ports.Len(); n > 1 && most == "" {
			most = fmt.Sprintf("ports %v of %s", x.Ports, nodeName(p.Graph().Switches()[x.Switch]))
		}
	}
	if most != "" && switches > 1 {
		most += fmt.Sprintf(", and %d other switches", switches-1)
	}
	return most
}

// choiceView is a switch on a path that chooses among ports.
type choiceView struct {
	Switch choice
	Ports  []hopView
}

// maxChoices limits the switches with choices that a page shows.
const maxChoices = 4

// choicesOf returns the switches on the static path that choose among ports, with the state and the load of
// each port.
func (v *view) choicesOf(p *routes.Path, loads []int64) (list []choiceView) {
	g := p.Graph()
	for _, h := range p.Hops {
		for _, step := range p.Steps {
			for i := range step {
				x := &step[i]
				if x.Switch != h.Switch || x.In != h.In || x.Ports.Len() < 2 || len(list) == maxChoices {
					continue
				}
				n := g.Switches()[x.Switch]
				c := choiceView{Switch: choice{Text: nodeName(n), URL: v.nodeURL(n)}}
				for num := range x.Ports.All() {
					out := n.Port(int(num))
					if out == nil || out.Peer() == nil {
						continue
					}
					row := hopView{From: choice{Text: out.Name()}, To: choice{Text: nodeName(out.Peer().Node())}, URL: v.linkURL(out), Percent: -1, Load: "not read", Errors: "not read", State: "not in the reading that is shown", Mark: isNone}
					if num == h.Out {
						row.Entry = "static"
					}
					if k := g.ChannelOf(out); k >= 0 && loads != nil {
						row.Routes = number(int(loads[k]))
					}
					if now := samePort(v.moment.fabric, out); now != nil {
						row.Mark = v.moment.stateOf(now)
						row.State = stateWords[row.Mark]
						v.figuresOfHop(&row, now)
					}
					c.Ports = append(c.Ports, row)
				}
				list = append(list, c)
			}
		}
	}
	return list
}

// stateWords are the states of links in words.
var stateWords = map[mark]string{isFine: "up", isSeen: "acknowledged", isNone: "not known", isSlow: "slow or a warning", isDown: "not active or an error"}

// stations sets the picture of a path.
func (d *pathsData) stations(v *view, from, to *fabric.Port, links []crossed) {
	at := from.Node()
	in := 0
	for i := 0; i <= len(links); i++ {
		x := station{Name: nodeName(at), URL: v.nodeURL(at), Switch: at.IsSwitch(), Last: i == len(links)}
		switch {
		case i == len(links) && in > 0:
			x.Ports = "in " + strconv.Itoa(in)
		case i < len(links) && in > 0:
			x.Ports = fmt.Sprintf("in %d, out %d", in, links[i].from.Num())
		case i < len(links):
			x.Ports = "out " + strconv.Itoa(links[i].from.Num())
		}
		if i < len(links) {
			h := d.Hops[i]
			x.Class = h.Mark.Class()
			if h.Percent >= 0 {
				x.Next = h.Load
			}
			at, in = links[i].to.Node(), links[i].to.Num()
		}
		d.Stations = append(d.Stations, x)
	}
}

// verdict states whether packets arrive, and what is wrong on the way.
func (d *pathsData) verdict(p *routes.Path, from, to *fabric.Port, worst mark, fullest int, slowest string) {
	a, b := nodeName(from.Node()), nodeName(to.Node())
	switch {
	case p.Broken != "":
		d.Class, d.Verdict = "down", fmt.Sprintf("Packets from %s do not reach %s: %s.", a, b, clean(p.Broken))
	case from == to || len(d.Hops) == 0:
		d.Verdict = fmt.Sprintf("%s and %s are the same port.", a, b)
		if from != to {
			d.Verdict = fmt.Sprintf("%s reaches %s without a link between two devices.", a, b)
		}
	default:
		d.Class, d.Verdict = worst.Class(), fmt.Sprintf("%s reaches %s over %s.", a, b, plural.Count(len(d.Hops), "link", "links"))
		switch {
		case worst == isDown:
			d.Verdict += " A link on the way is not active or has an error."
		case slowest != "":
			d.Verdict += " The link at " + slowest + " is slow."
		case worst == isSlow:
			d.Verdict += " A link on the way has a warning."
		case fullest >= 80:
			d.Class = "slow"
			d.Verdict += fmt.Sprintf(" One of them is %d %% full.", fullest)
		}
	}
}

// effect shows what the fabric loses without targets.
func (s *Site) effect(v *view, d *pathsData, t *Tables, targets []string) error {
	for _, x := range targets {
		if _, _, err := topology.FindPart(t.Fabric(), starlark.String(x)); err != nil {
			return v.missing(err, x, "without")
		}
	}
	e := &effectView{Name: clean(strings.Join(targets, ", ")), Aside: d.Verdict != ""}
	if s.jobsOf(v) == nil {
		e.Command = "fabsh report impact '" + strings.ReplaceAll(clean(targets[0]), "'", "") + "' --jobs FILE"
	}
	d.Effect = e
	x, err := s.impact(v, t, targets)
	var target *remedies.TargetError
	switch {
	case errors.Is(err, errPending):
		e.Class, e.Verdict = "none", "The prediction is still being computed. Reload this page in a few seconds."
		return nil
	case errors.As(err, &target):
		return notFound("without: %v", err)
	case err != nil:
		var busy *pageError
		if errors.As(err, &busy) {
			return busy
		}
		e.Class, e.Verdict = "none", "Not predicted: "+clean(err.Error())+"."
		return nil
	}
	x, e.Jobs, _ = s.withJobs(v, t, x) // the page states an error
	e.fill(x)
	e.Jobs.fact(e)
	return nil
}

// fill sets the effect of a prediction.
func (e *effectView) fill(x *remedies.Impact) {
	f := x.Effect
	e.Name = clean(joined(x.Targets()))
	gone := len(x.HostsLost)
	switch {
	case f.Lost == 0 && f.CreditLoop == "" && gone == 0:
		e.Verdict = "No pair of hosts loses its path."
	case f.Lost == 0 && gone == 0:
		e.Class, e.Verdict = "down", "No pair loses its path, but packets could deadlock."
	case gone > 0:
		e.Class, e.Verdict = "down", plural.Count(gone, "host loses its last link", "hosts lose their last link")+"."
	default:
		e.Class, e.Verdict = "down", plural.Count(int(f.Lost), "pair loses its path", "pairs lose their path")+"."
	}
	if e.Class == "" && (len(x.HostsDegraded) > 0 || f.LoadAfter > f.LoadBefore) {
		e.Class = "slow"
	}
	add := func(key, text string, k mark) { e.Facts = append(e.Facts, item{Key: key, Text: text, Mark: k}) }
	state := func(bad bool) mark {
		if bad {
			return isDown
		}
		return isFine
	}
	add("Links that go", plural.Count(len(f.Links), "link", "links")+": "+clean(joined(f.Links)), isFine)
	then := ""
	if f.Managed && f.Through > 0 {
		then = "; their packets are lost until the subnet manager writes new tables"
	}
	add("Pairs over them", number(int(f.Through))+then, isFine)
	add("Pairs lost", number(int(f.Lost)), state(f.Lost > 0))
	if f.Managed {
		add("Pairs rerouted", number(int(f.Rerouted)), isFine)
	}
	if f.OutOfReach > 0 {
		add("Out of reach", number(int(f.OutOfReach))+" pairs, of the subnet manager", isDown)
	}
	load := isFine
	if f.LoadAfter > f.LoadBefore {
		load = isSlow
	}
	add("Largest load", fmt.Sprintf("%s now, %s then", number(int(f.LoadBefore)), number(int(f.LoadAfter))), load)
	switch {
	case f.CreditLoop != "" && f.LoopBefore:
		add("Deadlock", clean(f.CreditLoop)+", as now", isSlow)
	case f.CreditLoop != "":
		add("Deadlock", "possible: "+clean(f.CreditLoop), isDown)
	default:
		add("Deadlock", "none predicted", isFine)
	}
	if list := x.CutOff(); len(list) > 0 {
		add("Cut off", clean(joined(list)), isDown)
	}
	if gone > 0 {
		add("Hosts lost", fmt.Sprintf("%d: %s", gone, clean(clipped(hosts.Fold(x.HostsLost)))), isDown)
	}
	if n := len(x.HostsDegraded); n > 0 {
		add("Hosts with less", fmt.Sprintf("%d: %s", n, clean(clipped(hosts.Fold(x.HostsDegraded)))), isSlow)
	}
	idle := slices.DeleteFunc(slices.Clone(f.IdleSwitches), func(name string) bool { return slices.Contains(x.Targets(), name) })
	if len(idle) > 0 {
		add("Out of use", clean(joined(idle)), isSlow)
	}
	if f.Needed != "" {
		add("Needed", clean(f.Needed)+" by the subnet manager or the host of fabsh", isDown)
	}
	if f.Basis != "" {
		e.Notes = append(e.Notes, "New tables: "+clean(f.Basis)+".")
	}
	for _, n := range f.Notes {
		e.Notes = append(e.Notes, clean(n))
	}
	if !f.Managed {
		e.Notes = append(e.Notes, "No subnet manager is known, so no tables are written.")
	}
}

// joined joins a few of names.
func joined(list []string) string {
	if len(list) > 4 {
		return strings.Join(list[:4], ", ") + fmt.Sprintf(" and %d more", len(list)-4)
	}
	return strings.Join(list, ", ")
}

// clipped returns the begin of a long text.
func clipped(text string) string {
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return text
}
