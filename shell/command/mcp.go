package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/help"
	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// mcpCommand serves agents.
func mcpCommand(p *session.Program, newRoot func(*session.Program) *cobra.Command) *cobra.Command {
	o := mcp.ServerOptions{Datagrams: mcp.DefaultDatagrams, SweepInterval: mcp.DefaultSweepInterval, Waiting: mcp.DefaultWaiting}
	every := session.Duration{Unit: time.Second, Units: "seconds", Value: o.SweepInterval}
	var served mcpServing
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve agents (Model Context Protocol) over standard input and output, or HTTP; read-only",
		Long: `Serve agents: programs with a language model that speak the Model Context Protocol
(MCP). A client starts fabsh mcp and exchanges messages with it over standard input and
output, a line for each; "fabsh help mcp-server" shows its configuration. With --listen
clients connect by streamable HTTP, at /mcp; /metrics has the metrics of the server
itself. An address other than loopback requires TLS and passwords (--web.config.file),
and requests of pages of other sites are refused.

Tools: find (nodes, hosts and ports by name), trace (a path), impact (of a loss), audit,
report, remedy (a plan only), diff, snapshots, history, topology, cabling, accept,
route_verify, plan, run (a script in Starlark), more (the rest of an answer) and help. --without removes tools or the sets
scripts (run), plans (plan, remedy) and files (diff, snapshots, history, cabling, accept).
Resources: the reference, the schemas of values, the guides, the examples, the latest
sweep, nodes and help topics by name, and the use of the server. Prompts: the five most
frequent questions.

Nothing changes the fabric: the engine sends only requests that read, without keys, and
--write is refused. plan and remedy return a plan; no tool applies it. Scripts and
tools read only what is part of fabsh, and files below the directories of -I; nothing is
written, and no state is kept. All tools use the fabric of -F.

The latest sweep, and the tables and counters read after it, are used again for 60 s, or
for max_age of a call; each answer has the age of its sweep, and of counters of earlier
calls. A second read of tables in a call reads them again; a call that reads counters
twice reads both times. Rates are always measured. An answer has at most 6 KB: lists are shortened to 20 rows, and more
pages through them.

One call runs at a time. Each is limited in time (--deadline, default 2m), memory
(--memory), steps of a script (--max-steps, default 200000000) and output (64 KiB).
If one step of a script takes all memory, or minutes, or the process that serves is
killed, the server starts again, at most once a minute: the call fails; the latest
sweep and the count of --datagrams are kept.
Names and other texts of the fabric are in fabric_data of a result and nowhere else.`,
		Example: `  fabsh -F sim mcp
  fabsh -I /srv/fabric/policies -F umad:mlx5_0/1 mcp --sweep-interval 30s --without scripts
  fabsh mcp --listen 127.0.0.1:9317 --log-calls`,
		Args: atMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			o.SweepInterval = every.Value
			if err := cmp.Or(checkMCP(p, o), served.check()); err != nil {
				return err
			}
			if !served.isWorker {
				return superviseMCP(p, &served)
			}
			go leaveWithSupervisor()
			return serveMCP(p, newRoot(p.Typed(nil)), o, &served)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&o.Datagrams, "datagrams", o.Datagrams, "send at most `N` datagrams per minute; a call that would exceed that is stopped")
	f.Var(&every, "sweep-interval", "sweep the fabric at most once in `TIME`: seconds, or a duration such as 500ms; a call waits for its turn")
	f.StringArrayVar(&served.listen, "listen", nil, "serve by streamable HTTP at `ADDRESS` instead of standard input and output, such as 127.0.0.1:9317 (repeatable)")
	f.StringVar(&served.config, "web.config.file", "", "read TLS, passwords and limits from `FILE`, the \"web configuration\" of Prometheus' exporter-toolkit")
	f.StringSliceVar(&o.Without, "without", nil, "do not offer the tools `NAMES`, or sets of them: scripts, plans, files")
	f.BoolVar(&served.logCalls, "log-calls", false, "write a line of JSON for each call to standard error: who, what, status, time, datagrams")
	f.BoolVar(&served.isWorker, workerFlag, false, "serve in this process, without a supervisor")
	f.MarkHidden(workerFlag)
	f.IntVar(&o.Waiting, "queue", o.Waiting, "let `N` calls wait while one runs, and refuse more")
	c.RegisterFlagCompletionFunc("without", cobra.FixedCompletions(toolSets, cobra.ShellCompDirectiveNoFileComp))
	c.MarkFlagFilename("web.config.file")
	return c
}

