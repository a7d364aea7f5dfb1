//go:build linux

package shell

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// browser is a Chromium of Debian's, and one page of it, driven by the DevTools protocol
// (chromedevtools.github.io/devtools-protocol) over two pipes: no port is opened.
type browser struct {
	t       testing.TB
	to      *os.File
	from    *bufio.Reader
	id      int
	session string
	seen    []event // that nobody waited for yet
}

type event struct {
	Method string
	Params json.RawMessage
}

// startBrowser starts one. It is of the folder that make chromium makes, with the fonts
// there, and has a profile of its own.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	folder := filepath.Join(ibsimtest.Root(t), ".chromium")
	program := filepath.Join(folder, "usr/lib/chromium/chromium")
	if _, err := os.Stat(program); err != nil {
		t.Fatal("no Chromium: run make chromium")
	}
	commands, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--headless", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(),
		"--no-sandbox", // for root, as whom tests run in containers; what is opened is ours
		"--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "about:blank")
	c.ExtraFiles = []*os.File{commands, answers} // 3 and 4, as the protocol has it
	libraries, _ := filepath.Glob(folder + "/usr/lib/*-linux-gnu*")
	more, _ := filepath.Glob(folder + "/usr/lib/*-linux-gnu*/pulseaudio") // what it names, though it makes no sound
	libraries = append(libraries, more...)
	home := t.TempDir()
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"), "HOME="+home, "XDG_DATA_HOME="+folder+"/usr/share", "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "DBUS_SESSION_BUS_ADDRESS=disabled:")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	commands.Close()
	answers.Close()
	b := &browser{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil, nil)
		to.Close()
		c.Wait()
		from.Close()
	})
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call is a command, and its answer; events that come before it are kept.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.id++
	m := map[string]any{"id": b.id, "method": method, "params": params}
	if params == nil {
		delete(m, "params")
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		answer := b.read(method)
		if answer.ID != b.id {
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error)
		}
		if result != nil {
			if err := json.Unmarshal(answer.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

type message struct {
	event
	ID     int
	Result json.RawMessage
	Error  json.RawMessage
}

// read is the next message; what for is told where there is none.
func (b *browser) read(what string) (m message) {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	if err == nil {
		err = json.Unmarshal(text[:len(text)-1], &m)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	if m.ID == 0 {
		b.seen = append(b.seen, m.event)
	}
	return m
}

// open loads a file, and waits until it is loaded.
func (b *browser) open(path string) {
	b.t.Helper()
	b.visit("file://" + path)
}

// visit loads an address, and waits until it is loaded.
func (b *browser) visit(url string) {
	b.t.Helper()
	b.seen = nil
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.loaded(url)
}

// loaded waits for the end of a load that began after seen was emptied. what names it in errors.
func (b *browser) loaded(what string) {
	b.t.Helper()
	for read := 0; ; {
		for ; read < len(b.seen); read++ {
			if b.seen[read].Method == "Page.loadEventFired" {
				return
			}
		}
		b.read(what)
	}
}

// faults are what the page said on the console, threw, and asked of others than file.
func (b *browser) faults(path string) (list []string) {
	for _, e := range b.seen {
		switch e.Method {
		case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening":
			list = append(list, e.Method+": "+string(e.Params))
		case "Network.requestWillBeSent":
			var r struct{ Request struct{ URL string } }
			if err := json.Unmarshal(e.Params, &r); err != nil || strings.SplitN(r.Request.URL, "#", 2)[0] != "file://"+path {
				list = append(list, "it asks for "+r.Request.URL)
			}
		}
	}
	return list
}

// eval is what an expression of JavaScript, or a promise of it, comes to.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%.100s: %s", expression, r.ExceptionDetails)
	}
	if result != nil {
		if err := json.Unmarshal(r.Result.Value, result); err != nil {
			b.t.Fatalf("%.100s: %v", expression, err)
		}
	}
}

// click presses the mouse in the middle of the first element that a selector finds.
func (b *browser) click(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	b.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"}); const r = e.getClientRects()[0]; return {x: r.x + Math.min(r.width, 40) / 2, y: r.y + r.height / 2} })()`, selector), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// press presses a key, such as "Tab", that has code, as keyCode of DOM events.
func (b *browser) press(key string, code int, text string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		m := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if text != "" && kind == "keyDown" {
			m["text"] = text
		}
		b.call("Input.dispatchKeyEvent", m, nil)
	}
}

// screenshot writes a picture of the whole page, or of its upper part where it is long.
func (b *browser) screenshot(path string, width int) {
	b.t.Helper()
	var height int
	b.eval(`Math.min(document.documentElement.scrollHeight, 6000)`, &height)
	var picture struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true,
		"clip": map[string]any{"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err == nil {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
