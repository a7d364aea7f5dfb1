//go:build linux

package shell

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// hostileNet writes a damaged fabric, some of whose names are markup, and some of whose
// links are slow, and is how it is called.
func hostileNet(t testing.TB, dir string) string {
	t.Helper()
	runFabsh(t, "sim", "fattree:k=8,levels=3,remove_links=5%,remove_switches=1,seed=3", "--out", dir+"/net")
	net, err := os.ReadFile(dir + "/net")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		`"leaf-3"`, `"<script>alert(1)</script>"`, `"spine-2"`, `"<img src=x onerror=alert(1)>"`,
		`"node-0007 HCA-1"`, "\"\u202e\u05d0gnp.exe HCA-1\"", `"node-0008 HCA-1"`, `"</title></svg>{{.}} HCA-1"`,
		`"core-2"`, `"`+strings.Repeat("W", 63)+`"`).Replace(string(net))
	n := 0
	text = regexp.MustCompile(`(?m)^\[1\].*4xHDR`).ReplaceAllStringFunc(text, func(line string) string {
		if n++; n%4 == 0 {
			return strings.Replace(line, "4xHDR", "1xHDR", 1)
		}
		return line
	})
	if err := os.WriteFile(dir+"/net", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return "sim:" + dir + "/net:errors=4@1000/s"
}

