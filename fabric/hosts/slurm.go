package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
)

// slurmPrefix begins the reasons of fabsh's drains, of an unnamed subnet. Only these are lifted.
const slurmPrefix = "fabsh: "

// maxReason is the maximum length of a reason, in bytes: sinfo -R should show it in a line.
const maxReason = 160

// writeSlurm returns commands for a shell. Each one first reads the node's reason: a node that
// someone else has drained, or that Slurm does not have, stays as it was.
func writeSlurm(r *HealthReport, o *Output) (string, []Refused) {
	var b strings.Builder
	var refused []Refused
	prefix := slurmPrefix
	if o.Subnet != "" {
		prefix = "fabsh[" + o.Subnet + "]: "
	}
	lift := map[string]string{} // the checks of drains, by node; "": not to be lifted
	for _, d := range o.Drained {
		check := r.checkOf(d.Reason, prefix)
		if before, again := lift[d.Node]; again && before != check {
			check = ""
		}
		lift[d.Node] = check
	}
	for i := range r.Hosts {
		h := &r.Hosts[i]
		guards, change := "", ""
		switch {
		case o.drained(r, h): // sinfo prints "none" for a node without a reason
			guards = "none|" + shellQuote(prefix) + "*"
			change = "State=DRAIN Reason=" + shellQuote(prefix+printableASCII(h.summary(), maxReason-len(prefix)))
		case h.State == OK && lift[h.Name] != "":
			guards = shellQuote(prefix+lift[h.Name]+" ") + "*"
			change = "State=UNDRAIN" // unlike RESUME, it does not change a node that is also down
		default:
			continue
		}
		if err := checkSlurmName(h.Name); err != nil {
			refused = append(refused, Refused{h.Name, err})
			continue
		}
		b.WriteString(`case "$(sinfo -a -h -n ` + h.Name + ` -o %E)" in ` + guards + ") scontrol update NodeName=" + h.Name + " " + change + " ;; esac\n")
	}
	return b.String(), refused
}

// checkOf returns the check in the reason of a drain, the check of its worst finding. It is "" if
// the reason has another prefix, or if some run did not do the check, and so cannot lift the drain.
// An audit that declares no checks did all checks that begin with its name.
func (r *HealthReport) checkOf(reason, prefix string) string {
	text, _ := strings.CutPrefix(reason, prefix)
	word, _, _ := strings.Cut(text, " ")
	check, _, ofHost := strings.Cut(word, ":")
	audit, _, _ := strings.Cut(check, ".")
	switch {
	case text != reason && ofHost && r.didAll(fromFabric[check]): // an ID: set by fabsh_health.sh
		return word
	case text != reason && word == absentWord:
		return word
	}
	if text == reason || !slices.Contains(r.Judged, check) && !slices.Contains(r.Judged, audit) {
		return ""
	}
	return check
}

// didAll reports whether all checks were done, and there are some.
func (r *HealthReport) didAll(checks string) bool {
	for check := range strings.FieldsSeq(checks) {
		if !slices.Contains(r.Judged, check) {
			return false
		}
	}
	return checks != ""
}

// fromFabric are the checks of audits of a fabric that show the same faults as a check of audit
// host. Other checks of audit host read what only the host knows.
var fromFabric = map[string]string{
	"host.down": "link.down", "host.init": "link.init", "host.width": "link.width", "host.speed": "link.speed",
	"host.lid": "lid.zero lid.dup", "host.dup": "guid.dup lid.dup", "host.flap": "link.flap", "host.downed": "ctr.downed",
	"host.errors": "ctr.ber ctr.rcv",
}

// absentWord begins the reasons of hosts that are not in the fabric.
const absentWord = "not"

// Drained is a node with the reason that Slurm has for its state.
type Drained struct{ Node, Reason string }

// MaxDrained is the maximum length of a list of nodes, in bytes: scontrol writes about 3 KB for
// each.
const MaxDrained = 256 << 20

// ReadDrained reads the nodes of Slurm with their reasons: the output of
// sinfo -a -h -N -o '%N %E', or of scontrol show node --json.
func ReadDrained(text []byte) ([]Drained, error) {
	if len(text) > MaxDrained {
		return nil, fmt.Errorf("more than %d MB", MaxDrained>>20)
	}
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '{' {
		return readDrainedJSON(text)
	}
	var list []Drained
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		node, reason, ok := strings.Cut(line, " ")
		if !ok || node == "" || strings.ContainsAny(node, "[],") {
			shown := line
			if fabric.HoldsKey(line) {
				shown = fabric.HiddenLine
			}
			return nil, fmt.Errorf("line %d: want NODE REASON, got %.60q; use sinfo -a -h -N -o '%%N %%E', or scontrol show node --json", n, shown)
		}
		list = append(list, Drained{node, strings.TrimLeft(reason, " ")})
	}
	return list, nil
}

func readDrainedJSON(text []byte) ([]Drained, error) {
	var doc struct {
		Nodes []struct {
			Name   string `json:"name"`
			Reason string `json:"reason"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if doc.Nodes == nil {
		return nil, errors.New(`JSON without "nodes"; use scontrol show node --json`)
	}
	var list []Drained
	for _, n := range doc.Nodes {
		list = append(list, Drained{n.Name, n.Reason})
	}
	return list, nil
}
