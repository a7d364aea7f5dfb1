package session

import (
	"fmt"
	"sync"
	"time"
)

// How soon something counts as slow, and how often its progress is renewed.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// progress tells people at a terminal what a slow evaluation is doing.
type progress struct {
	console *Console
	idle    func() string // what to say when nothing was told

	mu   sync.Mutex
	text string // what was told last
}

// Tell sets the line. It may be called as often as one likes.
func (p *progress) Tell(text string) {
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
}

// during shows the line while fn runs, once that has taken half a second.
func (p *progress) during(fn func()) {
	if p == nil || !p.console.stderrTTY {
		fn()
		return
	}
	p.Tell("")
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
		p.console.status(fmt.Sprintf("%s (%d s, Ctrl-C stops)", text, int(time.Since(start).Seconds())))
		next.Reset(progressEvery)
	}
}
