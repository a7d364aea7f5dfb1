package session

import (
	"fmt"
	"sync"
	"time"
)

// How soon an evaluation counts as slow, and how often its progress is updated.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// progress shows at a terminal what a slow evaluation is doing.
type progress struct {
	console *Console
	idle    func() string // the default text

	mu   sync.Mutex
	text string // the latest text
}

// set sets the text. It may be called at any rate.
func (p *progress) set(text string) {
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
}

// during shows the progress line while fn runs, from half a second on.
func (p *progress) during(fn func()) {
	if p == nil || !p.console.stderrTTY {
		fn()
		return
	}
	p.set("")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go p.show(stop, stopped)
	defer func() {
		close(stop)
		<-stopped
		p.console.status("")
	}()
	fn()
}

func (p *progress) show(stop, stopped chan struct{}) {
	defer close(stopped)
	start := time.Now()
	next := time.NewTimer(progressAfter)
	defer next.Stop()
	for {
		select {
		case <-stop:
			return
		case <-next.C:
		}
		p.mu.Lock()
		text := p.text
		p.mu.Unlock()
		if text == "" {
			text = p.idle()
		}
		if text != "" {
			text = fmt.Sprintf("%s (%d s, Ctrl-C stops)", text, int(time.Since(start).Seconds()))
		}
		p.console.status(text)
		next.Reset(progressEvery)
	}
}
