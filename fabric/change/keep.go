package change

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

// PKeys reads the P_Key tables of ports of hosts. Ports whose table was not read are missing.
type PKeys func(ctx context.Context, ports []*fabric.Port) (map[*fabric.Port][]uint16, error)

// KeptPorts are ports of hosts whose links go down.
type KeptPorts struct {
	// By has, for ports whose host keeps its paths, the port of the host that keeps them.
	By map[*fabric.Port]*fabric.Port
	// whys has, for other ports, why further ports of the host do not keep its paths; no entry: it
	// has no further port with a link.
	whys map[*fabric.Port][]string
}

// KeepPorts returns the ports of hosts whose links are down, as those of both ends in down: of each,
// whether the host keeps another port that is active, connected to the same switches, and a member of
// all its partitions. Adapters are of one host if their names begin with the same host, or, where a
// name identifies none, if they have the same SystemImageGUID. A port whose P_Key table was not read
// keeps nothing. keys is called only if it matters; nil: no table can be read. unfit returns another
// reason why a port does not keep the paths of a lost one ("node-1 HCA-2/1 is in its test"), "" without;
// nil: no other reason exists.
func KeepPorts(ctx context.Context, f *fabric.Fabric, down map[*fabric.Port]bool, keys PKeys, unfit func(lost, other *fabric.Port) string) (*KeptPorts, error) {
	k := &KeptPorts{By: map[*fabric.Port]*fabric.Port{}, whys: map[*fabric.Port][]string{}}
	var lost []*fabric.Port
	for p := range down {
		if isAdapter(p.Node()) && down[p] && p.Peer() != nil && p.Peer().Node().IsSwitch() {
			lost = append(lost, p)
		}
	}
	if len(lost) == 0 {
		return k, nil
	}
	slices.SortFunc(lost, func(a, b *fabric.Port) int { return cmp.Compare(a.ID(), b.ID()) })
	of, parts := adaptersByHost(f), switchParts(f, down)
	others, whys := map[*fabric.Port][]*fabric.Port{}, map[*fabric.Port][]string{}
	var read []*fabric.Port
	for _, p := range lost {
		for _, n := range of[p.Node()] {
			for q := range n.Ports() {
				switch why := ""; {
				case q == p || q.Peer() == nil || !q.Peer().Node().IsSwitch():
				case down[q]:
					whys[p] = append(whys[p], q.Name()+" goes down too")
				case q.State() != mad.PortStateActive || q.LID() == 0:
					if why = "its state was not read"; q.Info() != nil {
						why = fmt.Sprintf("its state is %v", q.State())
					}
					whys[p] = append(whys[p], fmt.Sprintf("%s is not used: %s", q.Name(), why))
				case parts[q.Peer().Node().ID()] != parts[p.Peer().Node().ID()]:
					whys[p] = append(whys[p], q.Name()+" is connected to other switches")
				default:
					others[p] = append(others[p], q)
				}
			}
		}
		if others[p] != nil {
			read = append(read, p)
			read = append(read, others[p]...)
		}
	}
	tables := map[*fabric.Port][]uint16{}
	if len(read) > 0 && keys != nil {
		slices.SortFunc(read, func(a, b *fabric.Port) int { return cmp.Compare(a.ID(), b.ID()) })
		var err error
		if tables, err = keys(ctx, slices.Compact(read)); err != nil {
			return nil, err
		}
	}
	for _, p := range lost {
		for _, q := range others[p] {
			why := ""
			switch {
			case tables[p] == nil:
				why = fmt.Sprintf("%s: not judged: the P_Key table of %s was not read", q.Name(), p.Name())
			case tables[q] == nil:
				why = q.Name() + ": not judged: its P_Key table was not read"
			default:
				why = lacking(q, tables[p], tables[q])
			}
			if why == "" && unfit != nil {
				why = unfit(p, q)
			}
			if why == "" {
				k.By[p] = q
				break
			}
			whys[p] = append(whys[p], why)
		}
		if k.By[p] == nil && whys[p] != nil {
			k.whys[p] = whys[p]
		}
	}
	return k, nil
}

