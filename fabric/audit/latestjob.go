package audit

import (
	"os"
	"strings"
	"time"

	"fabsh/fabric"
)

// LatestJob returns the job of s whose state below dir is to be used for what a covers: the
// last run of the job found it; else the job ran last. "": there is no readable state.
func LatestJob(dir string, s fabric.Subnet, a *Ack) (job string) {
	files, _ := os.ReadDir(s.Folder(dir))
	var latest time.Time
	found := false
	for _, file := range files {
		name, ok := strings.CutSuffix(file.Name(), ".state")
		if !ok {
			continue
		}
		st, err := OpenState(dir, s, name)
		if err != nil {
			continue
		}
		if st.Read(); st.Reset != nil {
			continue
		}
		covers := a.CountOf(st.findings) > 0
		if job == "" || covers && !found || covers == found && st.at.Time.After(latest) {
			job, latest, found = name, st.at.Time, covers
		}
	}
	return job
}