// refusedByMCP are the session flags that a server for agents refuses, and why.
var refusedByMCP = map[string]string{
	"write":        "the server only reads; a tool plans changes, and an operator applies them",
	"override-sm":  "the server only reads",
	"trap-agent":   "the server only reads",
	"plan":         "the tool plan returns plans",
	"keys":         "the server uses no keys",
	"out":          "scripts of clients write no files",
	"record":       "the server writes no files",
	"profile":      "the server writes no files",
	"virtual-time": "the limits are in real time",
	"format":       "results are JSON",
	"csv-raw":      "results are JSON",
	"where":        "scripts select rows",
	"columns":      "scripts select columns",
	"command":      "the tool run runs code",
}

// checkMCP finds contradictions before anything is opened.
func checkMCP(p *session.Program, o mcp.ServerOptions) error {
	var refused error
	p.Settings.Visit(func(f *pflag.Flag) {
		if why, ok := refusedByMCP[f.Name]; ok && refused == nil {
			refused = fmt.Errorf("--%s: not supported: %s; leave it out", f.Name, why)
		}
	})
	if refused != nil {
		return refused
	}
	switch {
	case o.Datagrams < 1:
		return errors.New("--datagrams: want 1 or more")
	case o.Waiting < 0:
		return errors.New("--queue: want 0 or more")
	}
	known := slices.Clone(toolSets)
	for _, t := range agentTools(p, &cobra.Command{}, nil) {
		known = append(known, t.Name)
	}
	for _, name := range o.Without {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--without: unknown tool %q%s; supported: %s", fabric.Clip(name), fabric.DidYouMean(name, known), strings.Join(known, ", "))
		}
	}
	return p.Settings.Check()
}

// leaveWithSupervisor ends the process when its supervisor is gone, even killed: after the time in
// which the end of the input does that, and whatever it computes.
func leaveWithSupervisor() {
	if session.WaitHangup(os.Stdout) {
		time.Sleep(mcp.LeaveTime)
		os.Exit(1)
	}
}

// newMCP returns a server with all that fabsh mcp offers.
func newMCP(p *session.Program, root *cobra.Command, o mcp.ServerOptions) (server *mcp.Server, err error) {
	o.Tools = append(o.Tools, agentTools(p, root, func() *mcp.Server { return server })...)
	o.Topics = sync.OnceValue(func() (list []string) {
		withLibrary(p, root, func(l *help.Library) error { list = l.Topics(""); return nil })
		return list
	})
	server, err = mcp.New(context.Background(), p, o)
	return server, err
}

// Reasons to withhold flags.
const (
	writesFiles = "it writes files"
	keepsState  = "it names state, which is not kept"
	listsNames  = "the schema lists the names"
)

// theFile is the end of docs of parameters that name files.
const theFile = " (a file below a directory of -I)"

// agentTools returns the tools of fabsh mcp.
func agentTools(p *session.Program, root *cobra.Command, server func() *mcp.Server) []mcp.Tool {
	tools := slices.Concat(reportTools(), []mcp.Tool{scriptTool(), helpTool(p, root), historyTool(p), snapshotsTool(p)})
	for _, t := range commandTools(p, server) {
		tools = append(tools, t.Tool)
	}
	for i := range tools {
		t := &tools[i]
		switch t.Name {
		case "run":
			t.Set = "scripts"
		case "plan", "remedy":
			t.Set = "plans"
			t.Fresh = true
		case "diff", "snapshots", "history", "cabling", "accept":
			t.Set = "files"
			t.Fresh = t.Name != "history"
			t.NoFabric = t.Name == "history"
		}
	}
	return tools
}

// toolSets are the sets of tools that --without removes.
var toolSets = []string{"scripts", "plans", "files"}

// commandTools are the tools that are commands.
func commandTools(p *session.Program, server func() *mcp.Server) []*agentTool {
	return []*agentTool{auditCapability(p).asTool(), reportCapability(p).asTool(), remedyCapability().asTool(), diffCapability(p, server).asTool(), topologyCapability(p).asTool(), cablingCapability(p).asTool(), acceptCapability(p).asTool(), evidenceCapability(p).asTool(), verifyCapability().asTool(), planCapability(p).asTool()}
}

// scriptTool runs a script.
func scriptTool() mcp.Tool {
	return mcp.Tool{
		Name:  "run",
		Title: "Run a script in Starlark that reads the fabric",
		Doc: `Starlark is a dialect of Python without imports, classes and exceptions. Results are the values that show() gets, then the value of the last expression. Examples: discover().nodes; or
f = discover()
[{"port": p.name, "rate": p.rate} for p in f.ports if p.state != "active"]
load("@std//lib/report.star", ...) loads from the shipped library.`,
		Params: []mcp.Param{{Name: "script", Kind: mcp.KindText, Required: true, Doc: "the text of the script"}},
		Run: func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
			return program.RunCode(ctx, s.Interpreter, scriptName, a.Text("script"))
		},
	}
}

