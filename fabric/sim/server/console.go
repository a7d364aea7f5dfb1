package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// ErrQuit is returned by Serve when the console has ended it.
var ErrQuit = errors.New("quit")

// maxCommand is the longest line of the console, in bytes.
const maxCommand = 4096

// console executes the commands of ibsim's console (linux-rdma/ibsim
// ibsim/sim_cmd.c), with its words: scripts for ibsim work here.
type console struct {
	*Server
	out *bufio.Writer
}

// command is a command of the console; the words behind it are args. An error is
// written as a comment.
type command struct {
	name, usage string
	run         func(c *console, args string) error
}

// commands lists all commands.
func commands() []command {
	return []command{
		{"Help", "Help", (*console).help},
		{"?", "", (*console).help},
		{"Dump", `Dump ["nodeid"]`, (*console).dump},
		{"Route", "Route <from-lid> <to-lid>", (*console).route},
		{"Link", `Link "nodeid"[port] "remoteid"[port]`, (*console).link},
		{"ReLink", `ReLink "nodeid"[port], or all that Unlink has taken of it: ReLink "nodeid"`, (*console).relink},
		{"Unlink", `Unlink "nodeid"[port], or all: Unlink "nodeid"`, (*console).unlink},
		{"Clear", `Clear "nodeid"[port], or all: Clear "nodeid": unlink, and forget the LIDs`, (*console).clear},
		{"Guid", `Guid "nodeid" <guid>, or of a port: Guid "nodeid"[port] <guid>`, (*console).guid},
		{"Error", `Error "nodeid"[port] <percent> [attribute id]: lose packets; 0: lose none`, (*console).error},
		{"PerformanceSet", `PerformanceSet "nodeid"[port] PortCounters.SymbolErrorCounter=<value>`, (*console).counter},
		{"Set", "", (*console).counter},
		{"Baselid", `Baselid "nodeid"[port] <lid> [lmc]`, (*console).baseLID},
		{"Attached", "Attached", (*console).attached},
		{"X", "X <client number>: detach it", (*console).detach},
		{"Wait", "Wait <seconds>", (*console).wait},
		{"Verbose", "", (*console).nothing},
		{"Start", "", (*console).nothing},
		{"Quit", "Quit", func(*console, string) error { return ErrQuit }},
	}
}

// Console executes commands, a line each, until the input ends. Serve must run.
func (s *Server) Console(in io.Reader, out io.Writer) {
	c := &console{s, bufio.NewWriter(out)}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, maxCommand), maxCommand)
	c.prompt()
	for lines.Scan() {
		var err error
		if !s.Do(func() { err = c.execute(lines.Text()) }) {
			return
		}
		switch {
		case errors.Is(err, ErrQuit):
			fmt.Fprintln(c.out, "Exiting network simulator.")
			c.out.Flush()
			s.quit()
			return
		case err != nil:
			fmt.Fprintf(c.out, "# %v\n", err)
		}
		c.prompt()
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintf(c.out, "# the console ends: %v\n", err)
		c.out.Flush()
	}
}

func (c *console) prompt() {
	c.out.WriteString("sim> ")
	c.out.Flush()
}

func (c *console) execute(line string) error {
	line = strings.TrimSpace(line)
	word, args, _ := strings.Cut(line, " ")
	switch {
	case line == "":
		return nil
	case line[0] == '#':
		c.out.WriteString(line) // as ibsim, without the end of the line
		return nil
	}
	var names []string
	for _, cmd := range commands() {
		if strings.EqualFold(cmd.name, word) {
			return cmd.run(c, strings.TrimSpace(args))
		}
		names = append(names, cmd.name)
	}
	fmt.Fprintf(c.out, "command %q unknown - skipped%s\n", fabric.Clip(line), fabric.DidYouMean(word, names))
	return nil
}

func (c *console) help(string) error {
	c.out.WriteString("sim: the commands of ibsim's console; node ids stand in quotes\n")
	for _, cmd := range commands() {
		if cmd.usage != "" {
			fmt.Fprintf(c.out, "\t%s\n", cmd.usage)
		}
	}
	return nil
}

// nothing is the function of commands that have no effect here.
func (c *console) nothing(string) error { return nil }

// target returns a node, a port (-1: not given), and the rest of the line.
func (c *console) target(args string) (at sim.End, id, rest string, err error) {
	if !strings.HasPrefix(args, `"`) {
		return at, "", "", fmt.Errorf("expected a node id in quotes: %q", fabric.Clip(args))
	}
	id, rest, ok := strings.Cut(args[1:], `"`)
	if !ok {
		return at, "", "", fmt.Errorf("expected a quote at the end of the node id: %q", fabric.Clip(args))
	}
	at = sim.End{Num: -1}
	if at.Node, err = c.names.Find(id); err != nil || id == "" {
		return at, id, "", fmt.Errorf("nodeid %q not found%s", fabric.Clip(id), fabric.DidYouMean(id, c.names.IDs))
	}
	if strings.HasPrefix(rest, "[") {
		num, behind, ok := strings.Cut(rest[1:], "]")
		at.Num, err = strconv.Atoi(strings.TrimSpace(num))
		if !ok || err != nil || at.Num < 0 || at.Num > int(c.subnet.View(at.Node).Info.NumPorts) {
			return at, id, "", fmt.Errorf("nodeid %q: bad port %q", fabric.Clip(id), fabric.Clip(num))
		}
		rest = behind
	}
	return at, id, strings.TrimSpace(rest), nil
}

