package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/accept"
	"fabsh/builtins/audits"
	"fabsh/builtins/check"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	judgement "fabsh/fabric/accept"
	"fabsh/fabric/format"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

const acceptDoc = `Judge the fabric by a profile: a list of items, each with a criterion and its source.

PROFILE is the name of a shipped profile (--list), or a .star file that sets items, a
list of dicts: name, title, criterion, source, checks (of audits; help checks lists them),
watch (how long), plan (True: it needs --plan), audit (a file, for checks of your own), or
beyond (why datagrams cannot judge it). options = {...} are options of the audits.
"fabsh new profile NAME" writes one to begin with.

An item fails if one of its checks has a finding of severity warning or above that is
not acknowledged; it passes if all of them were done, for as long as it must be watched.
Otherwise it is not judged, and the reason is shown.

--soak TIME watches the fabric: the audits run again every --every, counters are compared
from sample to sample, and what was found once stays found. Ctrl-C or a reboot does not
end the run: the same command goes on, and states which times were not watched. After the
end the next run begins, and shows what has changed. The run is kept in the directory of
--state.

--out FILE.html writes a page with the data in it; FILE.html.sha256 has its SHA-256.
With --record FILE the page names the recording, and its length and SHA-256 so far: the
recording ends with the session, after the page is written, so more bytes may follow.
"head -c BYTES FILE | sha256sum" compares them.

It sends what the audits send: "fabsh audit" with the same names, and --deep if the
profile sets deep, once for each sample.

Exit status: 0 all items pass; 1 items fail; 2 usage error; 3 an item that datagrams can
judge was not judged, or the fabric or this host failed.`

// acceptCapability judges the fabric by a profile.
func acceptCapability(p *session.Program) *capability[*acceptOptions] {
	return &capability[*acceptOptions]{command: &cobra.Command{
		Use:   "accept PROFILE [--plan FILE] [--soak TIME] [--out FILE]",
		Short: "Judge the fabric by a profile: pass, fail or not judged, item by item",
		Long:  acceptDoc,
		Example: `  fabsh accept nvidia-bringup --plan p2p.xlsx --soak 24h --out accepted.html
  fabsh accept ufm-validation
  fabsh -o json accept mine.star`,
		Annotations:       map[string]string{atPrompt: direct},
		ValidArgsFunction: completeProfile,
	},
		options: newAcceptOptions,
		line: func(o *acceptOptions, _ *cobra.Command, words []string) error {
			if len(words) > 1 {
				return fmt.Errorf("want one PROFILE, got %d words", len(words))
			}
			o.profile = strings.Join(words, "")
			return o.check()
		},
		scripts: script.Profiles, missing: "PROFILE",
		run: func(ctx context.Context, s *session.Session, o *acceptOptions) (starlark.Value, error) {
			return runAccept(ctx, s, o)
		},
		tool:  "accept",
		doc:   "It takes one sample: items that must be watched are not judged.",
		words: []mcp.Param{{Name: "profile", Kind: mcp.KindText, Required: true, Doc: "the name of a profile: " + docsOf(script.Profiles) + "; or a .star file below a directory of -I"}},
		take: func(_ context.Context, _ *session.Session, a mcp.Arguments, o *acceptOptions) error {
			o.profile, o.once = a.Text("profile"), true
			return nil
		},
	}
}

// acceptOptions are the options of accept.
type acceptOptions struct {
	profile, plan, out, subnet string
	soak, every                time.Duration
	restart                    bool
	once                       bool // nothing is kept
}

func newAcceptOptions() *acceptOptions { return &acceptOptions{every: 5 * time.Minute} }

// shortestStep is the shortest time between samples: each reads all counters. longestSoak is the longest time to watch.
const (
	shortestStep = 10 * time.Second
	longestSoak  = 90 * 24 * time.Hour
)