// scriptName is the name of a client's script in messages.
const scriptName = "<script>"

// helpTool explains topics.
func helpTool(p *session.Program, root *cobra.Command) mcp.Tool {
	return mcp.Tool{
		Name:  "help",
		Title: "Explain a function, type, attribute, report, audit, guide or command",
		Doc:   "Use it before writing a script for run, or if an argument was refused. Without a topic: an overview. At most 6 KB at a time; from pages.",
		Params: []mcp.Param{
			{Name: "topic", Kind: mcp.KindText, Doc: "a function, type, attribute, field, report, audit, guide or command: discover, port, PortInfo.LMC, guides"},
			{Name: "search", Kind: mcp.KindText, Doc: "words to search all topics for, best match first"},
		},
		Help: func(a mcp.Arguments) (text string, err error) {
			topic := a.Text("topic")
			if a.Has("search") {
				topic = "search " + a.Text("search")
			}
			err = withLibrary(p, root, func(l *help.Library) (err error) {
				l.Shell = false
				text, err = l.Find(topic, 0)
				return err
			})
			return text, err
		},
	}
}

// maxStates is for how many sets of audits a server keeps counters; the counters of 70,000 ports take 75 MB.
const maxStates = 4

// agentAudits returns what sets the audits that agents name. Their state is kept in memory.
func agentAudits() func(context.Context, *session.Session, mcp.Arguments, *auditOptions) error {
	states := map[string]*audit.State{}
	kept := func(job string) *audit.State {
		if states[job] == nil {
			if len(states) == maxStates {
				clear(states)
			}
			states[job] = new(audit.State)
		}
		return states[job]
	}
	return func(ctx context.Context, s *session.Session, a mcp.Arguments, o *auditOptions) error {
		o.kept = kept
		if host, _ := hostAudits(a.Texts("audits")); host != nil {
			return fmt.Errorf("%s: judges the ports of the server's host, not the fabric; leave it out", host[0])
		}
		names, err := clientScripts(ctx, s, script.Audits, a.Texts("audits"))
		if err != nil {
			return err
		}
		options, err := a.Words("options", optionsOf(auditsIn(parsedWords{all: names, plain: names})))
		if err != nil {
			return err
		}
		o.words = append(names, options...)
		return nil
	}
}

// optionsOf returns the options of scripts.
func optionsOf(list []script.Program) (flags []string) {
	for _, p := range list {
		flags = append(flags, p.Options...)
	}
	slices.Sort(flags)
	return slices.Compact(flags)
}

// optionsParam is the parameter for the options of scripts.
func optionsParam(of string) mcp.Param {
	return mcp.Param{Name: "options", Kind: mcp.KindOptions, Doc: "options of " + of}
}

// docsOf lists the shipped scripts of a folder.
func docsOf(f script.Folder) string { return strings.Join(f.Names(), ", ") }

// clientScripts returns scripts that a client names: shipped ones, and files that the session may
// read, by their paths.
func clientScripts(ctx context.Context, s *session.Session, shipped script.Folder, names []string) (paths []string, err error) {
	known := shipped.Names()
	for _, name := range names {
		if _, isOther := script.EmbeddedSource(name); !slices.Contains(known, name) && isOther != nil {
			if !strings.ContainsAny(name, "./") {
				_, err := shipped.Locate(name)
				return nil, err
			}
			f, err := s.Files.Open(ctx, name)
			if err != nil {
				return nil, err
			}
			f.Close()
			name = s.Files.Abs(name)
		}
		paths = append(paths, name)
	}
	return paths, nil
}

// clientScript returns the path of a script that a client names, and its options among the arguments as
// words of a command line. entries are as for script.ProgramOf.
func clientScript(ctx context.Context, s *session.Session, a mcp.Arguments, shipped script.Folder, name string, entries ...string) (path string, words []string, err error) {
	paths, err := clientScripts(ctx, s, shipped, []string{name})
	if err != nil {
		return "", nil, err
	}
	if words, err = a.Words("options", programIn(shipped, paths[0], entries...).Options); err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return paths[0], words, nil
}

// workerFlag is the flag of the process that serves, which fabsh mcp starts.
const workerFlag = "worker"

// restartsApart is the shortest time between two restarts of the server.
const restartsApart = time.Minute

// endsWithin is how long the server may go on after a signal: the process ends within 5 s, and a
// write to a client that does not read never does.
const endsWithin = 6 * time.Second
