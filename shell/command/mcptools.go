package command

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/program"
	"fabsh/builtins/script"
	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

// reportTools are the tools that are reports of their own. What they do is declared by the reports.
func reportTools() []mcp.Tool {
	return []mcp.Tool{
		reportTool("find", "find", mcp.Tool{
			Title:  "Find nodes, hosts and ports by name, GUID or LID: where they are, state, speed, neighbours",
			Doc:    "Use it first for any question about one thing: where is node-0012? which switch is this host on? which node has this GUID? what is leaf-3/7 connected to? show the neighbours of spine-2",
			Params: []mcp.Param{{Name: "names", Kind: mcp.KindTexts, Required: true, Doc: "nodes, hosts, NAME/PORT, GUIDs, LIDs, names with * and ?, or parts of names"}},
		}),
		reportTool("trace", "path", mcp.Tool{
			Title: "Trace the path of packets from one node to another: links, state, lanes, load, errors",
			Doc:   "For why is traffic between two hosts slow? which way do packets take?",
			Params: []mcp.Param{
				{Name: "from", Kind: mcp.KindText, Required: true, Doc: "a node, GUID or LID"}, {Name: "to", Kind: mcp.KindText, Required: true, Doc: "a node, GUID or LID"}, optionsParam(`the report path: {"over": "2s", "loads": true}`),
			},
		}, "from", "to"),
		reportTool("impact", "impact", mcp.Tool{
			Title:  "Predict the impact of taking a switch, link or host out: who loses paths, and the load on what remains",
			Doc:    "For is it safe to take spine-2 out (of service), reboot it, replace a cable?",
			Params: []mcp.Param{{Name: "targets", Kind: mcp.KindTexts, Required: true, Doc: "switches, hosts, or ports of links: spine-2, leaf-3/7"}, optionsParam("the report impact")},
		}),
	}
}

// reportTool returns the tool t for a report. words are the parameters that are its words; none:
// the first one.
func reportTool(name, report string, t mcp.Tool, words ...string) mcp.Tool {
	t.Name = name
	t.Run = func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
		path, line, err := clientScript(ctx, s, a, script.Reports, report)
		if err != nil {
			return err
		}
		line = append(line, "--")
		if words == nil {
			line = append(line, a.Texts(t.Params[0].Name)...)
		}
		for _, w := range words {
			line = append(line, a.Text(w))
		}
		return program.RunReport(ctx, s.Interpreter, path, line)
	}
	return t
}

// maxSnapshots is how many snapshots are listed, and maxEntries how many files are looked through.
const (
	maxSnapshots = 200
	maxEntries   = 10000
)

// snapshotFile is a snapshot below a directory of -I.
type snapshotFile struct {
	name string // relative to the directory
	path string
	size int64
	at   time.Time // of its last change
}

// snapshotsTool lists earlier states, and compares the fabric with one.
func snapshotsTool(p *session.Program) mcp.Tool {
	return mcp.Tool{
		Name:   "snapshots",
		Title:  "List saved snapshots of the fabric, or compare the fabric with one",
		Doc:    "For \"what changed since yesterday?\": diff names a snapshot, or a time; then the latest snapshot before it is compared. For times of a history use history.",
		Params: []mcp.Param{{Name: "diff", Kind: mcp.KindText, Doc: "a name of the list, or a time: 24h ago is 24h, or 2026-05-01"}},
		Run: func(ctx context.Context, s *session.Session, a mcp.Arguments) error {
			list := snapshotsBelow(ctx, p.Settings.Include)
			if !a.Has("diff") {
				return s.Show(shownSnapshots(list))
			}
			found, err := snapshotAt(list, a.Text("diff"), s.Clock.Now())
			if err != nil {
				return err
			}
			o := new(diffOptions)
			if o.old, err = sideOf(ctx, p, s, found.path); err != nil {
				return err
			}
			v, err := compare(ctx, s, o)
			if v != nil {
				if failed := s.Show(v); failed != nil {
					return failed
				}
			}
			return err
		},
	}
}

// snapshotsBelow returns the snapshots below directories, the latest first. Links are not followed.
func snapshotsBelow(ctx context.Context, dirs []string) (list []snapshotFile) {
	entries := 0
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if entries++; entries > maxEntries || ctx.Err() != nil {
				return filepath.SkipAll
			}
			if err != nil || !e.Type().IsRegular() || !isSnapshot(path) {
				return nil
			}
			info, err := e.Info()
			name, err2 := filepath.Rel(dir, path)
			if err == nil && err2 == nil {
				list = append(list, snapshotFile{name, path, info.Size(), info.ModTime()})
			}
			return nil
		})
	}
	slices.SortStableFunc(list, func(a, b snapshotFile) int { return b.at.Compare(a.at) })
	return list[:min(len(list), maxSnapshots)]
}

// isSnapshot reports whether a file begins as a snapshot.
func isSnapshot(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, 16)
	n, _ := f.Read(begin)
	return format.IsSnapshot(begin[:n])
}

// snapshotAt returns the snapshot of a name, or the latest one before a time.
func snapshotAt(list []snapshotFile, text string, now time.Time) (found snapshotFile, err error) {
	for _, x := range list {
		if x.name == text {
			return x, nil
		}
	}
	at, err := history.ParseTime(text, now)
	if err != nil {
		return found, fmt.Errorf("diff: no snapshot is named %q, and it is not a time; call snapshots without diff for the list", text)
	}
	for _, x := range list {
		if !x.at.After(at) {
			return x, nil
		}
	}
	return found, fmt.Errorf("diff: no snapshot is older than %s; call snapshots without diff for the list", at.UTC().Format(time.RFC3339))
}

// shownSnapshots returns the list as a value.
func shownSnapshots(list []snapshotFile) starlark.Value {
	var rows []starlark.Value
	for _, x := range list {
		row := starlark.NewDict(3)
		row.SetKey(starlark.String("name"), starlark.String(strings.ToValidUTF8(x.name, "?")))
		row.SetKey(starlark.String("changed"), starlark.String(x.at.UTC().Format(time.RFC3339)))
		row.SetKey(starlark.String("bytes"), starlark.MakeInt64(x.size))
		rows = append(rows, row)
	}
	return starlark.NewList(rows)
}
