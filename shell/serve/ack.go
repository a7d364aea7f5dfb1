package serve

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
)

// Ack is an acknowledgement that a user gives.
type Ack struct {
	ID, Name, By, Reason string
	Until                time.Time
}

// ackData is what the form shows.
type ackData struct {
	*cause
	Until, Token, Least string
}

// newToken returns a secret of this process that forms send back.
func newToken() string { return rand.Text() }

// open returns the open finding of an ID.
func (m *moment) open(id string) *cause {
	m.read()
	i := slices.IndexFunc(m.causes, func(c *cause) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return m.causes[i]
}

// maxDays is how long an acknowledgement of a page holds at most.
const maxDays = 365

// ackForm shows the form.
func (s *Site) ackForm(v *view) error {
	v.Template, v.Tab, v.Title = "ack", "now", "Acknowledge"
	if v.moment.isPast {
		return badRequest("a finding of the past cannot be acknowledged; go back to now")
	}
	if v.User == "" {
		return &pageError{status: http.StatusForbidden, text: "Only users of the password file may acknowledge; see fabsh help serve."}
	}
	c := v.moment.open(v.query.Get("id"))
	if c == nil {
		return notFound("no open finding has the ID %q", fabric.Clip(v.query.Get("id")))
	}
	now := s.Now()
	v.Data = &ackData{cause: c, Until: now.AddDate(0, 0, 30).Format(time.DateOnly), Least: now.Format(time.DateOnly), Token: s.token}
	return nil
}

// ack adds an acknowledgement: the only thing that a page may write. The request must come from a page
// of this site (its origin is checked), with the secret of the form, from a user with a password.
func (s *Site) ack(w http.ResponseWriter, r *http.Request) {
	user := ""
	if s.User != nil {
		user = s.User(r)
	}
	if user == "" {
		http.Error(w, "only users of the password file may acknowledge", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/x-www-form-urlencoded" || r.ParseForm() != nil {
		http.Error(w, "want a form of at most 4096 bytes", http.StatusBadRequest)
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(s.token)) != 1 {
		http.Error(w, "this form is of another run of fabsh serve; load the page again", http.StatusForbidden)
		return
	}
	s.mu.Lock()
	m := s.last
	s.mu.Unlock()
	var c *cause
	if m != nil {
		c = m.open(r.PostForm.Get("id"))
	}
	if c == nil {
		http.Error(w, "no open finding has this ID; it may have ended", http.StatusConflict)
		return
	}
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	now := s.Now()
	until, err := time.ParseInLocation(time.DateOnly, r.PostForm.Get("until"), now.Location())
	switch {
	case reason == "" || len(reason) > 4*maxParam:
		http.Error(w, "give a reason, of at most 800 bytes", http.StatusBadRequest)
		return
	case err != nil || until.AddDate(0, 0, 1).Before(now) || until.After(now.AddDate(0, 0, maxDays)):
		http.Error(w, "until: want a date from today to a year from now", http.StatusBadRequest)
		return
	}
	a := Ack{ID: c.ID, Name: c.Subject, By: user, Reason: reason, Until: until}
	if err := s.Acknowledge(a); err != nil {
		http.Error(w, clean(err.Error()), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	if s.given == nil {
		s.given = map[string]Ack{}
	}
	s.given[a.ID] = a
	s.mu.Unlock()
	http.Redirect(w, r, "/now", http.StatusSeeOther)
}
