package serve

import (
	"html/template"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// findData is what a search found.
type findData struct {
	Words string
	Items []choice
	More  int
}

// find leads to what a word names: a node, a port, a LID, a cable, a check; or lists nodes whose names
// have it.
func (s *Site) find(v *view) error {
	v.Template, v.Title = "find", "Search"
	words := strings.TrimSpace(v.query.Get("q"))
	d := &findData{Words: clean(words)}
	v.Data = d
	f := v.moment.fabric
	if words == "" || f == nil {
		return nil
	}
	if u := v.exact(f, words); u != "" {
		return &redirect{u}
	}
	if s.Explain(words) != "" {
		return &redirect{v.to("help", "check", words)}
	}
	if h, err := s.historyStore(v.ctx); err == nil {
		if life, err := h.CableLife(v.ctx, words); err == nil && len(life.Spans) > 0 {
			return &redirect{v.to("cable", words)}
		}
	}
	lower := strings.ToLower(words)
	nodes := f.Nodes()
	for i := range nodes {
		n := &nodes[i]
		if !strings.Contains(strings.ToLower(n.Name()), lower) && !strings.Contains(n.GUID().String(), lower) {
			continue
		}
		if len(d.Items) == maxRows {
			d.More++
			continue
		}
		d.Items = append(d.Items, choice{Text: nodeName(n), Note: n.GUID().String(), URL: v.nodeURL(n)})
	}
	if len(d.Items) == 1 {
		return &redirect{d.Items[0].URL}
	}
	slices.SortStableFunc(d.Items, func(a, b choice) int { return fabric.CompareNames(a.Text, b.Text) })
	if g := v.goneName(words); g != nil && len(f.NodeByGUID(g.Node)) == 0 {
		d.Items = append(d.Items, v.before(g))
	}
	if len(d.Items) == 0 {
		if near := fabric.Nearest(words, v.names()); near != "" {
			d.Items = append(d.Items, choice{Text: clean(near), Note: "the nearest name", URL: v.to("node", near)})
		}
	}
	return nil
}

// exact returns the address of what a word names exactly; "": nothing.
func (v *view) exact(f *fabric.Fabric, words string) template.URL {
	if list := f.NodeByName(words); len(list) > 0 {
		if len(list) == 1 {
			return v.nodeURL(list[0])
		}
		return v.to("node", words)
	}
	if guid, err := strconv.ParseUint(words, 0, 64); err == nil && strings.HasPrefix(words, "0x") {
		if list := f.NodeByGUID(mad.GUID(guid)); len(list) == 1 {
			return v.nodeURL(list[0])
		}
		if list := f.PortByGUID(mad.GUID(guid)); len(list) > 0 {
			return v.linkURL(list[0])
		}
	}
	if i := strings.LastIndex(words, "/"); i > 0 {
		num, err := strconv.Atoi(words[i+1:])
		if list := f.NodeByName(words[:i]); err == nil && len(list) == 1 && list[0].Port(num) != nil {
			return v.linkURL(list[0].Port(num))
		}
	}
	if lid, err := strconv.ParseUint(words, 10, 16); err == nil {
		if p := f.PortByLID(mad.LID(lid)); p != nil {
			return v.nodeURL(p.Node())
		}
	}
	return ""
}