// each calls f for the port that args name, or for all ports of the node; in the latter
// case it skips ports for which f fails.
func (c *console) each(args string, f func(sim.End) error) error {
	at, id, _, err := c.target(args)
	if err != nil {
		return err
	}
	if at.Num >= 0 {
		if err := f(at); err != nil {
			return fmt.Errorf("port %d at nodeid %q %w", at.Num, fabric.Clip(id), err)
		}
		return nil
	}
	for num := 1; num <= int(c.subnet.View(at.Node).Info.NumPorts); num++ {
		f(sim.End{Node: at.Node, Num: num})
	}
	return nil
}

func (c *console) unlink(args string) error { return c.each(args, c.subnet.Cables.Pull) }
func (c *console) relink(args string) error { return c.each(args, c.subnet.Cables.Plug) }

func (c *console) clear(args string) error {
	return c.each(args, func(at sim.End) error {
		c.subnet.Cables.Pull(at) // it need not be linked
		return c.subnet.Edit.Reset(at)
	})
}

func (c *console) link(args string) error {
	a, _, rest, err := c.target(args)
	if err != nil {
		return err
	}
	b, _, _, err := c.target(rest)
	if err != nil {
		return err
	}
	if err := c.subnet.Cables.Connect(a, b); err != nil {
		return fmt.Errorf("can't link: a port %w", err)
	}
	return nil
}

func (c *console) guid(args string) error {
	at, id, rest, err := c.target(args)
	if err != nil {
		return err
	}
	guid, err := strconv.ParseUint(rest, 0, 64)
	if err != nil {
		return fmt.Errorf("nodeid %q: expected a GUID, as 0x2c9000100010001: %q", fabric.Clip(id), fabric.Clip(rest))
	}
	at.Num = max(at.Num, 0)
	return c.subnet.Edit.GUID(at, mad.GUID(guid))
}

func (c *console) error(args string) error {
	at, _, rest, err := c.target(args)
	if err != nil {
		return err
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return errors.New("error rate is missing")
	}
	percent, err := strconv.Atoi(words[0])
	if err != nil || percent < 0 || percent > 100 {
		return fmt.Errorf("error rate must be in [0..100] range (%q)", fabric.Clip(words[0]))
	}
	var attr uint64
	if len(words) > 1 {
		if attr, err = strconv.ParseUint(words[1], 0, 16); err != nil {
			return fmt.Errorf("expected the id of an attribute, as 21 for PortInfo: %q", fabric.Clip(words[1]))
		}
	}
	if at.Num >= 0 {
		return c.subnet.Faults.LosePackets(at, percent, mad.AttributeID(attr))
	}
	for num := range int(c.subnet.View(at.Node).Info.NumPorts) + 1 {
		c.subnet.Faults.LosePackets(sim.End{Node: at.Node, Num: num}, percent, mad.AttributeID(attr))
	}
	return nil
}

func (c *console) counter(args string) error {
	at, id, rest, err := c.target(args)
	if err != nil {
		return err
	}
	attr, assignment, ok := strings.Cut(rest, ".")
	field, text, isSet := strings.Cut(assignment, "=")
	value, bad := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
	field = strings.TrimSpace(field)
	switch {
	case at.Num < 0:
		return errors.New("port number not found in command")
	case !ok || !isSet:
		return errors.New(`command does not match: PerformanceSet "nodeid"[port] [attribute].[field]=[value]`)
	case bad != nil:
		return fmt.Errorf("value %q is not valid integer", fabric.Clip(text))
	}
	set, err := c.subnet.Counters.SetByName(at, attr, field, value)
	if err == nil {
		fmt.Fprintf(c.out, "%s[%d] %s.%s has been set to %d\n", id, at.Num, attr, field, set)
	}
	return err
}

func (c *console) baseLID(args string) error {
	at, _, rest, err := c.target(args)
	words := strings.Fields(rest)
	switch {
	case err != nil:
		return err
	case at.Num < 0:
		return errors.New("change baselid: missing portnum")
	case len(words) == 0:
		return errors.New("change baselid: bad lid")
	}
	lid, err := strconv.ParseUint(words[0], 0, 16)
	if err != nil {
		return errors.New("change baselid: bad lid")
	}
	var lmc uint64
	if len(words) > 1 {
		if lmc, err = strconv.ParseUint(words[1], 0, 8); err != nil {
			return errors.New("change baselid: bad lmc")
		}
	}
	return c.subnet.Edit.LID(at, mad.LID(lid), uint8(lmc))
}

func (c *console) attached(string) error {
	for _, cl := range c.clients {
		if cl != nil {
			lid, _ := cl.Port()
			sm := ""
			if cl.IsSM() {
				sm = "SM"
			}
			fmt.Fprintf(c.out, "Client %d: pid %d connected at %q port 0x%x, lid %d, qp %d %s\n", cl.Slot(), cl.id, cl.node, uint64(cl.GUID()), lid, cl.QP(), sm)
		}
	}
	return nil
}

func (c *console) detach(args string) error {
	slot, err := strconv.Atoi(args)
	if err != nil || slot < 0 || slot >= len(c.clients) || c.clients[slot] == nil {
		return fmt.Errorf("disconnect client: bad clientid %q", fabric.Clip(args))
	}
	c.drop(c.clients[slot], "the console has detached it")
	return nil
}

// wait stops the whole subnet, like ibsim's.
func (c *console) wait(args string) error {
	sec, err := strconv.Atoi(args)
	if err != nil || sec <= 0 || sec > 3600 {
		return fmt.Errorf("wait: bad param %q", fabric.Clip(args))
	}
	time.Sleep(time.Duration(sec) * time.Second)
	return nil
}

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
