package server

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// Words of ibsim's Dump, by the values in PortInfo.
var (
	stateWords = map[mad.PortState]string{mad.PortStateDown: "Down", mad.PortStateInitialize: "Init", mad.PortStateArmed: "Armed", mad.PortStateActive: "Active"}
	physWords  = map[mad.PortPhysicalState]string{1: "Sleep", 2: "Polling", 3: "Disabled", 4: "Training", 5: "LinkUp", 6: "ErrorRecovery"}
	typeWords  = map[mad.NodeType]string{mad.NodeTypeSwitch: "Switch", mad.NodeTypeCA: "Ca", mad.NodeTypeRouter: "Rt"}
	speedWords = map[string]string{"sdr": " 2.5G", "ddr": " 5.0G", "qdr": "10.0G", "fdr10": " FDR10", "fdr": " 14G", "edr": " 25G", "hdr": " 50G", "ndr": " 100G", "xdr": " 200G"}
)

func (c *console) dump(args string) error {
	only := -1
	if args != "" {
		at, _, _, err := c.target(args)
		if err != nil {
			return err
		}
		only = at.Node
	}
	fmt.Fprintf(c.out, "# Net status - %s\n", time.Now().Format(time.ANSIC))
	count := 0
	for i := range c.names.IDs {
		if only < 0 || i == only {
			c.dumpNode(i)
			count++
		}
	}
	fmt.Fprintf(c.out, "#  dumped %d nodes\n", count)
	return nil
}

func (c *console) dumpNode(i int) {
	v := c.subnet.View(i)
	fmt.Fprintf(c.out, "\n%s %d %q\tnodeguid %x\tsysimgguid %x\n", typeWords[v.Info.NodeType], v.Info.NumPorts, c.names.IDs[i],
		uint64(v.Info.NodeGUID), uint64(v.Info.SystemImageGUID))
	first := 1
	if v.Switch != nil {
		first = 0
		change := 0
		if v.Switch.PortStateChange {
			change = 1
		}
		top := int(v.Switch.LinearFDBTop)
		fmt.Fprintf(c.out, "#\tlinearcap %d FDBtop %d portchange %d\n", v.Switch.LinearFDBCap, top, change)
		for from := 0; from < top; from += 16 {
			to := min(from+15, top)
			fmt.Fprintf(c.out, "#\tForwarding table %d-%d:", from, to)
			for lid := from; lid <= to; lid++ {
				entry := uint8(mad.NoPort)
				if lid < len(v.LFT) {
					entry = v.LFT[lid]
				}
				fmt.Fprintf(c.out, " [%d]%X", lid, entry)
			}
			c.out.WriteByte('\n')
		}
	}
	for j := first; j < len(v.Ports); j++ {
		c.dumpPort(v, &v.Ports[j])
	}
}

func (c *console) dumpPort(v *sim.NodeView, p *sim.PortView) {
	guid := p.GUID
	if v.Switch != nil {
		guid = v.Ports[0].GUID
	}
	fmt.Fprintf(c.out, "%x\t[%d]\t", uint64(guid), p.Num)
	switch {
	case p.Info.PortState == mad.PortStateDown:
		c.out.WriteString("\t")
	case p.Peer.Node < 0:
		c.out.WriteString(`"Sma Port"[0]`)
	default:
		fmt.Fprintf(c.out, "%q[%d]", c.names.IDs[p.Peer.Node], p.Peer.Num)
	}
	if v.Switch == nil || p.Num == 0 {
		fmt.Fprintf(c.out, "\t lid %d lmc %d smlid %d", p.Info.LID, p.Info.LMC, p.Info.MasterSMLID)
	} else {
		c.out.WriteString("\t")
	}
	speed := mad.ActiveSpeed(&p.Info)
	if p.FDR10 && speed == "qdr" {
		speed = "fdr10"
	}
	fmt.Fprintf(c.out, " %3s %s %s/%s", mad.ActiveWidth(&p.Info), speedWords[speed], stateWords[p.Info.PortState], physWords[p.Info.PortPhysicalState])
	if p.Percent > 0 {
		fmt.Fprintf(c.out, "\t# err_rate %d", p.Percent)
		if p.Attr != 0 {
			fmt.Fprintf(c.out, "\t# err_attr %d", uint16(p.Attr))
		}
	}
	c.out.WriteByte('\n')
}

// maxRoute is how many hops Route follows.
const maxRoute = 64

// route follows the forwarding tables from one LID to another.
func (c *console) route(args string) error {
	words := strings.Fields(args)
	var lids [2]mad.LID
	for i := range lids {
		var n uint64
		var err error
		if i < len(words) {
			n, err = strconv.ParseUint(words[i], 0, 16)
		}
		if err != nil || n == 0 {
			return fmt.Errorf("bad lid value. Usage: route from-lid to-lid: %q", fabric.Clip(args))
		}
		lids[i] = mad.LID(n)
	}
	from, okFrom := c.subnet.Find(lids[0])
	to, okTo := c.subnet.Find(lids[1])
	if !okFrom || !okTo {
		return fmt.Errorf("to/from lid unconfigured. Usage: route from-lid to-lid")
	}
	at := from
	fmt.Fprintf(c.out, "From node %q port %d lid %d\n", c.names.IDs[at.Node], at.Num, lids[0])
	for hop := 0; at != to; hop++ {
		v := c.subnet.View(at.Node)
		exit := at.Num
		if v.Switch != nil {
			exit = int(mad.NoPort)
			if int(lids[1]) < len(v.LFT) && lids[1] <= mad.LID(v.Switch.LinearFDBTop) {
				exit = int(v.LFT[lids[1]])
			}
			if exit == 0 && to.Node == at.Node {
				at = to
				break
			}
		}
		switch {
		case hop == maxRoute:
			return fmt.Errorf("no route found after %d hops", maxRoute)
		case exit == 0 || exit >= len(v.Ports) || v.Switch == nil && hop > 0:
			return fmt.Errorf("bad forwarding table entry found at: node %q lid entry %d is %d", c.names.IDs[at.Node], lids[1], exit)
		case v.Ports[exit].Peer.Node < 0 || v.Ports[exit].Info.PortState != mad.PortStateActive:
			return fmt.Errorf("bad port state found: node %q port %d state %d", c.names.IDs[at.Node], exit, v.Ports[exit].Info.PortState)
		}
		at = v.Ports[exit].Peer
		fmt.Fprintf(c.out, "[%d] -> %q[%d]\n", exit, c.names.IDs[at.Node], at.Num)
	}
	fmt.Fprintf(c.out, "To node %q port %d lid %d\n", c.names.IDs[at.Node], at.Num, lids[1])
	return nil
}
