//go:build linux

package shell

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// mira is a user and her password, as a file of passwords and a browser have them.
const (
	miraFile = "basic_auth_users:\n  mira: $2a$04$W1FrgFMx1IkGQwFLBfP/reATv3G8dMerMLE7rl7C6NOYWaoBA2GV.\n" // htpasswd -nbBC 4
	miraUser = "mira:right"
)

// servedPages are the pages that each check opens: a line for each kind and state.
var servedPages = []struct{ name, path string }{
	{"now", "/now"},
	{"now-past", "/now?at=1s"},
	{"offenders", "/offenders"},
	{"map", "/map"},
	{"map-load", "/map?by=load&open=none"},
	{"map-errors", "/map?by=errors&zoom=200"},
	{"map-changes", "/map?by=changes&q=leaf-1"},
	{"map-tiers", "/map?order=tiers"},
	{"map-racks", "/map?order=racks"}, // which are not known
	{"paths", "/paths"},
	{"path", "/paths?from=node-0001&to=node-0100"},
	{"path-names", "/paths?from=node-0001&to=" + url.QueryEscape("</title></svg>{{.}} HCA-1")},
	{"path-unknown", "/paths?from=node-0001&to=nothing-here"},
	{"what-if-switch", "/paths?without=core-1"},
	{"what-if-leaf", "/paths?without=leaf-1"},
	{"what-if-path", "/paths?from=node-0001&to=node-0100&without=leaf-1/5"},
	{"link", "/link/leaf-5/1"},
	{"link-down", "/link/leaf-7/5?span=7d"},
	{"link-year", "/link/leaf-1/1?span=1y"},
	{"node", "/node/leaf-5"},
	{"node-gone", "/node/0x0002c90300100280"},
	{"node-host", "/node/node-0001%20HCA-1"},
	{"time", "/time"},
	{"compare", "/time?t1=1h&t2=now"},
	{"changes", "/changes"},
	{"changes-links", "/changes?kind=link&span=1y"},
	{"help", "/help"},
	{"help-topic", "/help/serve"},
	{"help-check", "/help/check/link.down"},
	{"help-search", "/help?words=cable"},
	{"find", "/find?q=leaf"},
	{"find-nothing", "/find?q=%3Cscript%3Ealert(1)%3C%2Fscript%3Ezz"},
	{"not-found", "/node/nothing-here"},
	{"ack", "/ack?id=link.down%3A0x0002c90300100060%2F5"},
}

// step is a step of a walk: the key Tab is pressed until the focus is at an element that matches at, text is
// typed, and Enter pressed. Then the address, without scheme and host, matches url, and the page shows the texts.
type step struct {
	at, text, url string
	shows         []string
}

// morning is the walk of someone who finds a red link in the morning, with the keyboard alone.
var morning = []step{
	{`main .cause.down h3 a[href^="/link/leaf-7/5"]`, "", `^/link/leaf-7/5$`, []string{"down since", "the link is down", "link went down from"}},
	{`main .seg a[href*="span=7d"]`, "", `^/link/leaf-7/5\?span=7d$`, []string{"Errors", "the link was to"}},
	{`header nav a[href="/time"]`, "", `^/time$`, []string{"Just before", "leaf-7/5 - spine-5/3: link went down"}},
	{`main .list a[href^="/now?at="]`, "", `^/now\?at=`, []string{"Everything on this page is of that time."}},
	{`#q`, "leaf-7", `^/node/leaf-7\?at=`, []string{"As of", "8 of 8 ports linked"}},
	{`main .meta a[href^="/map"]`, "", `^/map\?at=.*q=leaf-7`, []string{"Pod 2", "As of"}},
	{`.then a`, "", `^/map\?q=leaf-7`, []string{"leaf-7", "1 missing"}},
	{`header nav a[href="/now"]`, "", `^/now$`, []string{"1 link is down"}},
	{`header nav a[href="/paths"]`, "", `^/paths$`, []string{"Give two ends"}},
	{`#without`, "spine-5", `^/paths\?.*without=spine-5`, []string{"Without spine-5", "Pairs lost", "predicted, not tried", "Jobs without it", "train"}},
	{`header nav a[href="/now"]`, "", `^/now$`, []string{"1 link is down"}},
	{`main .cause.down a[href^="/ack?id=link.down"]`, "", `^/ack\?id=link\.down`, []string{"Acknowledge as mira"}},
	{`main input[name=reason]`, "cable ordered", `^/now$`, []string{"acknowledged", "cable ordered", "mira, until"}},
}