// params declares the parameters.
func (o *acceptOptions) params() params {
	duration := func(to *time.Duration, least, most time.Duration, want string) func(string) error {
		return func(text string) (err error) {
			if *to, err = time.ParseDuration(text); err != nil || *to < least || *to > most {
				return errors.New("want a time " + want)
			}
			return nil
		}
	}
	return params{
		{name: "list", to: new(bool), doc: "list the shipped profiles", withheld: listsNames},
		{name: "plan", to: &o.plan, file: true, doc: "judge the cables by the plan in `FILE`"},
		{name: "soak", to: duration(&o.soak, 0, longestSoak, "such as 24h, and at most 2160h"), doc: "watch the fabric for `TIME` (default: one sample)", withheld: "it waits"},
		{name: "every", to: duration(&o.every, shortestStep, 24*time.Hour, "from 10s to 24h"), doc: "take the next sample after `TIME` (default: 5m)", withheld: "it waits"},
		{name: "restart", to: &o.restart, doc: "begin a new run, and drop the one that was interrupted", withheld: keepsState},
		{name: "out", to: &o.out, doc: "write the page to `FILE`, .html, completely or not at all, and its SHA-256 to FILE.sha256", withheld: writesFiles},
		subnetParam(&o.subnet),
	}
}

// check finds contradictions before anything is opened.
func (o *acceptOptions) check() error {
	if o.out != "" && !strings.EqualFold(filepath.Ext(o.out), ".html") {
		return fmt.Errorf("--out %s: unknown kind of file; supported: .html", o.out)
	}
	if o.plan != "" {
		if err := fileThere(o.plan); err != nil {
			return fmt.Errorf("--plan: %w", format.FileError(err))
		}
	}
	return nil
}

// completeProfile proposes profiles.
func completeProfile(_ *cobra.Command, words []string, typed string) (list []string, _ cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, d := range script.Profiles.Shipped() {
		list = append(list, d.Name+"\t"+d.Doc)
	}
	return check.Matching(list, typed), cobra.ShellCompDirectiveDefault
}

// runAccept runs the profile, shows the progress, and writes the page.
func runAccept(ctx context.Context, s *session.Session, o *acceptOptions) (starlark.Value, error) {
	p, err := accept.Load(ctx, s.Interpreter, o.profile, help.AuditsOf())
	if err != nil {
		return nil, err
	}
	options := accept.Options{Plan: o.plan, Soak: o.soak, Every: o.every, Restart: o.restart, Subnet: o.subnet, State: s.StateDir}
	if o.once || s.KeepsNothing() || s.Engine == nil || s.InProcess() {
		options.State = ""
	}
	if o.soak > 0 && s.Engine == nil {
		return nil, s.NoLive("--soak needs a live fabric: this session reads a file; choose one with -F")
	}
	if o.plan != "" {
		if options.Digest, err = digestOf(ctx, s, o.plan); err != nil {
			return nil, fmt.Errorf("--plan: %w", err)
		}
		if _, err := loadBaseline(ctx, s, o.plan); err != nil {
			return nil, fmt.Errorf("--plan: %w", err)
		}
	}
	options.Sampled = func(r *judgement.Result) {
		if !s.Quiet {
			fmt.Fprintf(s.Console.Err(), "%s  %s; watched %s, %s remain\n", s.Clock.Now().Local().Format(time.DateTime), r.Summary(), accept.WatchedText(r.Run), (r.Run.Soak - r.Run.Watched()).Round(time.Second))
		}
	}
	began := s.Clock.Now()
	result, err := p.Run(ctx, s.Interpreter, options)
	if errors.As(err, new(*audits.StateError)) {
		return nil, &session.HostError{Err: err}
	}
	if err != nil {
		if options.State != "" && o.soak > 0 && ctx.Err() != nil && !s.Quiet {
			fmt.Fprintln(s.Console.Err(), "the run is kept: the same command goes on")
		}
		return nil, err
	}
	if made, err := s.Recording(); made != nil {
		result.Recording = &judgement.Recording{File: made.File, Since: began, Bytes: made.Bytes, Sum: made.Sum}
		if err != nil {
			result.Recording.Fault = format.FileError(err).Error()
		}
	}
	value := accept.Wrap(result, s.Format)
	if o.out != "" {
		if err := writeAcceptance(ctx, s, o.out, result); err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
	}
	return value, session.Exit(accept.Status(result))
}

// digestOf returns the SHA-256 of a file that the session may read.
func digestOf(ctx context.Context, s *session.Session, path string) (string, error) {
	f, err := s.Files.OpenNamed(ctx, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeAcceptance writes the page, and its SHA-256 beside it, which it also prints.
func writeAcceptance(ctx context.Context, s *session.Session, path string, r *judgement.Result) error {
	data, err := audits.RenderMetrics(accept.Wrap(r, lang.FormatJSON), lang.FormatJSON, "acceptance")
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page, []byte(data)); err != nil {
		return err
	}
	return writeWithSum(ctx, s, path, page.Bytes())
}
