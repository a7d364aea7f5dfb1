package shell

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"fabsh/builtins"
	"fabsh/builtins/help"
	"fabsh/shell/command"
	"fabsh/shell/session"
)

// library returns all pages, as fabsh help knows them.
func library(t *testing.T) *help.Library {
	t.Helper()
	p := newProgram(session.NewConsole(io.Discard, io.Discard))
	s, err := builtins.NewSession(builtins.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &help.Library{Globals: s.Interpreter.Globals, More: command.Pages(p, rootCommand(p)), Shell: true, CommandsFirst: true}
}

// TestHelpFinds: a search for a question finds the topic among the first three, and the
// topic has the answer.
func TestHelpFinds(t *testing.T) {
	l := library(t)
	for _, test := range []struct{ question, topic, answer string }{
		{"find a host's leaf", "names", `discover().node("node-0005").ports[1].peer.node.name`},
		{"save links as CSV", "tables", "fabsh -o csv -c 'discover().links' > links.csv"},
		{"acknowledge a finding", "acknowledge", "audit ack link.uplinks:leaf-3 --reason"},
		{"practise a change", "practise", "change apply twin.plan"},
		{"write an audit with an option", "write an audit", `def audit(fabric, *, rack = r"rack[0-9]+")`},
		{"use M_Keys", "keys", "--keys FILE"},
		{"compare two days", "compare", "fabsh diff monday.fab friday.fab"},
		{"simulate a bad cable", "fault", "errors=leaf-2/6@20/s"},
		{"route around a switch", "route around", "graph(exclude="},
		{"run it from cron", "cron", "logger -t fabsh"},
		{"links below HDR", "\"Which links are below HDR, for cron?\"", "l.gbps < 200"},
		{"ten worst ports as CSV", "\"Which ports are the ten worst, as CSV?\"", "--by errors"},
		{"bring up a bare subnet", "\"How do I bring up a subnet without a subnet manager?\"", "bring_up.star"},
		{"flapping cable", "\"Does an audit see a flapping cable?\"", "ctr.downed"},
		{"storage over its own spines", "\"How do I route storage over its own spines?\"", "port_groups.star"},
		{"link_up", "PortInfo.PortPhysicalState", "link_up"},
		{"confirm-within", "change apply --confirm-within", "--confirm-within TIME"},
		{"false positives link.width", "check link.width", "False positives"},
		{"sa_gettable", "sa_gettable", "sa_gettable(record"},
		{"port capability mask", "PortInfo.CapabilityMask", "CapabilityMask"},
	} {
		hits, err := l.Search(test.question, 0)
		if err != nil {
			t.Errorf("%s: %v", test.question, err)
			continue
		}
		found := false
		for i, line := range strings.Split(hits, "\n") {
			found = found || i < 3 && strings.HasPrefix(strings.TrimSpace(line)+"  ", "fabsh help "+test.topic+"  ")
		}
		if !found {
			t.Errorf("%s: want %s among the first three of\n%s", test.question, test.topic, hits)
		}
		page, err := l.Find(strings.Trim(test.topic, `"`), 0)
		if err != nil || !strings.Contains(page, test.answer) {
			t.Errorf("%s: %s has no %q: %v\n%s", test.question, test.topic, test.answer, err, page)
		}
	}
	for _, query := range []string{"", "the of", "zzzzz"} {
		if text, err := l.Search(query, 0); err == nil {
			t.Errorf("search for %q: %s", query, text)
		}
	}
}

// TestHelpNamesAll: where a command and another page share a name, help names both.
func TestHelpNamesAll(t *testing.T) {
	l := library(t)
	for topic, also := range map[string]string{"graph": "type graph", "report": "function report", "plan": "command change plan", "change": "type change", "topology": "audit topology", "exit": "flag", "link.width": "check link.width"} {
		page, err := l.Find(topic, 0)
		if topic == "exit" {
			if !strings.Contains(page, "exit(code=0)") || !strings.Contains(page, "\nExit status\n") {
				t.Errorf("exit: %v\n%s", err, page)
			}
			continue
		}
		_, list, _ := strings.Cut(page, "\nAlso:\n")
		if err != nil || !strings.Contains(list, "fabsh help "+also) {
			t.Errorf("help %s does not name %s: %v\n%s", topic, also, err, list)
		}
	}
}

// TestHelpPages: each page has a summary and a text that is found by its name; at each width
// it has the same words, and no line that could be broken is longer.
func TestHelpPages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	l := library(t)
	kinds := map[help.PageKind]int{}
	for _, p := range l.Pages() {
		kinds[p.Kind]++
		whole := p.Text(0)
		if strings.TrimSpace(whole) == "" {
			t.Errorf("%s %s: no text", p.Kind, p.Name)
		}
		for _, width := range []int{80, 120} {
			got := p.Text(width)
			if diff := cmp.Diff(strings.Fields(whole), strings.Fields(got)); diff != "" {
				t.Errorf("%s %s at %d: -whole +got\n%s", p.Kind, p.Name, width, diff)
			}
			isGuide := p.Kind == help.KindGuide || p.Kind == help.KindTopic
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				if bare := strings.TrimLeft(line, " -"); text.StringWidth(line) > width && strings.Contains(bare, " ") && !(isGuide && strings.HasPrefix(line, "  ")) {
					t.Errorf("%s %s at %d: long line %q", p.Kind, p.Name, width, line)
				}
			}
		}
	}
	for _, kind := range []help.PageKind{help.KindFunction, help.KindType, help.KindMember, help.KindAttribute, help.KindField, help.KindClass, help.KindMethod, help.KindTrap, help.KindStatus, help.KindTopic, help.KindGuide, help.KindCommand, help.KindFlag, help.KindTool, help.KindAudit, help.KindReport, help.KindPolicy, help.KindTopology, help.KindScenario, help.KindCheck, help.KindSimKey} {
		if kinds[kind] == 0 {
			t.Errorf("no page of kind %s", kind)
		}
	}
}

// TestHelpCompletes: fabsh help completes commands and topics.
func TestHelpCompletes(t *testing.T) {
	for typed, want := range map[string]string{"change-g": "change-guide\n", "smp_g": "smp_get\n", "PortInfo.LM": "PortInfo.LMC\n", "snap": "snapshot\nsnapshots\n", "simul": "simulate\nsimulation\n"} {
		got := replay(t.TempDir(), testEnv(t), "$ fabsh __complete help "+typed+" 2>/dev/null\n")
		if _, got, _ = strings.Cut(got, "\n"); got != want+":4\n" {
			t.Errorf("%s: %q", typed, got)
		}
	}
}