// brokenLab serves a fabric, some of whose names are markup, and a site of it, and breaks it after the first cycle.
func brokenLab(t *testing.T) *exporting {
	dir, name := t.TempDir(), fmt.Sprintf("fabsh-%016x", rand.Uint64())
	runFabsh(t, "sim", "fattree:k=8,levels=3,seed=3", "--out", dir+"/net")
	net, err := os.ReadFile(dir + "/net")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		`"leaf-3"`, `"<script>alert(1)</script>"`, `"spine-2"`, `"<img src=x onerror=alert(1)>"`, `"spine-3"`, `"\" onfocus=\"alert(1)\" autofocus=\"`,
		`"node-0007 HCA-1"`, "\"\u202e\u05d0gnp.exe HCA-1\"", `"node-0008 HCA-1"`, `"</title></svg>{{.}} HCA-1"`,
		`"core-2"`, `"`+strings.Repeat("W", 63)+`"`).Replace(string(net))
	jobs := "JOBID|NAME|USER|STATE|NODELIST\n7|train|mira|RUNNING|node-[0001-0004,0017-0024]\n8|<b>io</b>|<i>x</i>|RUNNING|node-[0098-0128]\n"
	for file, text := range map[string]string{"net": text, "web.yml": miraFile, "jobs": jobs} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serveSim(t, name, dir+"/net")
	x := startServe(t, []string{"--state", dir, "-F", "ibsim:" + name, "-t", "2s"}, "--every", "1500ms", "--web.config.file", dir+"/web.yml", "--acks", "--jobs", dir+"/jobs")
	t.Cleanup(func() {
		if t.Failed() {
			x.Process.Kill()
			for line := range x.log {
				t.Log(line)
			}
		}
	})
	x.url = strings.Replace(x.url, "http://", "http://"+miraUser+"@", 1)
	eventually(t, func() bool { _, status := x.page(t, "/now?at=1s"); return status == 200 })
	runFabsh(t, "-F", "ibsim:"+name, "-t", "2s", "-c", `sim.unlink("leaf-7/5")
sim.kill("spine-9")
sim.speed("leaf-5/1", "edr", width="2x")
sim.errors("leaf-5/1", symbol_error_counter="100/s")
sim.module("leaf-5/1", vendor="<b onclick>", part="<img src=x>", serial="<i>alert(1)</i>")
`)
	eventually(t, func() bool {
		body, _ := x.page(t, "/now")
		changes, _ := x.page(t, "/changes") // the flap is there when counters are read again
		return strings.Contains(body, "1 node is gone, 1 link is down, 1 link is slow") && strings.Contains(changes, "link went down and up")
	})
	return x
}