// runFabsh is what it writes; that there are findings is no failure.
func runFabsh(t testing.TB, words ...string) []byte {
	t.Helper()
	c := exec.Command("fabsh", append([]string{"-q"}, words...)...)
	c.Env = testEnv(t)
	out, err := c.Output()
	if err != nil && c.ProcessState.ExitCode() != 1 {
		t.Fatalf("fabsh %s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return out
}

// findingsOf are how many the audits of a fabric have, by check and subject.
func findingsOf(t testing.TB, fabric string) map[string]int {
	t.Helper()
	var report struct {
		Findings []struct{ Check, Subject string }
	}
	if err := json.Unmarshal(runFabsh(t, "-F", fabric, "-o", "json", "audit"), &report); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, f := range report.Findings {
		count[f.Check+" "+strings.ReplaceAll(f.Subject, "\u202e", `\u202e`)]++ // as the page shows it
	}
	return count
}

// TestReportInChromium opens reports in Chromium, from a file, with and without
// scripts, narrow and wide, dark and light: nothing is written to the console, nothing is
// requested, names are text, axe-core finds no serious fault, and filter, order and links
// work by mouse and keys. go test -artifacts keeps pictures of it.
func TestReportInChromium(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("only make soak unpacks Chromium, which has 370 MB")
	}
	dir := t.TempDir()
	axe, err := os.ReadFile(filepath.Join(ibsimtest.Root(t), ".chromium/axe.min.js"))
	if err != nil {
		t.Fatal("no axe-core: run make chromium")
	}
	pictures := t.ArtifactDir()
	b := startBrowser(t)
	for _, fabric := range []struct{ name, spec string }{
		{"damaged", hostileNet(t, dir)},
		{"healthy", "sim:fattree:k=8,levels=3"},
		{"large", "sim:fattree:k=24,levels=3,remove_links=4,seed=2"}, // 3,456 hosts
		{"dragonfly", "sim:dragonfly:a=4,p=2,h=2"},
	} {
		path := filepath.Join(dir, fabric.name+".html")
		runFabsh(t, "-F", fabric.spec, "report", "html", "--out", path)
		damaged := fabric.name == "damaged"
		var want map[string]int
		if damaged {
			want = findingsOf(t, fabric.spec)
		}
		for _, scripts := range []bool{true, false} {
			for _, width := range []int{390, 1280} {
				for _, scheme := range []string{"light", "dark"} {
					name := fmt.Sprintf("%s-%d-%s", fabric.name, width, scheme)
					if !scripts {
						name += "-noscript"
					}
					t.Run(name, func(t *testing.T) {
						b.t = t
						b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": !scripts}, nil)
						b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
						b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
						b.open(path)
						b.checkPage()
						if damaged {
							b.checkReport(want, scripts)
						}
						b.checkNames()
						if scripts {
							b.checkAccess(string(axe))
							if damaged {
								b.useReport()
							}
						}
						for _, f := range b.faults(path) {
							t.Error(f)
						}
						b.eval(`for (const d of document.querySelectorAll("details")) d.open = d.open || d.querySelector("strong") !== null`, nil)
						b.screenshot(filepath.Join(pictures, name+".png"), width)
					})
				}
			}
		}
	}
}

// checkPage: each link leads to something on the page, which is as wide as the window.
func (b *browser) checkPage() {
	b.t.Helper()
	var got struct {
		Title                string
		Dead, Images, Script int
		Wide                 int
	}
	b.eval(`(() => {
		const all = s => [...document.querySelectorAll(s)];
		return {
			title: document.title,
			dead: all("a[href^='#']").filter(a => document.getElementById(a.getAttribute("href").slice(1)) === null).length,
			images: all("img").length, script: all("script").length,
			wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		}
	})()`, &got)
	if !strings.HasPrefix(got.Title, "fabsh: ") || got.Dead != 0 || got.Images != 0 || got.Script != 1 {
		b.t.Errorf("%+v", got)
	}
	if got.Wide > 0 {
		var who []string
		b.eval(`[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".wide")).map(e => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 80))`, &who)
		b.t.Errorf("the page is %d pixels wider than the window: %q", got.Wide, who)
	}
}

// checkNames: the names of the nodes of a box are shown while it has the focus, without a script.
func (b *browser) checkNames() {
	b.t.Helper()
	var got [2]string
	b.eval(`(() => {
		const box = document.querySelector("svg[role=group] a:has(.box)"), shown = () => getComputedStyle(box.querySelector(".names")).visibility;
		const before = shown();
		box.focus();
		return [before, shown()];
	})()`, &got)
	if got != [2]string{"hidden", "visible"} {
		b.t.Errorf("names of a box before and with the focus: %q", got)
	}
}

// checkReport: each finding has its row and a link to its place; names are text.
func (b *browser) checkReport(want map[string]int, scripts bool) {
	b.t.Helper()
	var got struct {
		Rows           map[string]int
		Empty, Places  int
		Hostile        []bool
		Tools, Stacked bool
	}
	b.eval(`(() => {
		const all = s => [...document.querySelectorAll(s)];
		return {
			rows: all("#list tbody tr").map(r => r.cells[1].textContent + " " + r.cells[2].textContent).reduce((count, k) => (count[k] = (count[k] || 0) + 1, count), {}),
			empty: all("#list tbody td:nth-child(-n+4)").filter(c => c.textContent.trim() === "").length,
			places: all("#list td.id a").filter(a => document.querySelector("li" + a.hash)).length,
			hostile: ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "W".repeat(63)].map(n => document.body.textContent.includes(n)),
			stacked: innerWidth > 640 || all("#list tbody tr").every(r => new Set([...r.cells].map(c => c.getBoundingClientRect().left)).size === 1),
			tools: document.querySelector(".tools").checkVisibility(),
		}
	})()`, &got)
	if got.Empty != 0 || got.Places < 50 {
		b.t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(want, got.Rows); diff != "" {
		b.t.Errorf("findings: -want +got\n%s", diff)
	}
	for i, is := range got.Hostile {
		if !is {
			b.t.Errorf("hostile name %d is not text", i)
		}
	}
	if !got.Stacked {
		b.t.Error("in a narrow window the cells of a row are not below each other")
	}
	if got.Tools != scripts {
		b.t.Errorf("the filter is shown: %t", got.Tools)
	}
}

// checkAccess: axe-core finds nothing that is serious, details opened.
func (b *browser) checkAccess(axe string) {
	b.t.Helper()
	for _, f := range b.accessFaults(axe) {
		report := b.t.Logf
		if f.Impact == "serious" || f.Impact == "critical" {
			report = b.t.Errorf
		}
		report("axe: %s, %s: %s: %+v", f.ID, f.Impact, f.Help, f.Nodes)
	}
}

// accessFault is a violation that axe-core finds.
type accessFault struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// accessFaults returns what axe-core finds, details opened.
func (b *browser) accessFaults(axe string) (faults []accessFault) {
	b.t.Helper()
	b.eval(`document.querySelectorAll("details").forEach(d => d.open = true)`, nil)
	b.eval(axe, nil)
	b.eval(`axe.run({resultTypes: ["violations"]}).then(r => r.violations.map(v => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 3).map(n => ({html: n.html.slice(0, 200), failureSummary: n.failureSummary}))})))`, &faults)
	b.eval(`document.querySelectorAll("details").forEach(d => d.open = false)`, nil)
	return faults
}

// list is what the table of findings shows: a line of words for each row that is seen.
func (b *browser) list() (rows []string) {
	b.t.Helper()
	b.eval(`[...document.querySelectorAll("#list tbody:not([hidden]) tr")].filter(r => r.checkVisibility()).map(r => [...r.cells].map(c => c.textContent).join(" | "))`, &rows)
	return rows
}

// useReport types in the filter, orders the table by mouse and by keys, and opens a group.
func (b *browser) useReport() {
	b.t.Helper()
	all := b.list()
	b.click("#filter")
	b.call("Input.insertText", map[string]any{"text": "ALERT(1)"}, nil)
	some := b.list()
	if len(some) == 0 || len(some) >= len(all) {
		b.t.Errorf("%d of %d rows have the text", len(some), len(all))
	}
	var shown string
	b.eval(`document.getElementById("shown").textContent`, &shown)
	if want := fmt.Sprintf("%d of %d rows", len(some), len(all)); shown != want {
		b.t.Errorf("%q, want %q", shown, want)
	}
	for range "ALERT(1)" {
		b.press("Backspace", 8, "")
	}
	if got := b.list(); len(got) != len(all) {
		b.t.Errorf("%d rows without a filter, of %d", len(got), len(all))
	}
	order := func(column int) (state string, sorted bool) {
		var got struct {
			State  string
			Keys   []string
			Sorted bool
		}
		b.eval(fmt.Sprintf(`(() => {
			const keys = [...document.querySelectorAll("#list tbody")].map(g => g.rows[0].cells[%d]).map(c => c.dataset.n || c.textContent);
			const state = document.querySelectorAll("#list th")[%d].ariaSort || "";
			const compare = new Intl.Collator("en", {numeric: true}).compare, sign = state === "descending" ? -1 : 1;
			return {state: state, sorted: keys.every((k, i) => i === 0 || sign * compare(keys[i-1], k) <= 0)};
		})()`, column, column), &got)
		return got.State, got.Sorted
	}
	wants := func(how string, column int, want string) {
		b.t.Helper()
		if state, sorted := order(column); state != want || !sorted {
			b.t.Errorf("%s: column %d is %q, in order: %t", how, column, state, sorted)
		}
	}
	b.click("#list th:nth-child(3) button")
	wants("click", 2, "ascending")
	b.click("#list th:nth-child(3) button")
	wants("second click", 2, "descending")
	b.click("#filter")
	b.press("Tab", 9, "") // to the button for CSV
	b.press("Tab", 9, "")
	b.press("Enter", 13, "\r")
	wants("Tab, Tab, Enter", 0, "descending")
	b.press("Tab", 9, "")
	b.press(" ", 32, " ")
	wants("Tab, Space", 1, "ascending")
	var place struct{ Opened, Marked bool }
	b.click("#list tbody td.id a")
	b.eval(`new Promise(f => setTimeout(() => {
		const at = document.querySelector(document.querySelector("#list tbody td.id a").hash), mark = document.querySelector(".mark.here");
		f({opened: at.checkVisibility(), marked: !!mark && mark.dataset.place === at.id});
	}, 50))`, &place)
	if !place.Opened || !place.Marked {
		b.t.Errorf("after a click on a subject: %+v", place)
	}
}

// BenchmarkReportInChromium opens the report of 11,664 hosts, 1 % of whose links are
// missing, and scrolls through it as by a wheel: when something is shown first, in ms,
// and the longest time between two frames. FABSH_SOAK.
func BenchmarkReportInChromium(b *testing.B) {
	if os.Getenv("FABSH_SOAK") == "" {
		b.Skip("only make soak unpacks Chromium, which has 370 MB")
	}
	path := filepath.Join(b.TempDir(), "report.html")
	runFabsh(b, "-F", "sim:pgft:m=18/18/36,w=1/18/18,p=1/1/1,remove_links=1%,seed=3", "report", "html", "--out", path)
	page := startBrowser(b)
	page.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1600, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	var paint, frame float64
	for b.Loop() {
		page.open(path)
		var ms float64
		page.eval(`new Promise(f => new PerformanceObserver(l => f(l.getEntries()[0].startTime)).observe({type: "paint", buffered: true}))`, &ms)
		paint = max(paint, ms)
		page.eval(`(() => {
			let last = performance.now();
			window.longest = 0;
			const tick = now => { window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(tick); };
			requestAnimationFrame(now => { last = now; tick(now); });
		})()`, nil)
		for _, way := range []int{-1, 1} {
			page.call("Input.synthesizeScrollGesture", map[string]any{"x": 800, "y": 450, "yDistance": way * 20000, "speed": 8000, "gestureSourceType": "mouse"}, nil)
		}
		page.eval(`window.longest`, &ms)
		frame = max(frame, ms)
	}
	b.ReportMetric(paint, "first-paint-ms")
	b.ReportMetric(frame, "longest-frame-ms")
}
