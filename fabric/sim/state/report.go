package state

import "fabsh/mad"

// reportKey is an attribute that a node reports, with the modifier of the request.
type reportKey struct {
	attr     *mad.Attribute
	modifier uint32
}

// SetReport changes the answers of node n to Gets of an attribute from now on, beside earlier
// changes. An attribute that its agent does not have is 0 before the change.
func (n *Node) SetReport(a *mad.Attribute, modifier uint32, change func(data []byte)) {
	if n.reports == nil {
		n.reports = map[reportKey]func(data []byte){}
	}
	key := reportKey{a, modifier}
	if before := n.reports[key]; before != nil {
		n.reports[key] = func(data []byte) {
			before(data)
			change(data)
		}
		return
	}
	n.reports[key] = change
}

// Report is the answer to a Get of an attribute: data and status of the agent, with the
// changes of SetReport.
func (n *Node) Report(a *mad.Attribute, modifier uint32, data []byte, status mad.Status) mad.Status {
	change := n.reports[reportKey{a, modifier}]
	if change == nil {
		return status
	}
	if status != mad.StatusOK {
		clear(data)
	}
	change(data)
	return mad.StatusOK
}