// TestServeInChromium opens each page in Chromium, with and without scripts, narrow and wide, light and
// dark, on paper and with forced colours: nothing is written to the console, nothing is requested from elsewhere,
// nothing of a name is run, no page is wider than the window, and axe-core finds nothing. Then a walk by keys.
// go test -artifacts keeps pictures of it.
func TestServeInChromium(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("only make soak unpacks Chromium, which has 370 MB")
	}
	axe, err := os.ReadFile(filepath.Join(ibsimtest.Root(t), ".chromium/axe.min.js"))
	if err != nil {
		t.Fatal("no axe-core: run make chromium")
	}
	x := brokenLab(t)
	pictures := t.ArtifactDir()
	b := startBrowser(t)
	origin := strings.Replace(x.url, miraUser+"@", "", 1)
	b.call("Network.setExtraHTTPHeaders", map[string]any{"headers": map[string]any{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(miraUser))}}, nil)
	texts := map[string]string{} // of pages with scripts
	past := time.Now().UTC().Format(time.RFC3339)
	for _, how := range []struct {
		name          string
		width         int
		media, scheme string
		forced        string
		scripts       bool
	}{
		{"1440-light", 1440, "", "light", "none", true},
		{"1440-dark", 1440, "", "dark", "none", true},
		{"390-light", 390, "", "light", "none", true},
		{"390-dark", 390, "", "dark", "none", true},
		{"1440-noscript", 1440, "", "light", "none", false},
		{"print", 794, "print", "light", "none", true},
		{"forced", 1440, "", "dark", "active", true},
	} {
		t.Run(how.name, func(t *testing.T) {
			b.t = t
			b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": !how.scripts}, nil)
			b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": how.width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
			b.call("Emulation.setEmulatedMedia", map[string]any{"media": how.media, "features": []map[string]any{{"name": "prefers-color-scheme", "value": how.scheme}, {"name": "forced-colors", "value": how.forced}}}, nil)
			for _, p := range servedPages {
				b.visit(origin + strings.Replace(p.path, "at=1s", "at="+past, 1)) // of one time
				b.checkServed(p.name)
				text := b.mainText()
				switch {
				case how.name == "1440-light":
					texts[p.name] = text
				case how.name == "1440-noscript" || how.media == "print":
					for _, lost := range lostLines(texts[p.name], text) {
						t.Errorf("%s: %q is not shown", p.name, lost)
					}
				}
				if how.scripts && how.media == "" && how.forced == "none" {
					for _, f := range b.accessFaults(string(axe)) {
						t.Errorf("%s: axe: %s, %s: %s: %+v", p.name, f.ID, f.Impact, f.Help, f.Nodes)
					}
				}
				for _, f := range b.servedFaults(origin) {
					t.Errorf("%s: %s", p.name, f)
				}
				b.screenshot(filepath.Join(pictures, p.name+"-"+how.name+".png"), how.width)
			}
		})
	}
	b.t = t
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "", "features": []map[string]any{}}, nil)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.visit(origin + "/now")
	b.walk(origin, morning)

	rails := startServe(t, []string{"-F", "sim:fattree:k=8,levels=2,rails=4,remove_links=2,seed=3"}, "--every", "1h", "--no-history").url
	for _, width := range []int{1440, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
			b.call("Emulation.setEmulatedMedia", map[string]any{"media": "", "features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
			name := fmt.Sprintf("map-rails-%d-%s", width, scheme)
			b.visit(rails + "/map?order=rails")
			b.checkServed(name)
			var text string
			b.eval(`document.body.innerText`, &text)
			if !strings.Contains(text, "Rail 4") {
				t.Errorf("%s: %.1000s", name, text)
			}
			for _, f := range b.accessFaults(string(axe)) {
				t.Errorf("%s: axe: %s, %s: %s: %+v", name, f.ID, f.Impact, f.Help, f.Nodes)
			}
			for _, f := range b.servedFaults(rails) {
				t.Errorf("%s: %s", name, f)
			}
			b.screenshot(filepath.Join(pictures, name+".png"), width)
		}
	}
}

// checkServed: a page has one heading, and no element that a text made; it is as wide as the window.
func (b *browser) checkServed(name string) {
	b.t.Helper()
	var got struct {
		Heads, Scripts, Foreign int
		Wide                    int
		Evil                    []string
	}
	b.eval(`(() => {
		const all = s => [...document.querySelectorAll(s)];
		return {
			heads: all("h1").length, scripts: all("script").length, foreign: all("img, iframe, object, embed, b[onclick], style").length,
			wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
			evil: all("*").flatMap(e => [...e.attributes].filter(a => a.name.startsWith("on") || /^javascript:/i.test(a.value)).map(a => e.tagName + " " + a.name)),
		}
	})()`, &got)
	if got.Heads != 1 || got.Scripts != 1 || got.Foreign != 0 || len(got.Evil) > 0 {
		b.t.Errorf("%s: %+v", name, got)
	}
	if got.Wide > 0 {
		var who []string
		b.eval(`[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".scroll, .map, .vh")).map(e => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 80)).slice(0, 5)`, &who)
		b.t.Errorf("%s is %d pixels wider than the window: %q", name, got.Wide, who)
	}
}