// all reports whether all links of a node are down, and its host keeps their paths.
func (k *KeptPorts) all(n *fabric.Node, down map[*fabric.Port]bool) bool {
	if k == nil || len(k.By) == 0 || n.IsSwitch() {
		return false
	}
	lost := false
	for p := range n.Ports() {
		if p.Peer() != nil && (!down[p] || k.By[p] == nil) {
			return false
		}
		lost = lost || down[p]
	}
	return lost
}

// Why returns why no other ports of their hosts keep the paths of ports that go down; "": they have none,
// or it is kept.
func (k *KeptPorts) Why(ports ...*fabric.Port) string {
	var all []string
	for _, p := range ports {
		for _, why := range k.whys[p] {
			if !slices.Contains(all, why) {
				all = append(all, why)
			}
		}
	}
	const most = 4 // that a line should have
	if n := len(all) - most; n > 0 {
		all = append(all[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

// inOrder returns ports by their ids.
func inOrder(ports map[*fabric.Port]bool) []*fabric.Port {
	return slices.SortedFunc(maps.Keys(ports), func(a, b *fabric.Port) int { return cmp.Compare(a.ID(), b.ID()) })
}

// isAdapter reports whether a node is an adapter of a host.
func isAdapter(n *fabric.Node) bool {
	return n.Type() == mad.NodeTypeCA && n.Kind() != fabric.KindAggregation
}

// adaptersByHost returns, for each adapter, those of its host, itself included. An adapter of a name
// that several have, or that identifies no host, is of the host that alone has its SystemImageGUID.
func adaptersByHost(f *fabric.Fabric) map[*fabric.Node][]*fabric.Node {
	hosts := map[string][]*fabric.Node{}
	systems := map[mad.GUID]string{} // hosts by SystemImageGUID; "": several have it
	var rest []*fabric.Node
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if !isAdapter(n) {
			continue
		}
		name, ok := fabric.HostName(n.Name())
		if !ok || len(f.NodeByName(n.Name())) > 1 {
			rest = append(rest, n)
			continue
		}
		hosts[name] = append(hosts[name], n)
		image := n.Info().SystemImageGUID
		if host, known := systems[image]; known && host != name {
			name = ""
		}
		systems[image] = name
	}
	for _, n := range rest {
		image := n.Info().SystemImageGUID
		host, known := systems[image]
		switch {
		case image == 0 || known && host == "":
			host = " " + n.GUID().String() // alone
		case !known:
			host = " " + image.String()
		}
		hosts[host] = append(hosts[host], n)
	}
	of := map[*fabric.Node][]*fabric.Node{}
	for _, list := range hosts {
		for _, n := range list {
			of[n] = list
		}
	}
	return of
}

// fullMember marks a P_Key of a full member (IBA 10.9.2): limited members reach full ones only.
const fullMember = 0x8000

// lacking describes a partition of a P_Key table in which port q, which has the other one, has not
// the same membership, or a full one; "": no partition differs.
func lacking(q *fabric.Port, table, other []uint16) string {
	has := map[uint16]uint16{}
	for _, key := range other {
		has[key&^fullMember] |= key
	}
	keys := slices.Clone(table)
	slices.SortFunc(keys, func(a, b uint16) int {
		return cmp.Or(cmp.Compare(a&^fullMember, b&^fullMember), cmp.Compare(b, a))
	})
	for _, key := range keys {
		switch base := key &^ fullMember; {
		case base == 0:
		case has[base] == 0:
			return fmt.Sprintf("%s lacks P_Key 0x%04x", q.Name(), key)
		case key&fullMember > has[base]&fullMember:
			return fmt.Sprintf("%s is only a limited member of 0x%04x", q.Name(), base)
		}
	}
	return ""
}

// downPorts returns both ends of the links that changes take down, permanently or to train again.
func downPorts(f *fabric.Fabric, changes []certificate.Change) map[*fabric.Port]bool {
	down := map[*fabric.Port]bool{}
	for i := range changes {
		if p, _ := takenDown(f, &changes[i]); p != nil && p.Peer() != nil {
			down[p], down[p.Peer()] = true, true
		}
	}
	return down
}

// KeptBy returns what hosts keep of the links that changes take down.
func KeptBy(ctx context.Context, f *fabric.Fabric, changes []certificate.Change, keys PKeys) (*KeptPorts, error) {
	return KeepPorts(ctx, f, downPorts(f, changes), keys, nil)
}
