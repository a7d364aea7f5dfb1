package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/fabric/format"
	"fabsh/fabric/hosts"
	"fabsh/shell/session"
)

const nodesDoc = `-o nodes reports hosts instead of findings: ok, degraded, unhealthy or unknown, with
reasons. A host is the first word of its adapters' names. It is unknown, never ok, if
an audit did not run, a check that concerns hosts was not done, it or what it is linked
to did not answer, two adapters in different systems have its name, or the fabric does
not have it (--hosts, --baseline). What is known to be wrong counts more than what is
unknown. Acknowledged findings do not count. The exit status is 3 also if a host is
unknown, or no host was found. The first rule that applies to a finding counts:
`

// nodesOptions are the options of audit -o nodes.
type nodesOptions struct {
	on      bool
	as      lang.Format            // for people and scripts
	program *hosts.SchedulerFormat // nil: as
	resume  string                 // the file of drained nodes
	hosts   []string               // nil: all

	drained []hosts.Drained // in that file
}

// nodesFormats are the values of --for besides hosts.SchedulerFormats.
var nodesFormats = []lang.Format{lang.FormatText, lang.FormatJSON, lang.FormatJSONL, lang.FormatCSV}

// flags declares the flags.
func (o *nodesOptions) flags(f *pflag.FlagSet) {
	names := nodesPrograms()
	f.Func("for", "with -o nodes: write for `PROGRAM`: "+strings.Join(names, ", ")+" (default: text)", func(text string) (err error) {
		o.program, o.as = nil, lang.Format(text)
		if !slices.Contains(nodesFormats, o.as) {
			o.program, err = hosts.SchedulerFormatByName(text, names[:len(nodesFormats)]...)
		}
		return err
	})
	f.StringVar(&o.resume, "resume", "", "with --for slurm: also lift the drains of fabsh, if the host is ok and the check in the reason was done again, of the nodes in `FILE`: sinfo -a -h -N -o '%N %E', or scontrol show node --json; - reads standard input")
	f.Func("hosts", "with -o nodes: report only these hosts: a `LIST` in Slurm's notation, such as node[01-18]; one that is not in the fabric is unknown (with --for npd: one host; default: this one)", func(text string) (err error) {
		if o.hosts, err = hosts.Expand(text); err == nil && len(o.hosts) == 0 {
			err = errors.New("empty list")
		}
		return err
	})
}

// nodesPrograms are the values of --for.
func nodesPrograms() (names []string) {
	for _, f := range nodesFormats {
		names = append(names, string(f))
	}
	for _, f := range hosts.SchedulerFormats {
		names = append(names, f.Name)
	}
	return names
}

// checkNodes checks the options before a fabric is opened, and reads the file of --resume.
func (o *auditOptions) checkNodes(p *session.Program) error {
	n := &o.nodes
	n.on = p.Settings.TakeNodes()
	slurm := n.program != nil && n.program.Name == "slurm"
	switch {
	case !n.on && (n.program != nil || n.as != "" || n.resume != "" || n.hosts != nil):
		return errors.New("audit: --for, --resume and --hosts need -o nodes")
	case !n.on:
		return nil
	case o.cache != "":
		return errors.New("audit: --load-cache: not supported with -o nodes, which does not report states of a file as current")
	case n.resume != "" && !slurm:
		return errors.New("audit: --resume needs --for slurm")
	case n.isNPD() && len(n.hosts) > 1:
		return errors.New("audit: --hosts: --for npd is about one host")
	}
	if err := noTable(p, "audit", "-o nodes has no rows to select; use --hosts"); err != nil {
		return err
	}
	if n.isNPD() && n.hosts == nil {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("audit: the name of this host is unknown: %w; give --hosts NAME", err)
		}
		n.hosts = []string{name}
		if short, _, _ := strings.Cut(name, "."); short != name {
			n.hosts = append(n.hosts, short)
		}
	}
	if n.resume == "" {
		return nil
	}
	spec, _ := p.Settings.FabricSpec()
	if kind, _, _ := strings.Cut(spec, ":"); kind == "file" || kind == "replay" {
		return fmt.Errorf("audit: --resume: not supported with -F %s: it shows hosts as they were; use the fabric itself", kind)
	}
	text, err := n.readResume(p)
	if err != nil {
		return fmt.Errorf("audit: --resume: %w", err)
	}
	if n.drained, err = hosts.ReadDrained(text); err != nil {
		return fmt.Errorf("audit: --resume: %s: %w", n.resume, err)
	}
	return nil
}

func (n *nodesOptions) isNPD() bool { return n.program != nil && n.program.Name == "npd" }

// readResume reads the file of --resume, or standard input: longer than what ReadDrained accepts,
// if it is.
func (n *nodesOptions) readResume(p *session.Program) ([]byte, error) {
	in := io.Reader(p.Stdin)
	if n.resume != "-" {
		f, err := format.OpenRegular(n.resume)
		if err != nil {
			return nil, format.FileError(err)
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, hosts.MaxDrained+1))
}

// writeNodes writes the hosts of the reports.
func (r *auditResults) writeNodes(ctx context.Context, p *session.Program, o *auditOptions) error {
	n := &o.nodes
	report := hosts.Judge(r.reports, hosts.JudgeOptions{Names: n.hosts, Baseline: r.baseline, Missing: r.missing})
	r.unknown = report.Has(hosts.Unknown) || len(report.Hosts) == 0
	var text string
	var err error
	if n.program == nil {
		text, err = lang.Render(audits.WrapHealth(report, n.as), n.as)
	} else {
		out := hosts.Output{Drained: n.drained, Subnet: o.subnet}
		if n.isNPD() {
			out.Host = n.hosts[0]
			for _, name := range n.hosts { // the short name, if the fabric has only that
				if h := report.Host(name); h != nil && !h.Absent {
					out.Host = name
					break
				}
			}
			status := hosts.NPDStatus(report, out.Host)
			r.npd = &status
		}
		var refused []hosts.Refused
		text, refused = n.program.Write(report, out)
		for i, x := range refused {
			if i == maxRefused {
				p.Console.Complain(fmt.Sprintf("audit: %d more hosts not written", len(refused)-i))
				break
			}
			p.Console.Complain(fmt.Sprintf("audit: host %.80q: not written: %v", x.Name, x.Err))
		}
		if !n.isNPD() {
			r.complainUnnamed(p, report)
		}
	}
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	if o.out == "" {
		return write(p.Console.Out())
	}
	if err := session.WriteNamed(ctx, o.out, write); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// maxRefused is how many hosts are named that are not written.
const maxRefused = 8

// complainUnnamed names adapters whose hosts are not written, because they are unknown.
func (r *auditResults) complainUnnamed(p *session.Program, report *hosts.HealthReport) {
	for i, name := range report.Unnamed {
		if i == maxRefused {
			p.Console.Complain(fmt.Sprintf("audit: %d more adapters whose names do not name a host", len(report.Unnamed)-i))
			return
		}
		p.Console.Complain(fmt.Sprintf("audit: adapter %.80q: its name does not name a host; not written", name))
	}
}