// mainText returns the text of the page as it is shown: headings, findings, list items and cells, one a line.
func (b *browser) mainText() (text string) {
	b.t.Helper()
	b.eval(`[...document.querySelectorAll("main h1, main h2, main .cause p, main .list li, main td, main .meta span, main .empty")].filter(e => e.checkVisibility({checkOpacity: true})).map(e => e.textContent.replace(/\s+/g, " ").trim()).join("\n")`, &text)
	return text
}

// lostLines returns the lines of want that got does not have, without times, which a script shows in another
// form, numbers, which grow, and values that a later reading has.
func lostLines(want, got string) (lost []string) {
	form := func(s string) string {
		s = regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d+ \w+ \d+ [\d:]+ (UTC|GMT)`).ReplaceAllString(s, "TIME")
		return regexp.MustCompile(`(\d[\d.,]*( ?(s|min|h|m|ms|%))?)+`).ReplaceAllString(s, "N")
	}
	has := map[string]bool{}
	for line := range strings.Lines(got) {
		has[form(strings.TrimSpace(line))] = true
	}
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); form(line) != "" && form(line) != "N" && line != "not read" && !has[form(line)] {
			lost = append(lost, line)
		}
	}
	return lost
}

// servedFaults returns what a page wrote to the console, threw, and requested from elsewhere.
func (b *browser) servedFaults(origin string) (list []string) {
	for _, e := range b.seen {
		switch e.Method {
		case "Log.entryAdded":
			if regexp.MustCompile(`responded with a status of 4(04|10)`).Match(e.Params) { // of the page itself
				continue
			}
			fallthrough
		case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening":
			list = append(list, e.Method+": "+string(e.Params))
		case "Network.requestWillBeSent":
			var r struct{ Request struct{ URL string } }
			if err := json.Unmarshal(e.Params, &r); err != nil || !strings.HasPrefix(r.Request.URL, origin+"/") && !strings.HasPrefix(r.Request.URL, "data:image/svg+xml;") { // the browser's own pictures in fields
				list = append(list, "it requests "+r.Request.URL)
			}
		}
	}
	return list
}

// walk goes through steps from the page that is shown.
func (b *browser) walk(origin string, steps []step) {
	b.t.Helper()
	for i, s := range steps {
		name := fmt.Sprintf("step %d, %s", i+1, s.at)
		b.eval(`document.activeElement.blur()`, nil)
		found := false
		for tabs := 0; !found && tabs < 300; tabs++ {
			b.press("Tab", 9, "")
			b.eval(fmt.Sprintf(`document.activeElement.matches(%q)`, s.at), &found)
		}
		if !found {
			b.t.Fatalf("%s: Tab does not reach it", name)
		}
		var ring string
		b.eval(`getComputedStyle(document.activeElement).outlineStyle`, &ring)
		if ring == "none" {
			b.t.Errorf("%s: the focus is not shown", name)
		}
		if s.text != "" {
			b.call("Input.insertText", map[string]any{"text": s.text}, nil)
		}
		b.seen = nil
		b.press("Enter", 13, "\r")
		b.loaded(name)
		var at, text string
		b.eval(`location.href`, &at)
		u, err := url.Parse(at)
		if err != nil {
			b.t.Fatal(err)
		}
		if got := strings.TrimPrefix(u.String(), origin); !regexp.MustCompile(s.url).MatchString(got) {
			b.t.Fatalf("%s leads to %s, want %s", name, got, s.url)
		}
		b.eval(`document.body.innerText.replace(/\s+/g, " ")`, &text)
		for _, want := range s.shows {
			if !strings.Contains(text, want) {
				b.t.Errorf("%s: %s does not show %q: %.1500s", name, at, want, text)
			}
		}
		for _, f := range b.servedFaults(origin) {
			b.t.Errorf("%s: %s", name, f)
		}
	}
}
